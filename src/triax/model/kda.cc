// KDA attention of one layer; spec: text model, section 3.
#include <cstring>
#include <vector>

#include "triax/model/layer.h"
#include "triax/ops/elementwise.h"
#include "triax/ops/kda.h"
#include "triax/ops/linear.h"
#include "triax/ops/short_conv.h"

namespace triax {
namespace {

// Convolution + SiLU of one of q, k, v. `part` counts them: its tail is that slice of the state's.
void convolve(Context& ctx, const Layer& layer, std::size_t part,
              const std::vector<float>& taps_by_channel, Mat<const float> x, Mat<float> y) {
  const K3Config& c = layer.config;
  const std::size_t P = c.kda_inner(), taps = c.short_conv_kernel_size;
  std::vector<ops::ConvTail> tails;
  for (SequenceState* state : layer.batch.states) {
    KdaState& kda = state->kda(layer.index);
    const std::size_t part_bytes = kda.tail.bytes() / 3;
    tails.push_back({kda.tail.data() + part * part_bytes, state->cache_dtype()});
  }
  ops::short_conv(ctx, x, Mat<const float>(taps_by_channel.data(), {taps, P}), layer.batch.segments,
                  tails, y);
}

// The decay, write strength and output gate of every row. g_raw and g are [T, P].
struct Gates {
  Mat<float> g, beta, output;
};

Gates gates(Context& ctx, const Layer& layer, Mat<const float> x) {
  const K3Config& c = layer.config;
  const KdaWeights& w = layer.weights.kda;
  const std::size_t T = x.shape[0], P = c.kda_inner(), H = c.kda_num_heads;
  const ProfileScope profile(ctx.profile, Family::kda_projections);
  Gates out{ctx.arena.take_mat<float>(T, P), ctx.arena.take_mat<float>(T, H),
            ctx.arena.take_mat<float>(T, P)};
  const Mat<float> f_a = ctx.arena.take_mat<float>(T, c.kda_head_dim);
  const ops::LinearJob small[] = {{w.f_a_proj, f_a}, {w.b_proj, out.beta}};
  ops::linear_f32(ctx, x, small);
  const Mat<float> g_raw = ctx.arena.take_mat<float>(T, P);
  ops::linear_f32(ctx, f_a, w.f_b_proj, g_raw);
  ops::sigmoid(ctx, out.beta, out.beta);
  ops::kda_gate(ctx, g_raw, w.A, w.dt_bias, c.gate_lower_bound.has_value(),
                c.gate_lower_bound.value_or(0.0f), out.g);
  if (c.use_full_rank_gate) {
    ops::linear(ctx, x, w.g_proj, out.output);
  } else {
    const Mat<float> g_a = ctx.arena.take_mat<float>(T, c.kda_head_dim);
    ops::linear(ctx, x, w.g_a_proj, g_a);
    ops::linear(ctx, g_a, w.g_b_proj, out.output);
  }
  probe_value(ctx, layer, "kda.g_raw", split_heads(g_raw, H));
  probe_value(ctx, layer, "kda.g", split_heads(out.g, H));
  probe_value(ctx, layer, "kda.beta", out.beta);
  return out;
}

// The state as the golden files hold it, after the rows of this pass.
void probe_state(Context& ctx, const Layer& layer) {
  if (ctx.probe == nullptr || !layer.batch.single()) return;
  const K3Config& c = layer.config;
  SequenceState& state = *layer.batch.states[0];
  KdaState& kda = state.kda(layer.index);
  const std::size_t H = c.kda_num_heads, D = c.kda_head_dim, P = c.kda_inner();
  const std::size_t back = c.short_conv_kernel_size - 1;
  probe_value(ctx, layer, "kda.state_after_prompt", View<float, 3>(kda.matrix.data(), {H, D, D}));
  // [3, back, P] as stored -> [3, P, back]
  std::vector<float> tail(3 * P * back);
  for (std::size_t i = 0; i < 3 * back * P; ++i) {
    float value = 0;
    if (state.cache_dtype() == DType::F32) {
      std::memcpy(&value, kda.tail.data() + 4 * i, 4);
    } else {
      bf16 stored;
      std::memcpy(&stored, kda.tail.data() + 2 * i, 2);
      value = to_float(stored);
    }
    const std::size_t part = i / (back * P), j = i / P % back, channel = i % P;
    tail[(part * P + channel) * back + j] = value;
  }
  probe_value(ctx, layer, "kda.conv_after_prompt", View<float, 3>(tail.data(), {3, P, back}));
}

}  // namespace

void kda_attention(Context& ctx, const Layer& layer, Mat<const float> x, Mat<float> out) {
  const ProfileScope profile(ctx.profile, Family::kda_recurrence);
  const Arena::Scope scope(ctx.arena);
  const K3Config& c = layer.config;
  const KdaWeights& w = layer.weights.kda;
  const std::size_t T = x.shape[0], H = c.kda_num_heads, D = c.kda_head_dim, P = c.kda_inner();

  const Mat<float> q_proj = ctx.arena.take_mat<float>(T, P);
  const Mat<float> k_proj = ctx.arena.take_mat<float>(T, P);
  const Mat<float> v_proj = ctx.arena.take_mat<float>(T, P);
  const ops::LinearJob projections[] = {{w.q_proj, q_proj}, {w.k_proj, k_proj}, {w.v_proj, v_proj}};
  {
    const ProfileScope projecting(ctx.profile, Family::kda_projections);
    ops::linear(ctx, x, projections);
  }
  // Rounded as the tail keeps them: a row sees the same inputs from this pass and from the cache.
  for (const Mat<float>& m : {q_proj, k_proj, v_proj}) ops::round_in_bf16_mode(ctx, m);
  probe_value(ctx, layer, "kda.q_proj", q_proj);
  probe_value(ctx, layer, "kda.k_proj", k_proj);
  probe_value(ctx, layer, "kda.v_proj", v_proj);

  const Mat<float> q = ctx.arena.take_mat<float>(T, P);
  const Mat<float> k = ctx.arena.take_mat<float>(T, P);
  const Mat<float> v = ctx.arena.take_mat<float>(T, P);
  convolve(ctx, layer, 0, w.q_conv_t, q_proj, q);
  convolve(ctx, layer, 1, w.k_conv_t, k_proj, k);
  convolve(ctx, layer, 2, w.v_conv_t, v_proj, v);
  probe_value(ctx, layer, "kda.q_conv", q);
  probe_value(ctx, layer, "kda.k_conv", k);
  probe_value(ctx, layer, "kda.v_conv", v);

  ops::l2_norm(ctx, q, D, K3Config::kL2Eps, q);
  ops::l2_norm(ctx, k, D, K3Config::kL2Eps, k);
  probe_value(ctx, layer, "kda.q_hat", split_heads(q, H));
  probe_value(ctx, layer, "kda.k_hat", split_heads(k, H));

  const Gates gate = gates(ctx, layer, x);
  const Mat<float> o = ctx.arena.take_mat<float>(T, P);
  std::vector<float*> states;
  for (SequenceState* s : layer.batch.states) states.push_back(s->kda(layer.index).matrix.data());
  // The tile scaling of the chunked form needs 16 rows of decay to fit float32: 16 * 5 < 87.
  const bool bounded = c.gate_lower_bound.has_value() && *c.gate_lower_bound >= -5.0f;
  ops::kda(ctx,
           {split_heads<const float>(q, H), split_heads<const float>(k, H),
            split_heads<const float>(v, H), split_heads<const float>(gate.g, H), gate.beta},
           layer.batch.segments, states, bounded, split_heads(o, H));
  probe_value(ctx, layer, "kda.o", split_heads(o, H));
  probe_value(ctx, layer, "kda.gate", split_heads(gate.output, H));

  ops::rms_norm_gated(ctx, o, w.o_norm, gate.output, c.rms_norm_eps, o);
  probe_value(ctx, layer, "kda.o_gated", split_heads(o, H));
  {
    const ProfileScope projecting(ctx.profile, Family::kda_projections);
    ops::linear(ctx, o, w.o_proj, out);
  }
  probe_value(ctx, layer, "kda.out", out);
  probe_state(ctx, layer);
}

}  // namespace triax
