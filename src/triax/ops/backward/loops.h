// The loops that backward passes are made of, for both number types: float32 goes to the kernel
// table, float64 (the oracle of the gradient checks) to plain loops. One source for both: a
// backward pass is a template over F, instantiated for float and double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/kernels/kernels.h"
#include "triax/ops/split.h"

namespace triax::ops::loops {

template <class F>
concept Number = std::is_same_v<F, float> || std::is_same_v<F, double>;

// ---- Rows of n elements
// --------------------------------------------------------------------------

// sum a b. Eight sums side by side in float64.
template <Number F>
F dot(const F* a, const F* b, std::size_t n) {
  if constexpr (std::is_same_v<F, float>) {
    return kernels().dot(a, b, n);
  } else {
    F sum[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      for (std::size_t j = 0; j < 8; ++j) sum[j] += a[i + j] * b[i + j];
    }
    for (; i < n; ++i) sum[0] += a[i] * b[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  }
}

template <Number F>
void axpy(F a, const F* x, std::size_t n, F* y) {  // y += a x
  if constexpr (std::is_same_v<F, float>) {
    kernels().axpy(a, x, n, y);
  } else {
    for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
  }
}

template <Number F>
void scale(F a, const F* x, std::size_t n, F* y) {  // a x
  if constexpr (std::is_same_v<F, float>) {
    kernels().scale(a, x, n, y);
  } else {
    for (std::size_t i = 0; i < n; ++i) y[i] = a * x[i];
  }
}

template <Number F>
F largest(const F* x, std::size_t n) {  // n >= 1
  if constexpr (std::is_same_v<F, float>) {
    return kernels().max(x, n);
  } else {
    return *std::max_element(x, x + n);
  }
}

template <Number F>
void sigmoid(const F* x, std::size_t n, F* y) {
  if constexpr (std::is_same_v<F, float>) {
    kernels().sigmoid(x, n, y);
  } else {
    for (std::size_t i = 0; i < n; ++i) y[i] = 1 / (1 + std::exp(-x[i]));
  }
}

// tanh(x / width). In float32 as 2 sigmoid(2x) - 1: the error is 1e-7 of the largest value, 1.
template <Number F>
void tanh_over(const F* x, F width, std::size_t n, F* y) {
  if constexpr (std::is_same_v<F, float>) {
    for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * (2 / width);
    kernels().sigmoid(y, n, y);
    for (std::size_t i = 0; i < n; ++i) y[i] = 2 * y[i] - 1;
  } else {
    for (std::size_t i = 0; i < n; ++i) y[i] = std::tanh(x[i] / width);
  }
}

template <Number F>
void exp(const F* x, std::size_t n, F* y) {
  if constexpr (std::is_same_v<F, float>) {
    kernels().exp(x, n, y);
  } else {
    for (std::size_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
  }
}

// y = exp(x - shift), their sum
template <Number F>
F exp_sum(const F* x, F shift, std::size_t n, F* y) {
  if constexpr (std::is_same_v<F, float>) {
    return kernels().exp_sum(x, shift, n, y);
  } else {
    F sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - shift);
    return sum;
  }
}

// (mean x^2 + eps)^-1/2
template <Number F>
F inverse_rms(const F* x, F eps, std::size_t n) {
  return 1 / std::sqrt(dot(x, x, n) / static_cast<F>(n) + eps);
}

// ---- Products: C [M, N] (+)= A B^T, A B, A^T B; K is what is summed over
// --------------------------

template <Number F>
void gemm_nt(const F* A, std::size_t lda, const F* B, std::size_t ldb, F* C, std::size_t ldc,
             std::size_t M, std::size_t N, std::size_t K, bool accumulate) {
  if constexpr (std::is_same_v<F, float>) {
    kernels().gemm_nt(A, lda, B, ldb, C, ldc, M, N, K, accumulate);
  } else {
    for (std::size_t m = 0; m < M; ++m) {
      for (std::size_t n = 0; n < N; ++n) {
        const F sum = dot(A + m * lda, B + n * ldb, K);
        C[m * ldc + n] = accumulate ? C[m * ldc + n] + sum : sum;
      }
    }
  }
}

template <Number F>
void gemm_nn(const F* A, std::size_t lda, const F* B, std::size_t ldb, F* C, std::size_t ldc,
             std::size_t M, std::size_t N, std::size_t K, bool accumulate) {
  if constexpr (std::is_same_v<F, float>) {
    kernels().gemm_nn(A, lda, B, ldb, C, ldc, M, N, K, accumulate);
  } else {
    for (std::size_t m = 0; m < M; ++m) {
      if (!accumulate) std::fill_n(C + m * ldc, N, F{0});
      for (std::size_t k = 0; k < K; ++k) axpy(A[m * lda + k], B + k * ldb, N, C + m * ldc);
    }
  }
}

template <Number F>
void gemm_tn(const F* A, std::size_t lda, const F* B, std::size_t ldb, F* C, std::size_t ldc,
             std::size_t M, std::size_t N, std::size_t K, bool accumulate) {
  if constexpr (std::is_same_v<F, float>) {
    kernels().gemm_tn(A, lda, B, ldb, C, ldc, M, N, K, accumulate);
  } else {
    for (std::size_t m = 0; m < M; ++m) {
      if (!accumulate) std::fill_n(C + m * ldc, N, F{0});
      for (std::size_t k = 0; k < K; ++k) axpy(A[k * lda + m], B + k * ldb, N, C + m * ldc);
    }
  }
}

// ---- Sums over rows
// ------------------------------------------------------------------------------

// out [n] += the sum over blocks of rows of what f(begin, end, partial) adds to its `partial` [n],
// which starts at zero. Blocks depend on the shape alone and are added in order, so the sum is the
// same for any number of threads. `row_elements`: the work of a row. Behind the n sums lie
// `scratch` elements for the work's own use.
template <Number F, class Work>
void sum_over_rows(Context& ctx, std::size_t rows, std::size_t row_elements, std::size_t n, F* out,
                   Work&& f, std::size_t scratch = 0) {
  if (rows == 0) return;
  const Arena::Scope scope(ctx.arena);
  const std::size_t block =
      std::max<std::size_t>(kItemElements / std::max<std::size_t>(row_elements, 1), 1);
  const std::size_t blocks = ceil_div(rows, block);
  const Mat<F> partial = ctx.arena.take_mat<F>(blocks, n + scratch);
  ctx.pool.parallel_for(blocks, [&](std::size_t b, std::size_t) {
    std::fill_n(partial[b].data, n, F{0});
    f(b * block, std::min(rows, (b + 1) * block), partial[b].data);
  });
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t i = 0; i < n; ++i) out[i] += partial[b][i];
  }
}

}  // namespace triax::ops::loops
