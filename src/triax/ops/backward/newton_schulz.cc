// Newton-Schulz on one matrix.
#include "triax/ops/backward/newton_schulz.h"

#include "triax/ops/backward/loops.h"

namespace triax::ops {

// X and its successor [r, c], X X^T and its polynomial [r, r]
std::size_t newton_schulz_scratch(std::size_t rows, std::size_t cols) {
  const std::size_t r = std::min(rows, cols);
  return 2 * rows * cols + 2 * r * r;
}

template <class F>
void newton_schulz(Mat<const F> u, Mat<F> out, F* scratch) {
  constexpr F a = static_cast<F>(3.4445), b = static_cast<F>(-4.7750), c = static_cast<F>(2.0315);
  TRIAX_CHECK(u.shape == out.shape);
  const bool turned = u.shape[0] > u.shape[1];
  const std::size_t rows = std::min(u.shape[0], u.shape[1]);
  const std::size_t cols = std::max(u.shape[0], u.shape[1]);
  F *x = scratch, *next = x + rows * cols, *gram = next + rows * cols, *poly = gram + rows * rows;
  F squares = 0;
  for (std::size_t i = 0; i < u.shape[0]; ++i) {
    squares += loops::dot(u[i].data, u[i].data, u.shape[1]);
  }
  const F factor = 1 / (std::sqrt(squares) + static_cast<F>(1e-7));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) {
      x[i * cols + j] = factor * (turned ? u[j][i] : u[i][j]);
    }
  }
  for (std::size_t step = 0; step < kNewtonSchulzSteps; ++step) {
    loops::gemm_nt(x, cols, x, cols, gram, rows, rows, rows, cols, false);
    loops::gemm_nn(gram, rows, gram, rows, poly, rows, rows, rows, rows, false);
    for (std::size_t i = 0; i < rows * rows; ++i) poly[i] = b * gram[i] + c * poly[i];
    for (std::size_t i = 0; i < rows; ++i) poly[i * rows + i] += a;
    loops::gemm_nn(poly, rows, x, cols, next, cols, rows, cols, rows, false);
    std::swap(x, next);
  }
  for (std::size_t i = 0; i < u.shape[0]; ++i) {
    for (std::size_t j = 0; j < u.shape[1]; ++j) {
      out[i][j] = turned ? x[j * cols + i] : x[i * cols + j];
    }
  }
}

template void newton_schulz<float>(Mat<const float>, Mat<float>, float*);
template void newton_schulz<double>(Mat<const double>, Mat<double>, double*);

}  // namespace triax::ops
