// Gated MLA of one layer in training, expanded; model/mla.cc has the same forward pass.
#include "triax/ops/backward/mla.h"

#include "triax/ops/backward/pointwise.h"
#include "triax/ops/backward/rounded.h"
#include "triax/train/forward_ops.h"
#include "triax/train/layers.h"

namespace triax::train {
namespace {

template <class F>
ops::MlaShape shape_of(const Pass<F>& pass) {
  const K3Config& c = pass.config;
  return {c.num_attention_heads, c.qk_nope_head_dim, c.qk_rope_head_dim, c.v_head_dim,
          c.kv_lora_rank};
}

template <class F>
Mat<F> left_columns(const Mat<F>& x, std::size_t n) {
  return Mat<F>(x.data, {x.shape[0], n}, x.stride);
}

// [T, rank + rope]: the latent normed, the shared key channels as they are
template <class F>
Mat<F> normed_latent(const Pass<F>& pass, const MlaWeights& names, const MlaKept<F>& kept) {
  const std::size_t rank = pass.config.kv_lora_rank, width = kept.kv.shape[1];
  const Mat<F> out = pass.take(width);
  ops::for_row_blocks(pass.ctx, pass.rows, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) std::copy_n(kept.kv[t].data, width, out[t].data);
  });
  Forward<F>::rms_norm(pass.ctx, left_columns<const F>(kept.kv, rank),
                       pass.weights.vector(names.kv_a_layernorm), K3Config::kLoraNormEps,
                       left_columns(out, rank));
  return out;
}

template <class F>
Mat<F> normed_query(const Pass<F>& pass, const MlaWeights& names, const MlaKept<F>& kept) {
  const Mat<F> out = pass.take(pass.config.q_lora_rank);
  Forward<F>::rms_norm(pass.ctx, kept.q_a, pass.weights.vector(names.q_a_layernorm),
                       K3Config::kLoraNormEps, out);
  return out;
}

template <class F>
void attend(const Pass<F>& pass, const MlaWeights& names, const MlaKept<F>& kept) {
  const ProfileScope profile(pass.ctx.profile, Family::mla_attention);
  const Mat<F> latent = normed_latent(pass, names, kept);
  const Mat<const F> kv_b = pass.weights.matrix(names.kv_b_proj);
  if constexpr (std::is_same_v<F, float>) {
    if (pass.rounds()) {
      ops::rounded_mla(pass.ctx, shape_of(pass), kept.q, latent, kv_b, pass.documents,
                       kept.attended);
      return;
    }
  }
  Forward<F>::mla(pass.ctx, shape_of(pass), kept.q, latent, kv_b, pass.documents, kept.attended);
}

template <class F>
void attend_backward(const Pass<F>& pass, std::size_t layer, const MlaKept<F>& kept,
                     Mat<const F> d_attended, Mat<F> dq, Mat<F> dkv) {
  const ProfileScope profile(pass.ctx.profile, Family::mla_attention);
  const MlaWeights& names = pass.names.layers[layer].mla;
  const Mat<F> latent = normed_latent(pass, names, kept);
  const Mat<const F> kv_b = pass.weights.matrix(names.kv_b_proj);
  const Mat<F> dkv_b = pass.gradients->matrix(names.kv_b_proj);
  Vec<F> max_logits;
  if (pass.watch != nullptr) max_logits = Vec<F>(pass.watch->max_logits[layer]);
  if constexpr (std::is_same_v<F, float>) {
    if (pass.rounds()) {
      ops::rounded_mla_backward(pass.ctx, shape_of(pass), kept.q, latent, kv_b, pass.documents,
                                kept.attended, d_attended, dq, dkv, dkv_b, max_logits);
      return;
    }
  }
  ops::mla_backward<F>(pass.ctx, shape_of(pass), kept.q, latent, kv_b, pass.documents,
                       kept.attended, d_attended, dq, dkv, dkv_b, max_logits);
}

}  // namespace

template <class F>
MlaKept<F> mla_forward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, Mat<F> out) {
  const ProfileScope profile(pass.ctx.profile, Family::mla_projections);
  const K3Config& c = pass.config;
  const MlaWeights& names = pass.names.layers[layer].mla;
  const std::size_t H = c.num_attention_heads, values = H * c.v_head_dim;
  MlaKept<F> kept{
      {}, pass.take(H * c.q_head_dim()), pass.take(c.latent_width()), pass.take(values), {}};
  if (c.q_lora_rank > 0) kept.q_a = pass.take(c.q_lora_rank);
  if (c.mla_use_output_gate) kept.gate = pass.take(values);

  const Arena::Scope scope(pass.ctx.arena);
  const bool two = c.q_lora_rank > 0;
  const typename Pass<F>::Linear query{two ? names.q_a_proj : names.q_proj,
                                       two ? kept.q_a : kept.q};
  const typename Pass<F>::Linear latent{names.kv_a_proj_with_mqa, kept.kv};
  if (c.mla_use_output_gate) {
    pass.linear(x, {query, latent, {names.g_proj, kept.gate}});
  } else {
    pass.linear(x, {query, latent});
  }
  if (two) pass.linear(normed_query(pass, names, kept), {{names.q_b_proj, kept.q}});
  attend(pass, names, kept);
  Mat<F> gated = kept.attended;
  if (c.mla_use_output_gate) {
    gated = pass.take(values);
    Forward<F>::mul_sigmoid(pass.ctx, kept.attended, kept.gate, gated);
  }
  pass.linear(gated, {{names.o_proj, out}});
  return kept;
}

template <class F>
void mla_backward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, const MlaKept<F>& kept,
                  Mat<const F> dout, Mat<F> dx) {
  const Arena::Scope scope(pass.ctx.arena);
  Context& ctx = pass.ctx;
  const ProfileScope profile(ctx.profile, Family::mla_projections);
  const K3Config& c = pass.config;
  const MlaWeights& names = pass.names.layers[layer].mla;
  Parameters<F>& grad = *pass.gradients;
  const std::size_t values = kept.attended.shape[1], rank = c.kv_lora_rank;

  Mat<F> d_attended, dgate;
  if (c.mla_use_output_gate) {
    const Mat<F> gated = pass.take(values);
    dgate = pass.take(values);
    Forward<F>::mul_sigmoid(ctx, kept.attended, kept.gate, gated);
    d_attended = pass.linear_backward_first(gated, names.o_proj, dout);
    ops::mul_sigmoid_backward<F>(ctx, kept.attended, kept.gate, d_attended, d_attended, dgate);
  } else {
    d_attended = pass.linear_backward_first(kept.attended, names.o_proj, dout);
  }

  const Mat<F> dq = pass.take(kept.q.shape[1]), dkv = pass.take(c.latent_width());
  attend_backward<F>(pass, layer, kept, d_attended, dq, dkv);
  ops::rms_norm_backward<F>(ctx, left_columns<const F>(kept.kv, rank),
                            pass.weights.vector(names.kv_a_layernorm), K3Config::kLoraNormEps,
                            left_columns<const F>(dkv, rank), left_columns(dkv, rank), false,
                            grad.vector(names.kv_a_layernorm));
  const bool two = c.q_lora_rank > 0;
  Mat<F> dquery = dq;
  if (two) {
    dquery = pass.linear_backward_first(normed_query(pass, names, kept), names.q_b_proj, dq);
    ops::rms_norm_backward<F>(ctx, kept.q_a, pass.weights.vector(names.q_a_layernorm),
                              K3Config::kLoraNormEps, dquery, dquery, false,
                              grad.vector(names.q_a_layernorm));
  }
  const typename Pass<F>::LinearGradient latent_gradient{names.kv_a_proj_with_mqa, dkv};
  const typename Pass<F>::LinearGradient query_gradient{two ? names.q_a_proj : names.q_proj,
                                                        dquery};
  if (c.mla_use_output_gate) {
    pass.linear_backward(x, {{names.g_proj, dgate}, latent_gradient, query_gradient}, dx);
  } else {
    pass.linear_backward(x, {latent_gradient, query_gradient}, dx);
  }
}

#define TRIAX_INSTANCES(F)                                                                    \
  template MlaKept<F> mla_forward<F>(const Pass<F>&, std::size_t, Mat<const F>, Mat<F>);      \
  template void mla_backward<F>(const Pass<F>&, std::size_t, Mat<const F>, const MlaKept<F>&, \
                                Mat<const F>, Mat<F>)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::train
