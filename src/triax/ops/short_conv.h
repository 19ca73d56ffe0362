// Depthwise causal convolution with SiLU over a ragged batch.
#pragma once

#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/segments.h"

namespace triax::ops {

// The last taps - 1 inputs of a sequence, oldest first: [taps-1, C] float32 or BF16.
struct ConvTail {
  void* data = nullptr;
  DType dtype = DType::F32;
};

// y[t, c] = silu(sum_j w[j, c] x[t - (taps-1) + j, c]): the last tap meets the current token.
// x, y [T, C], x already rounded as the tail stores it; w [taps, C] float32 (transposed from the
// file's [C, 1, taps]). tails[s] belongs to segments[s] and ends up holding its newest inputs.
void short_conv(Context& ctx, Mat<const float> x, Mat<const float> w,
                std::span<const Segment> segments, std::span<const ConvTail> tails, Mat<float> y);

}  // namespace triax::ops
