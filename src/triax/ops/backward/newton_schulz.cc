// Newton-Schulz on one matrix.
#include "triax/ops/backward/newton_schulz.h"

#include "triax/ops/backward/loops.h"
#include "triax/ops/backward/rounded_tiles.h"

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

namespace {

// The two operands that are made of X, and those of the Gram matrix or the polynomial of it. X is
// never transposed: with more rows than columns the products run over its rows.
struct RoundedScratch {
  Tiles gram_left, gram_right;  // of X
  Tiles x;                      // X as the factor of the polynomial
  Tiles small_left, small_right;
  float *gram, *poly;  // [r, r]
  std::size_t numbers;

  RoundedScratch(float* memory, std::size_t rows, std::size_t cols) {
    const std::size_t r = std::min(rows, cols), c = std::max(rows, cols);
    std::size_t used = 0;
    const auto take = [&](std::size_t n) {
      float* at = memory == nullptr ? nullptr : memory + used;
      used += round_up(n, kAlignment / sizeof(float));
      return at;
    };
    const auto tiles = [&](std::size_t n, std::size_t k) {
      return Tiles(reinterpret_cast<bf16*>(take(Tiles::size(n, k) / 2)), k);
    };
    gram_left = tiles(r, c), gram_right = tiles(r, c);
    x = tiles(c, r);
    small_left = tiles(r, r), small_right = tiles(r, r);
    gram = take(r * r), poly = take(r * r);
    numbers = used;
  }
};

}  // namespace

std::size_t rounded_newton_schulz_scratch(std::size_t rows, std::size_t cols) {
  return RoundedScratch(nullptr, rows, cols).numbers;
}

void rounded_newton_schulz(Mat<const float> u, Mat<float> out, float* scratch) {
  constexpr float a = 3.4445f, b = -4.7750f, c = 2.0315f;
  TRIAX_CHECK(u.shape == out.shape && u.dense() && out.dense());
  const KernelTable& table = kernels();
  const RoundedKernels& k = *training_kernels().rounded;
  const std::size_t R = u.shape[0], C = u.shape[1], r = std::min(R, C);
  const bool tall = R > C;
  const RoundedScratch m(scratch, R, C);
  const Mat<float> gram(m.gram, {r, r}), poly(m.poly, {r, r});
  float squares = 0;
  for (std::size_t i = 0; i < R; ++i) squares += table.sum_squares(u[i].data, C);
  table.scale(1 / (std::sqrt(squares) + 1e-7f), u.data, R * C, out.data);
  for (std::size_t step = 0; step < kNewtonSchulzSteps; ++step) {
    if (tall) {
      left_of_cols(k, out, m.gram_left);
      right_of_cols(k, out, m.gram_right);
      left_of_rows(k, out, m.x);
    } else {
      left_of_rows(k, out, m.gram_left);
      right_of_rows(k, out, m.gram_right);
      right_of_cols(k, out, m.x);
    }
    multiply(k, m.gram_left, m.gram_right, gram, false);
    left_of_rows(k, gram, m.small_left);  // symmetric: rows are columns
    right_of_rows(k, gram, m.small_right);
    multiply(k, m.small_left, m.small_right, poly, false);
    table.scale(c, poly.data, r * r, poly.data);
    table.axpy(b, gram.data, r * r, poly.data);
    for (std::size_t i = 0; i < r; ++i) poly[i][i] += a;
    if (tall) {
      right_of_rows(k, poly, m.small_right);
      multiply(k, m.x, m.small_right, out, false);
    } else {
      left_of_rows(k, poly, m.small_left);
      multiply(k, m.small_left, m.x, out, false);
    }
  }
}

template void newton_schulz<float>(Mat<const float>, Mat<float>, float*);
template void newton_schulz<double>(Mat<const double>, Mat<double>, double*);

}  // namespace triax::ops
