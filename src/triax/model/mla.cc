// Gated MLA of one layer: a compressed cache, no positions; spec: text model, section 4.
#include <cstring>
#include <vector>

#include "triax/model/layer.h"
#include "triax/ops/elementwise.h"
#include "triax/ops/linear.h"
#include "triax/ops/mla.h"

namespace triax {
namespace {

// q [T, heads * (nope + rope)], per head the nope channels first.
Mat<float> query(Context& ctx, const Layer& layer, Mat<const float> x) {
  const K3Config& c = layer.config;
  const MlaWeights& w = layer.weights.mla;
  const std::size_t T = x.shape[0], H = c.num_attention_heads;
  const Mat<float> q = ctx.arena.take_mat<float>(T, H * c.q_head_dim());
  if (c.q_lora_rank == 0) {
    ops::linear(ctx, x, w.q_proj, q);
  } else {
    const Mat<float> q_latent = ctx.arena.take_mat<float>(T, c.q_lora_rank);
    ops::linear(ctx, x, w.q_a_proj, q_latent);
    ops::rms_norm(ctx, q_latent, w.q_a_layernorm, K3Config::kLoraNormEps, q_latent);
    probe_value(ctx, layer, "mla.q_latent", q_latent);
    ops::linear(ctx, q_latent, w.q_b_proj, q);
  }
  probe_value(ctx, layer, "mla.q", split_heads(q, H));
  return q;
}

void store_row(const float* values, std::size_t n, DType dtype, std::byte* out) {
  if (dtype == DType::F32) {
    std::memcpy(out, values, n * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const bf16 rounded = to_bf16(values[i]);
    std::memcpy(out + 2 * i, &rounded, 2);
  }
}

// Appends c = rmsnorm(latent) and the shared key channels of every row to its sequence's cache.
void append_latent(Context& ctx, const Layer& layer, Mat<const float> x) {
  const K3Config& c = layer.config;
  const MlaWeights& w = layer.weights.mla;
  const std::size_t T = x.shape[0], width = c.latent_width(), R = c.kv_lora_rank;
  const Mat<float> kv = ctx.arena.take_mat<float>(T, width);
  ops::linear(ctx, x, w.kv_a_proj_with_mqa, kv);
  const Mat<float> latent(kv.data, {T, R}, width);
  ops::rms_norm(ctx, latent, w.kv_a_layernorm, K3Config::kLoraNormEps, latent);
  for (std::size_t s = 0; s < layer.batch.states.size(); ++s) {
    const Segment segment = layer.batch.segments[s];
    SequenceState& state = *layer.batch.states[s];
    LatentCache& cache = state.latent(layer.index);
    for (std::size_t r = 0; r < segment.rows; ++r) {
      store_row(kv[segment.begin + r].data, width, cache.dtype(), cache.row(state.tokens() + r));
    }
  }
  if (ctx.probe != nullptr) {
    const Mat<float> kv_latent = ctx.arena.take_mat<float>(T, R);
    const Mat<float> k_rot = ctx.arena.take_mat<float>(T, c.qk_rope_head_dim);
    for (std::size_t t = 0; t < T; ++t) {
      std::memcpy(kv_latent[t].data, kv[t].data, R * sizeof(float));
      std::memcpy(k_rot[t].data, kv[t].data + R, c.qk_rope_head_dim * sizeof(float));
    }
    probe_value(ctx, layer, "mla.kv_latent", kv_latent);
    probe_value(ctx, layer, "mla.k_rot", k_rot);
  }
}

void probe_cache(Context& ctx, const Layer& layer) {
  if (ctx.probe == nullptr || !layer.batch.single()) return;
  const SequenceState& state = *layer.batch.states[0];
  const LatentCache& cache = state.latent(layer.index);
  const std::size_t tokens = state.tokens() + layer.batch.rows();
  const Mat<float> values = ctx.arena.take_mat<float>(tokens, cache.width());
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t i = 0; i < cache.width(); ++i) {
      if (cache.dtype() == DType::F32) {
        std::memcpy(&values[t][i], cache.row(t) + 4 * i, 4);
      } else {
        bf16 stored;
        std::memcpy(&stored, cache.row(t) + 2 * i, 2);
        values[t][i] = to_float(stored);
      }
    }
  }
  probe_value(ctx, layer, "mla.cache_after_prompt", values);
}

}  // namespace

void mla_attention(Context& ctx, const Layer& layer, Mat<const float> x, Mat<float> out) {
  const ProfileScope profile(ctx.profile, Family::mla_projections);
  const Arena::Scope scope(ctx.arena);
  const K3Config& c = layer.config;
  const MlaWeights& w = layer.weights.mla;
  const std::size_t T = x.shape[0], H = c.num_attention_heads;

  const Mat<float> q = query(ctx, layer, x);
  append_latent(ctx, layer, x);

  std::vector<LatentView> caches;
  for (std::size_t s = 0; s < layer.batch.states.size(); ++s) {
    const SequenceState& state = *layer.batch.states[s];
    const LatentCache& cache = state.latent(layer.index);
    caches.push_back({cache.page_pointers(), kPageTokens, cache.width(), cache.dtype(),
                      state.tokens() + layer.batch.segments[s].rows});
  }
  const Mat<float> attended = ctx.arena.take_mat<float>(T, H * c.v_head_dim);
  const ops::MlaShape shape{H, c.qk_nope_head_dim, c.qk_rope_head_dim, c.v_head_dim,
                            c.kv_lora_rank};
  {
    const ProfileScope attending(ctx.profile, Family::mla_attention);
    ops::mla_attend(ctx, shape, q, w.kv_b_proj, layer.batch.segments, caches, attended);
  }
  probe_value(ctx, layer, "mla.attended", split_heads(attended, H));

  if (c.mla_use_output_gate) {
    const Mat<float> gate = ctx.arena.take_mat<float>(T, H * c.v_head_dim);
    ops::linear(ctx, x, w.g_proj, gate);
    probe_value(ctx, layer, "mla.gate", split_heads(gate, H));
    ops::mul_sigmoid(ctx, attended, gate, attended);
    probe_value(ctx, layer, "mla.gated", split_heads(attended, H));
  }
  ops::linear(ctx, attended, w.o_proj, out);
  probe_value(ctx, layer, "mla.out", out);
  probe_cache(ctx, layer);
}

}  // namespace triax
