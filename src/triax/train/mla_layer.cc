// Gated MLA of one layer in training, expanded; model/mla.cc has the same forward pass.
#include "triax/ops/backward/mla.h"

#include "triax/ops/backward/pointwise.h"
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
  for (std::size_t t = 0; t < pass.rows; ++t) std::copy_n(kept.kv[t].data, width, out[t].data);
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

}  // namespace

template <class F>
MlaKept<F> mla_forward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, Mat<F> out) {
  const K3Config& c = pass.config;
  const MlaWeights& names = pass.names.layers[layer].mla;
  const std::size_t H = c.num_attention_heads, values = H * c.v_head_dim;
  const auto linear = [&](Mat<const F> from, const MatrixView& name, Mat<F> to) {
    Forward<F>::linear(pass.ctx, from, pass.weights.matrix(name), to);
  };
  MlaKept<F> kept{
      {}, pass.take(H * c.q_head_dim()), pass.take(c.latent_width()), pass.take(values), {}};
  if (c.q_lora_rank > 0) kept.q_a = pass.take(c.q_lora_rank);
  if (c.mla_use_output_gate) kept.gate = pass.take(values);

  const Arena::Scope scope(pass.ctx.arena);
  if (c.q_lora_rank > 0) {
    linear(x, names.q_a_proj, kept.q_a);
    linear(normed_query(pass, names, kept), names.q_b_proj, kept.q);
  } else {
    linear(x, names.q_proj, kept.q);
  }
  linear(x, names.kv_a_proj_with_mqa, kept.kv);
  Forward<F>::mla(pass.ctx, shape_of(pass), kept.q, normed_latent(pass, names, kept),
                  pass.weights.matrix(names.kv_b_proj), pass.documents, kept.attended);
  Mat<F> gated = kept.attended;
  if (c.mla_use_output_gate) {
    linear(x, names.g_proj, kept.gate);
    gated = pass.take(values);
    Forward<F>::mul_sigmoid(pass.ctx, kept.attended, kept.gate, gated);
  }
  linear(gated, names.o_proj, out);
  return kept;
}

template <class F>
void mla_backward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, const MlaKept<F>& kept,
                  Mat<const F> dout, Mat<F> dx) {
  const Arena::Scope scope(pass.ctx.arena);
  Context& ctx = pass.ctx;
  const K3Config& c = pass.config;
  const MlaWeights& names = pass.names.layers[layer].mla;
  Parameters<F>& grad = *pass.gradients;
  const std::size_t values = kept.attended.shape[1], rank = c.kv_lora_rank;

  Mat<F> d_attended;
  if (c.mla_use_output_gate) {
    const Mat<F> gated = pass.take(values), dgate = pass.take(values);
    Forward<F>::mul_sigmoid(ctx, kept.attended, kept.gate, gated);
    d_attended = pass.linear_backward_first(gated, names.o_proj, dout);
    ops::mul_sigmoid_backward<F>(ctx, kept.attended, kept.gate, d_attended, d_attended, dgate);
    pass.linear_backward(x, names.g_proj, dgate, dx);
  } else {
    d_attended = pass.linear_backward_first(kept.attended, names.o_proj, dout);
  }

  const Mat<F> latent = normed_latent(pass, names, kept);
  const Mat<F> dq = pass.take(kept.q.shape[1]), dkv = pass.take(c.latent_width());
  Vec<F> max_logits;
  if (pass.watch != nullptr) max_logits = Vec<F>(pass.watch->max_logits[layer]);
  ops::mla_backward<F>(ctx, shape_of(pass), kept.q, latent, pass.weights.matrix(names.kv_b_proj),
                       pass.documents, kept.attended, d_attended, dq, dkv,
                       grad.matrix(names.kv_b_proj), max_logits);
  ops::rms_norm_backward<F>(ctx, left_columns<const F>(kept.kv, rank),
                            pass.weights.vector(names.kv_a_layernorm), K3Config::kLoraNormEps,
                            left_columns<const F>(dkv, rank), left_columns(dkv, rank), false,
                            grad.vector(names.kv_a_layernorm));
  pass.linear_backward(x, names.kv_a_proj_with_mqa, dkv, dx);
  if (c.q_lora_rank == 0) {
    pass.linear_backward(x, names.q_proj, dq, dx);
    return;
  }
  const Mat<F> dq_a =
      pass.linear_backward_first(normed_query(pass, names, kept), names.q_b_proj, dq);
  ops::rms_norm_backward<F>(ctx, kept.q_a, pass.weights.vector(names.q_a_layernorm),
                            K3Config::kLoraNormEps, dq_a, dq_a, false,
                            grad.vector(names.q_a_layernorm));
  pass.linear_backward(x, names.q_a_proj, dq_a, dx);
}

#define TRIAX_INSTANCES(F)                                                                    \
  template MlaKept<F> mla_forward<F>(const Pass<F>&, std::size_t, Mat<const F>, Mat<F>);      \
  template void mla_backward<F>(const Pass<F>&, std::size_t, Mat<const F>, const MlaKept<F>&, \
                                Mat<const F>, Mat<F>)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::train
