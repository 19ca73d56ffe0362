// Feed-forwards of one layer in training; model/mlp.cc and model/latent_moe.cc have the same
// forward passes.
#include "triax/ops/backward/pointwise.h"
#include "triax/ops/backward/rounded.h"
#include "triax/train/forward_ops.h"
#include "triax/train/layers.h"

namespace triax::train {

template <class F>
MlpKept<F> take_mlp(const Pass<F>& pass, const MlpWeights& names) {
  const std::size_t width = pass.weights.matrix(names.gate_proj).shape[0];
  return {pass.take(width), pass.take(width)};
}

namespace {

template <class F>
Mat<F> activated(const Pass<F>& pass, const MlpKept<F>& kept) {
  const Mat<F> h = pass.take(kept.gate.shape[1]);
  if constexpr (std::is_same_v<F, float>) {
    if (pass.rounds()) {
      ops::rounded_activate(pass.ctx, kept.gate, kept.up, activation_of(pass), h);
      return h;
    }
  }
  Forward<F>::activate(pass.ctx, kept.gate, kept.up, activation_of(pass), h);
  return h;
}

}  // namespace

template <class F>
void mlp_forward(const Pass<F>& pass, const MlpWeights& names, Mat<const F> x,
                 const MlpKept<F>& kept, Mat<F> out) {
  const Arena::Scope scope(pass.ctx.arena);
  pass.linear(x, {{names.gate_proj, kept.gate}, {names.up_proj, kept.up}});
  const Mat<F> h = activated(pass, kept);
  pass.linear(h, {{names.down_proj, out}});
}

template <class F>
void mlp_backward(const Pass<F>& pass, const MlpWeights& names, Mat<const F> x,
                  const MlpKept<F>& kept, Mat<const F> dout, Mat<F> dx) {
  const Arena::Scope scope(pass.ctx.arena);
  const ops::Activation act = activation_of(pass);
  const std::size_t width = kept.gate.shape[1];
  const Mat<F> h = activated(pass, kept), dgate = pass.take(width), dup = pass.take(width);
  const Mat<F> dh = pass.linear_backward_first(h, names.down_proj, dout);
  ops::activate_backward<F>(pass.ctx, kept.gate, kept.up, act, dh, dgate, dup);
  pass.linear_backward(x, {{names.gate_proj, dgate}, {names.up_proj, dup}}, dx);
}

namespace {

template <class F>
void experts_forward(const Pass<F>& pass, std::size_t layer, Mat<const F> z,
                     const MoeKept<F>& kept) {
  const ProfileScope profile(pass.ctx.profile, Family::routed_experts);
  const auto experts = pass.weights.experts(layer);
  const ops::Activation act = activation_of(pass);
  if constexpr (std::is_same_v<F, float>) {
    if (pass.rounds()) {
      ops::rounded_experts_forward(pass.ctx, z, kept.pairs, kept.weights, experts, act, kept.gate,
                                   kept.up, kept.aggregate);
      return;
    }
  }
  ops::experts_forward_keep<F>(pass.ctx, z, kept.pairs, kept.weights, experts, act, kept.gate,
                               kept.up, kept.aggregate);
}

template <class F>
void experts_backward(const Pass<F>& pass, std::size_t layer, Mat<const F> z,
                      const MoeKept<F>& kept, Mat<const F> dy, Mat<F> dz, Mat<F> dweights) {
  const ProfileScope profile(pass.ctx.profile, Family::routed_experts);
  const auto experts = pass.weights.experts(layer);
  const auto d_experts = pass.gradients->experts(layer);
  const ops::Activation act = activation_of(pass);
  if constexpr (std::is_same_v<F, float>) {
    if (pass.rounds()) {
      ops::rounded_experts_backward(pass.ctx, z, kept.pairs, kept.weights, experts, act, kept.gate,
                                    kept.up, dy, dz, dweights, d_experts);
      return;
    }
  }
  ops::experts_backward<F>(pass.ctx, z, kept.pairs, kept.weights, experts, act, kept.gate, kept.up,
                           dy, dz, dweights, d_experts);
}

}  // namespace

template <class F>
MoeKept<F> moe_forward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, Mat<F> out) {
  const ProfileScope profile(pass.ctx.profile, Family::latent);
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
  {
    const ProfileScope inner(ctx.profile, Family::router);
    Forward<F>::linear(ctx, x, w.matrix(names.gate), kept.logits);
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
    pass.linear(x, {{names.routed_expert_down_proj, kept.z}});
    z = kept.z;
  }
  kept.gate = ctx.arena.template take_mat<F>(T * k, W);
  kept.up = ctx.arena.template take_mat<F>(T * k, W);
  kept.aggregate = pass.take(L);
  experts_forward(pass, layer, z, kept);
  if (c.has_latent) {
    const Arena::Scope scope(ctx.arena);
    Mat<F> normed = kept.aggregate;
    if (c.latent_moe_use_norm) {
      normed = pass.take(L);
      Forward<F>::rms_norm(ctx, kept.aggregate, w.vector(names.routed_expert_norm), c.rms_norm_eps,
                           normed);
    }
    pass.linear(normed, {{names.routed_expert_up_proj, out}});
  } else {
    for (std::size_t t = 0; t < T; ++t) std::copy_n(kept.aggregate[t].data, L, out[t].data);
  }
  if (c.num_shared_experts > 0) {
    kept.shared = take_mlp(pass, names.shared_experts);
    const Arena::Scope scope(ctx.arena);
    const ProfileScope inner(ctx.profile, Family::shared_experts);
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
  const ProfileScope profile(pass.ctx.profile, Family::latent);
  const K3Config& c = pass.config;
  const MoeWeights& names = pass.names.layers[layer].moe;
  const Parameters<F>& w = pass.weights;
  Parameters<F>& grad = *pass.gradients;
  Context& ctx = pass.ctx;
  const std::size_t L = c.routed_expert_hidden_size;
  if (c.num_shared_experts > 0) {
    const ProfileScope inner(ctx.profile, Family::shared_experts);
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
  experts_backward(pass, layer, c.has_latent ? Mat<const F>(kept.z) : x, kept, d_aggregate, dz,
                   dweights);
  if (c.has_latent) {
    pass.linear_backward(x, {{names.routed_expert_down_proj, dz}}, dx);
  } else {
    Forward<F>::add(ctx, dx, dz, dx);
  }
  const ProfileScope inner(ctx.profile, Family::router);
  const Mat<F> dlogits = pass.take(c.num_experts);
  ops::route_backward<F>(ctx, kept.logits, kept.ids,
                         {c.num_experts_per_token, c.moe_renormalize, c.routed_scaling_factor},
                         dweights, dlogits);
  // The router's products are float32 in both modes.
  ops::linear_input_gradient<F>(ctx, dlogits, w.matrix(names.gate), dx, true);
  ops::linear_weight_gradient<F>(ctx, x, dlogits, grad.matrix(names.gate));
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
