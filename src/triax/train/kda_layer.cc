// KDA attention of one layer in training; model/kda.cc has the same forward pass.
#include <cmath>

#include "triax/ops/backward/kda.h"
#include "triax/ops/backward/pointwise.h"
#include "triax/ops/backward/short_conv.h"
#include "triax/train/forward_ops.h"
#include "triax/train/layers.h"

namespace triax::train {
namespace {

template <class T>
View<T, 3> heads_of(const Mat<T>& x, std::size_t heads) {
  return View<T, 3>(x.data, {x.shape[0], heads, x.shape[1] / heads}, x.stride);
}

// [P, 1, taps] -> [taps, P]
template <class F>
Mat<F> taps_of(const Pass<F>& pass, const std::vector<float>& name) {
  const std::size_t taps = pass.config.short_conv_kernel_size, P = pass.config.kda_inner();
  const Mat<F> out = pass.ctx.arena.template take_mat<F>(taps, P);
  const Vec<const F> stored = pass.weights.vector(name);
  for (std::size_t c = 0; c < P; ++c) {
    for (std::size_t j = 0; j < taps; ++j) out[j][c] = stored[c * taps + j];
  }
  return out;
}

// What both directions compute from what is kept.
template <class F>
struct Inputs {
  Mat<F> q_conv, k_conv;  // P, before the L2 norm
  Mat<F> q, k, v, g;      // P
  std::span<F> A;         // heads
  Mat<F> q_taps, k_taps, v_taps;

  Inputs(const Pass<F>& pass, const KdaWeights& names, const KdaKept<F>& kept) {
    const K3Config& c = pass.config;
    const std::size_t P = c.kda_inner(), D = c.kda_head_dim;
    q_taps = taps_of(pass, names.q_conv1d);
    k_taps = taps_of(pass, names.k_conv1d);
    v_taps = taps_of(pass, names.v_conv1d);
    q_conv = pass.take(P), k_conv = pass.take(P), v = pass.take(P);
    q = pass.take(P), k = pass.take(P), g = pass.take(P);
    Forward<F>::short_conv(pass.ctx, kept.q_proj, q_taps, pass.documents, q_conv);
    Forward<F>::short_conv(pass.ctx, kept.k_proj, k_taps, pass.documents, k_conv);
    Forward<F>::short_conv(pass.ctx, kept.v_proj, v_taps, pass.documents, v);
    Forward<F>::l2_norm(pass.ctx, q_conv, D, K3Config::kL2Eps, q);
    Forward<F>::l2_norm(pass.ctx, k_conv, D, K3Config::kL2Eps, k);
    A = pass.ctx.arena.template take<F>(c.kda_num_heads);
    for (std::size_t h = 0; h < A.size(); ++h) {
      A[h] = static_cast<F>(std::exp(static_cast<double>(pass.weights.vector(names.A_log)[h])));
    }
    Forward<F>::kda_gate(pass.ctx, kept.g_raw, A, pass.weights.vector(names.dt_bias),
                         c.gate_lower_bound.has_value(), c.gate_lower_bound.value_or(0.0f), g);
  }
  ops::KdaArrays<F> arrays(const KdaKept<F>& kept, std::size_t H) const {
    return {heads_of<const F>(q, H), heads_of<const F>(k, H), heads_of<const F>(v, H),
            heads_of<const F>(g, H), kept.beta};
  }
};

}  // namespace

template <class F>
KdaKept<F> kda_forward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, Mat<F> out) {
  const ProfileScope profile(pass.ctx.profile, Family::kda_projections);
  const K3Config& c = pass.config;
  const KdaWeights& names = pass.names.layers[layer].kda;
  const Parameters<F>& w = pass.weights;
  const std::size_t P = c.kda_inner(), H = c.kda_num_heads, D = c.kda_head_dim;
  KdaKept<F> kept{pass.take(P), pass.take(P), pass.take(P), pass.take(D), pass.take(P),
                  pass.take(H), {},           pass.take(P), pass.take(P), {}};
  const MatrixView& gate = c.use_full_rank_gate ? names.g_proj : names.g_a_proj;
  if (!c.use_full_rank_gate) kept.g_a = pass.take(D);
  pass.linear(x, {{names.q_proj, kept.q_proj},
                  {names.k_proj, kept.k_proj},
                  {names.v_proj, kept.v_proj},
                  {names.f_a_proj, kept.f_a},
                  {names.b_proj, kept.beta},
                  {gate, c.use_full_rank_gate ? kept.gate : kept.g_a}});
  pass.linear(kept.f_a, {{names.f_b_proj, kept.g_raw}});
  if (!c.use_full_rank_gate) pass.linear(kept.g_a, {{names.g_b_proj, kept.gate}});
  Forward<F>::sigmoid(pass.ctx, kept.beta, kept.beta);
  const std::size_t states = ops::kda_kept_states(pass.documents);
  kept.states =
      View<F, 4>(pass.ctx.arena.template take<F>(states * P * D).data(), {states, H, D, D});

  const Arena::Scope scope(pass.ctx.arena);
  const ProfileScope inner(pass.ctx.profile, Family::kda_recurrence);
  const Inputs<F> in(pass, names, kept);
  ops::kda_forward_keep<F>(pass.ctx, in.arrays(kept, H), pass.documents, {}, heads_of(kept.o, H),
                           kept.states);
  const Mat<F> gated = pass.take(P);
  Forward<F>::rms_norm_gated(pass.ctx, kept.o, w.vector(names.o_norm), kept.gate, c.rms_norm_eps,
                             gated);
  const ProfileScope after(pass.ctx.profile, Family::kda_projections);
  pass.linear(gated, {{names.o_proj, out}});
  return kept;
}

template <class F>
void kda_backward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, const KdaKept<F>& kept,
                  Mat<const F> dout, Mat<F> dx) {
  const Arena::Scope scope(pass.ctx.arena);
  const ProfileScope profile(pass.ctx.profile, Family::kda_recurrence);
  const K3Config& c = pass.config;
  const KdaWeights& names = pass.names.layers[layer].kda;
  Parameters<F>& grad = *pass.gradients;
  Context& ctx = pass.ctx;
  const std::size_t P = c.kda_inner(), H = c.kda_num_heads, D = c.kda_head_dim;
  const Vec<const F> o_norm = pass.weights.vector(names.o_norm);
  const F eps = c.rms_norm_eps;

  // output projection, norm and gate
  const Mat<F> gated = pass.take(P), dgate = pass.take(P);
  Forward<F>::rms_norm_gated(ctx, kept.o, o_norm, kept.gate, c.rms_norm_eps, gated);
  Mat<F> d_o;
  {
    const ProfileScope products(ctx.profile, Family::kda_projections);
    d_o = pass.linear_backward_first(gated, names.o_proj, dout);
  }
  ops::rms_norm_gated_backward<F>(ctx, kept.o, o_norm, kept.gate, eps, d_o, d_o, dgate,
                                  grad.vector(names.o_norm));
  const MatrixView& gate = c.use_full_rank_gate ? names.g_proj : names.g_a_proj;
  const Mat<F> dgate_in =
      c.use_full_rank_gate ? dgate : pass.linear_backward_first(kept.g_a, names.g_b_proj, dgate);

  // the recurrence
  const Inputs<F> in(pass, names, kept);
  const Mat<F> dq = pass.take(P), dk = pass.take(P), dv = pass.take(P), dg = pass.take(P);
  const Mat<F> dbeta = pass.take(H);
  ops::kda_backward<F>(ctx, in.arrays(kept, H), pass.documents, kept.states,
                       heads_of<const F>(d_o, H), {},
                       {heads_of(dq, H), heads_of(dk, H), heads_of(dv, H), heads_of(dg, H), dbeta});

  // decay and write strength
  ops::kda_gate_backward<F>(ctx, kept.g_raw, in.A, pass.weights.vector(names.dt_bias),
                            c.gate_lower_bound.has_value(), c.gate_lower_bound.value_or(0.0f), dg,
                            dg, grad.vector(names.A_log), grad.vector(names.dt_bias));
  const Mat<F> df_a = pass.linear_backward_first(kept.f_a, names.f_b_proj, dg);
  ops::sigmoid_backward<F>(ctx, kept.beta, dbeta, dbeta);

  // norms, convolutions, projections
  ops::l2_norm_backward<F>(ctx, in.q_conv, D, K3Config::kL2Eps, dq, dq);
  ops::l2_norm_backward<F>(ctx, in.k_conv, D, K3Config::kL2Eps, dk, dk);
  const auto convolution = [&](Mat<const F> from, Mat<const F> taps, Mat<F> d,
                               const std::vector<float>& name) {
    const Mat<F> dtaps = ctx.arena.template take_mat<F>(taps.shape[0], P);
    fill_zero(ctx, dtaps);
    ops::short_conv_backward<F>(ctx, from, taps, pass.documents, d, d, dtaps);
    const Vec<F> stored = grad.vector(name);
    for (std::size_t i = 0; i < P; ++i) {
      for (std::size_t j = 0; j < taps.shape[0]; ++j) stored[i * taps.shape[0] + j] += dtaps[j][i];
    }
  };
  convolution(kept.q_proj, in.q_taps, dq, names.q_conv1d);
  convolution(kept.k_proj, in.k_taps, dk, names.k_conv1d);
  convolution(kept.v_proj, in.v_taps, dv, names.v_conv1d);
  const ProfileScope products(ctx.profile, Family::kda_projections);
  pass.linear_backward(x,
                       {{gate, dgate_in},
                        {names.f_a_proj, df_a},
                        {names.b_proj, dbeta},
                        {names.q_proj, dq},
                        {names.k_proj, dk},
                        {names.v_proj, dv}},
                       dx);
}

#define TRIAX_INSTANCES(F)                                                                    \
  template KdaKept<F> kda_forward<F>(const Pass<F>&, std::size_t, Mat<const F>, Mat<F>);      \
  template void kda_backward<F>(const Pass<F>&, std::size_t, Mat<const F>, const KdaKept<F>&, \
                                Mat<const F>, Mat<F>)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::train
