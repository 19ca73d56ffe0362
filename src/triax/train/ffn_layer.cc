// Feed-forwards of one layer in training; model/mlp.cc and model/latent_moe.cc have the same
// forward passes.
#include "triax/ops/backward/pointwise.h"
#include "triax/train/forward_ops.h"
#include "triax/train/layers.h"

namespace triax::train {

template <class F>
MlpKept<F> take_mlp(const Pass<F>& pass, const MlpWeights& names) {
  const std::size_t width = pass.weights.matrix(names.gate_proj).shape[0];
  return {pass.take(width), pass.take(width)};
}

template <class F>
void mlp_forward(const Pass<F>& pass, const MlpWeights& names, Mat<const F> x,
                 const MlpKept<F>& kept, Mat<F> out) {
  const Mat<const F> gate = pass.weights.matrix(names.gate_proj);
  const Arena::Scope scope(pass.ctx.arena);
  Forward<F>::linear(pass.ctx, x, gate, kept.gate);
  Forward<F>::linear(pass.ctx, x, pass.weights.matrix(names.up_proj), kept.up);
  const Mat<F> h = pass.take(gate.shape[0]);
  Forward<F>::activate(pass.ctx, kept.gate, kept.up, activation_of(pass), h);
  Forward<F>::linear(pass.ctx, h, pass.weights.matrix(names.down_proj), out);
}

template <class F>
void mlp_backward(const Pass<F>& pass, const MlpWeights& names, Mat<const F> x,
                  const MlpKept<F>& kept, Mat<const F> dout, Mat<F> dx) {
  const Arena::Scope scope(pass.ctx.arena);
  const ops::Activation act = activation_of(pass);
  const std::size_t width = kept.gate.shape[1];
  const Mat<F> h = pass.take(width), dgate = pass.take(width), dup = pass.take(width);
  Forward<F>::activate(pass.ctx, kept.gate, kept.up, act, h);
  const Mat<F> dh = pass.linear_backward_first(h, names.down_proj, dout);
  ops::activate_backward<F>(pass.ctx, kept.gate, kept.up, act, dh, dgate, dup);
  pass.linear_backward(x, names.gate_proj, dgate, dx);
  pass.linear_backward(x, names.up_proj, dup, dx);
}

template <class F>
MoeKept<F> moe_forward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, Mat<F> out) {
  const K3Config& c = pass.config;
  const MoeWeights& names = pass.names.layers[layer].moe;
  const Parameters<F>& w = pass.weights;
  Context& ctx = pass.ctx;
  const std::size_t T = pass.rows, E = c.num_experts, k = c.num_experts_per_token;
  const std::size_t L = c.routed_expert_hidden_size, W = c.moe_intermediate_size;
  MoeKept<F> kept;
  kept.logits = pass.take(E);
  kept.ids = ctx.arena.template take_mat<std::int32_t>(T, k);
  kept.weights = pass.take(k);
  Forward<F>::linear(ctx, x, w.matrix(names.gate), kept.logits);
  {
    const Arena::Scope scope(ctx.arena);
    const Mat<F> scores = pass.take(E);
    Forward<F>::route(ctx, kept.logits, w.vector(names.e_score_correction_bias),
                      {k, c.moe_renormalize, c.routed_scaling_factor}, scores, kept.ids,
                      kept.weights);
    if (pass.watch != nullptr && pass.watch->routed) pass.watch->routed(layer, scores, kept.ids);
  }
  kept.pairs = ops::group_pairs(ctx, kept.ids, E);
  Mat<const F> z = x;
  if (c.has_latent) {
    kept.z = pass.take(L);
    Forward<F>::linear(ctx, x, w.matrix(names.routed_expert_down_proj), kept.z);
    z = kept.z;
  }
  kept.gate = ctx.arena.template take_mat<F>(T * k, W);
  kept.up = ctx.arena.template take_mat<F>(T * k, W);
  kept.aggregate = pass.take(L);
  ops::experts_forward_keep<F>(ctx, z, kept.pairs, kept.weights, w.experts(layer),
                               activation_of(pass), kept.gate, kept.up, kept.aggregate);
  if (c.has_latent) {
    const Arena::Scope scope(ctx.arena);
    Mat<F> normed = kept.aggregate;
    if (c.latent_moe_use_norm) {
      normed = pass.take(L);
      Forward<F>::rms_norm(ctx, kept.aggregate, w.vector(names.routed_expert_norm), c.rms_norm_eps,
                           normed);
    }
    Forward<F>::linear(ctx, normed, w.matrix(names.routed_expert_up_proj), out);
  } else {
    for (std::size_t t = 0; t < T; ++t) std::copy_n(kept.aggregate[t].data, L, out[t].data);
  }
  if (c.num_shared_experts > 0) {
    kept.shared = take_mlp(pass, names.shared_experts);
    const Arena::Scope scope(ctx.arena);
    const Mat<F> shared = pass.take(c.hidden_size);
    mlp_forward(pass, names.shared_experts, x, kept.shared, shared);
    Forward<F>::add(ctx, out, shared, out);
  }
  return kept;
}

template <class F>
void moe_backward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, const MoeKept<F>& kept,
                  Mat<const F> dout, Mat<F> dx) {
  const Arena::Scope scope(pass.ctx.arena);
  const K3Config& c = pass.config;
  const MoeWeights& names = pass.names.layers[layer].moe;
  const Parameters<F>& w = pass.weights;
  Parameters<F>& grad = *pass.gradients;
  Context& ctx = pass.ctx;
  const std::size_t L = c.routed_expert_hidden_size;
  if (c.num_shared_experts > 0) {
    mlp_backward(pass, names.shared_experts, x, kept.shared, dout, dx);
  }

  // what follows the experts
  Mat<const F> d_aggregate = dout;
  if (c.has_latent && c.latent_moe_use_norm) {
    const Mat<F> normed = pass.take(L);
    const Vec<const F> norm = w.vector(names.routed_expert_norm);
    Forward<F>::rms_norm(ctx, kept.aggregate, norm, c.rms_norm_eps, normed);
    const Mat<F> d = pass.linear_backward_first(normed, names.routed_expert_up_proj, dout);
    ops::rms_norm_backward<F>(ctx, kept.aggregate, norm, c.rms_norm_eps, d, d, false,
                              grad.vector(names.routed_expert_norm));
    d_aggregate = d;
  } else if (c.has_latent) {
    d_aggregate = pass.linear_backward_first(kept.aggregate, names.routed_expert_up_proj, dout);
  }

  // experts and router
  const Mat<F> dz = pass.take(L), dweights = pass.take(kept.ids.shape[1]);
  ops::experts_backward<F>(ctx, c.has_latent ? Mat<const F>(kept.z) : x, kept.pairs, kept.weights,
                           w.experts(layer), activation_of(pass), kept.gate, kept.up, d_aggregate,
                           dz, dweights, grad.experts(layer));
  if (c.has_latent) {
    pass.linear_backward(x, names.routed_expert_down_proj, dz, dx);
  } else {
    Forward<F>::add(ctx, dx, dz, dx);
  }
  const Mat<F> dlogits = pass.take(c.num_experts);
  ops::route_backward<F>(ctx, kept.logits, kept.ids,
                         {c.num_experts_per_token, c.moe_renormalize, c.routed_scaling_factor},
                         dweights, dlogits);
  pass.linear_backward(x, names.gate, dlogits, dx);
}

#define TRIAX_INSTANCES(F)                                                                         \
  template MlpKept<F> take_mlp<F>(const Pass<F>&, const MlpWeights&);                              \
  template void mlp_forward<F>(const Pass<F>&, const MlpWeights&, Mat<const F>, const MlpKept<F>&, \
                               Mat<F>);                                                            \
  template void mlp_backward<F>(const Pass<F>&, const MlpWeights&, Mat<const F>,                   \
                                const MlpKept<F>&, Mat<const F>, Mat<F>);                          \
  template MoeKept<F> moe_forward<F>(const Pass<F>&, std::size_t, Mat<const F>, Mat<F>);           \
  template void moe_backward<F>(const Pass<F>&, std::size_t, Mat<const F>, const MoeKept<F>&,      \
                                Mat<const F>, Mat<F>)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::train
