// Products with trunk weights: y = x W^T, W [out, in] as stored.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "triax/core/context.h"
#include "triax/core/matrix.h"
#include "triax/core/view.h"

namespace triax::ops {

struct LinearJob {
  MatrixView w;  // [N, K]
  Mat<float> y;  // [T, N]
};

// y = x W^T for every job; x [T, K] float32. In bf16 mode x is rounded to BF16 first (once for all
// jobs). One work list over all jobs, so several projections of the same x cost one barrier.
void linear(Context& ctx, Mat<const float> x, std::span<const LinearJob> jobs);
void linear(Context& ctx, Mat<const float> x, const MatrixView& w, Mat<float> y);

// The same with float32 x in both modes: router, decay and write-strength projections.
void linear_f32(Context& ctx, Mat<const float> x, std::span<const LinearJob> jobs);
void linear_f32(Context& ctx, Mat<const float> x, const MatrixView& w, Mat<float> y);

// y[t] = table[ids[t]] as float32. ids within the table (checked).
void embed(Context& ctx, const MatrixView& table, Vec<const std::int32_t> ids, Mat<float> y);

}  // namespace triax::ops
