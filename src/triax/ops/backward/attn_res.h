// Gradient of the depth mix (Attention Residuals).
#pragma once

#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"

namespace triax::ops {

// y = sum_i p_i v_i, p = softmax(l), l_i = r_i (w . v_i), r_i = (mean(v_i^2) + eps)^-1/2:
//   dl_i = p_i (dy . v_i - dy . y);  dw += sum dl_i r_i v_i
//   dv_i += p_i dy + dl_i (r_i w - v_i r_i^3 (w . v_i) / N)
// p is recomputed. sources [S] of [T, N], the running sum last; dsources likewise, added to: a
// stored block collects from every later site. dy may not be one of dsources. At most
// kMaxMixSources sources. F is float or double. w is norm.weight * proj.weight.
inline constexpr std::size_t kMaxMixSources = 64;
template <class F>
void depth_mix_backward(Context& ctx, std::span<const Mat<const F>> sources, Vec<const F> w, F eps,
                        Mat<const F> dy, std::span<const Mat<F>> dsources, Vec<F> dw);

}  // namespace triax::ops
