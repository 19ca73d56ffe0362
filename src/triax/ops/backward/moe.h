// Routed experts in training: weights as plain matrices, the forward pass that keeps what its
// gradient needs, and the gradients of router and experts. F is float or double.
#pragma once

#include <cstdint>
#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/elementwise.h"
#include "triax/ops/moe.h"

namespace triax::ops {

// weights of route() (ops/moe.h), w_i = f s_i / (sum_j s_j + 1e-20) over the chosen, s = sigmoid:
// ds_i = f (dw_i - sum_j (s_j / D) dw_j) / D;  dlogit_i = ds_i s_i (1 - s_i). Not renormalised:
// ds_i = f dw_i. Experts not chosen, and the bias, get nothing. logits, dlogits [T, E] (dlogits
// written), ids, dweights [T, top_k].
template <class F>
void route_backward(Context& ctx, Mat<const F> logits, Mat<const std::int32_t> ids,
                    const RouterRule& rule, Mat<const F> dweights, Mat<F> dlogits);

// One expert, W wide, in a space of L: w1 (gate), w3 (up) [W, L], w2 (down) [L, W].
template <class F>
struct ExpertMatrices {
  Mat<F> w1, w2, w3;
};

// (token, choice) pairs in order of expert, then of token: the pairs of expert e are
// [first[e], first[e+1]). Lives in the arena. slot_of[t * top_k + i] is the place of choice i of t.
struct ExpertPairs {
  std::span<std::size_t> first;     // [E + 1]
  std::span<std::uint32_t> choice;  // [T * top_k], t * top_k + i
  std::span<std::uint32_t> slot_of;
  std::size_t top_k = 0;

  std::size_t count() const { return choice.size(); }
  std::size_t token(std::size_t slot) const { return choice[slot] / top_k; }
};
ExpertPairs group_pairs(Context& ctx, Mat<const std::int32_t> ids, std::size_t experts);

// aggregate[t] = sum_i weight_i w2(h), h = act(w1 z, w3 z), in ascending order of id. z, aggregate
// [T, L]; weights [T, top_k]. gate, up [pairs, W]: w1 z and w3 z of every pair, kept for the
// gradient.
template <class F>
void experts_forward_keep(Context& ctx, Mat<const F> z, const ExpertPairs& pairs,
                          Mat<const F> weights, std::span<const ExpertMatrices<const F>> experts,
                          const Activation& activation, Mat<F> gate, Mat<F> up, Mat<F> aggregate);

// With b = w2^T dy (dy the gradient of aggregate[t]): dweight_i = h . b; dh = weight_i b; then
// activation, w1, w3. Outputs of experts are not needed. dz [T, L] and dweights [T, top_k] are
// written, d_experts added to: rows of an expert in order, an expert without rows is not touched.
template <class F>
void experts_backward(Context& ctx, Mat<const F> z, const ExpertPairs& pairs, Mat<const F> weights,
                      std::span<const ExpertMatrices<const F>> experts,
                      const Activation& activation, Mat<const F> gate, Mat<const F> up,
                      Mat<const F> dy, Mat<F> dz, Mat<F> dweights,
                      std::span<const ExpertMatrices<F>> d_experts);

}  // namespace triax::ops
