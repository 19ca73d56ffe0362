// Orthogonalisation of an update matrix: Muon's Newton-Schulz iteration.
#pragma once

#include <cstddef>

#include "triax/core/view.h"

namespace triax::ops {

inline constexpr std::size_t kNewtonSchulzSteps = 5;

// out = NS5(u): X = u / (|u|_F + 1e-7), transposed so that rows <= columns, then five times
// X <- 3.4445 X + (-4.7750 X X^T + 2.0315 (X X^T)^2) X. Singular values end between about 0.7 and
// 1.2, directions stay. u, out [R, C], not the same; runs on the calling thread. `scratch` holds
// newton_schulz_scratch(R, C) numbers. F is float or double.
std::size_t newton_schulz_scratch(std::size_t rows, std::size_t cols);
template <class F>
void newton_schulz(Mat<const F> u, Mat<F> out, F* scratch);

// The same in float32 with the factors of its products rounded to BF16 (Products::bf16). u and out
// are dense.
std::size_t rounded_newton_schulz_scratch(std::size_t rows, std::size_t cols);
void rounded_newton_schulz(Mat<const float> u, Mat<float> out, float* scratch);

}  // namespace triax::ops
