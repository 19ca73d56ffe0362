// Gradient of the short convolution with SiLU.
#pragma once

#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/segments.h"

namespace triax::ops {

// y[t, c] = silu(p[t, c]), p[t, c] = sum_j w[j, c] x[t - (taps-1) + j, c], x zero before a
// segment's first row. With dp = dy sigmoid(p) (1 + p (1 - sigmoid(p))): dx[t] = sum_j w[j] dp[t +
// (taps-1) - j] inside the segment (written);  dw[j] += sum_t dp[t] x[t - (taps-1) + j], segments
// and rows in order. x, dy, dx [T, C]; w, dw [taps, C], at most 8 taps. Rows outside the segments
// are left alone. F is float or double.
template <class F>
void short_conv_backward(Context& ctx, Mat<const F> x, Mat<const F> w,
                         std::span<const Segment> segments, Mat<const F> dy, Mat<F> dx, Mat<F> dw);

}  // namespace triax::ops
