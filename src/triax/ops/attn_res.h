// Attention Residuals: a learned softmax over earlier block sums and the running sum.
#pragma once

#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"

namespace triax::ops {

// score_i = sum_d w_d v_i,d / sqrt(mean(v_i^2) + eps);  y = sum_i softmax(score)_i v_i (raw v_i).
// sources: each [T, N], the running sum last; w [N] = norm.weight * proj.weight[0]. y may be one of
// the sources. probs and scores ([T, sources], row stride free) are written when not empty.
void depth_mix(Context& ctx, std::span<const Mat<const float>> sources, Vec<const float> w,
               float eps, Mat<float> y, Mat<float> probs = {}, Mat<float> scores = {});

}  // namespace triax::ops
