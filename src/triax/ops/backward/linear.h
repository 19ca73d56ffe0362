// Gradients of products with weights, of the embedding and of the loss behind the head.
// F is float (production) or double (gradient checks).
#pragma once

#include <cstdint>

#include "triax/core/context.h"
#include "triax/core/view.h"

namespace triax::ops {

// y = x W^T, x [T, K], W [N, K], dy [T, N].
// dx = dy W (added to what dx holds when `accumulate`); dx [T, K].
template <class F>
void linear_input_gradient(Context& ctx, Mat<const F> dy, Mat<const F> w, Mat<F> dx,
                           bool accumulate);
// dW += dy^T x; dW [N, K]. Rows are summed in order, whatever the number of threads.
template <class F>
void linear_weight_gradient(Context& ctx, Mat<const F> x, Mat<const F> dy, Mat<F> dw);

// y[t] = table[ids[t]]: dtable[ids[t]] += dy[t], in order of t. dy [T, N], dtable [vocab, N].
template <class F>
void embed_backward(Context& ctx, Vec<const std::int32_t> ids, Mat<const F> dy, Mat<F> dtable);

inline constexpr std::int32_t kNoTarget = -1;  // a row that has no loss

// Cross-entropy of each row, losses[t] = log sum_v exp(logits[t, v]) - logits[t, targets[t]] in
// nats, and its gradient times `scale` in place of the logits: scale (softmax - onehot). A row
// without a target has loss 0 and gradient 0. logits [T, vocab], losses [T]. weights [T], when not
// empty, multiply the gradients of their rows (any sign), not the losses.
template <class F>
void cross_entropy(Context& ctx, Mat<F> logits, Vec<const std::int32_t> targets, F scale,
                   Vec<F> losses, Vec<const float> weights = {});

}  // namespace triax::ops
