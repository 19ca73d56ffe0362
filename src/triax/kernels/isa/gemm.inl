// A B and A^T B: each output is one chain of sums over k ascending, so tiles change nothing.
#pragma once

namespace triax {
namespace {

// A as [M, K] or, transposed, as [K, M]: element (m, k) at m * row + k * col.
struct Strided {
  const float* p;
  std::size_t row, col;
};

// MR rows by NV vectors of columns at c; `rest` > 0: the last (only) vector has that many columns.
template <int MR, int NV, class B>
TRIAX_INLINE void gemm_tile(Strided A, const B* b, std::size_t ldb, float* c, std::size_t ldc,
                            std::size_t K, std::size_t rest, bool accumulate) {
  F acc[MR][NV];
  for (int m = 0; m < MR; ++m) {
    for (int v = 0; v < NV; ++v) acc[m][v] = zero();
  }
  for (std::size_t k = 0; k < K; ++k) {
    F bv[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      bv[v] = rest != 0 ? load_n(b + k * ldb, rest) : load(b + k * ldb + v * kWidth);
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) {
      const F a = set1(A.p[m * A.row + k * A.col]);
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) acc[m][v] = fma(a, bv[v], acc[m][v]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      float* at = c + m * ldc + v * kWidth;
      if (rest != 0) {
        store_n(at, accumulate ? add(load_n(at, rest), acc[m][v]) : acc[m][v], rest);
      } else {
        store(at, accumulate ? add(load(at), acc[m][v]) : acc[m][v]);
      }
    }
  }
}

// MR rows by N columns.
template <int MR, int NV, class B>
void gemm_rows(Strided A, const B* b, std::size_t ldb, float* c, std::size_t ldc, std::size_t N,
               std::size_t K, bool accumulate) {
  std::size_t n = 0;
  for (; n + NV * kWidth <= N; n += NV * kWidth) {
    gemm_tile<MR, NV>(A, b + n, ldb, c + n, ldc, K, 0, accumulate);
  }
  if constexpr (NV > 1) {
    if (n < N) gemm_rows<MR, NV / 2>(A, b + n, ldb, c + n, ldc, N - n, K, accumulate);
  } else if (n < N) {
    gemm_tile<MR, 1>(A, b + n, ldb, c + n, ldc, K, N - n, accumulate);
  }
}

template <class B>
TRIAX_INLINE void gemm(Strided A, const B* b, std::size_t ldb, float* c, std::size_t ldc,
                       std::size_t M, std::size_t N, std::size_t K, bool accumulate) {
  std::size_t m = 0;
  const auto rows_at = [&](std::size_t at) { return Strided{A.p + at * A.row, A.row, A.col}; };
  for (; m + kGemmRows <= M; m += kGemmRows) {
    gemm_rows<kGemmRows, kGemmVectors>(rows_at(m), b, ldb, c + m * ldc, ldc, N, K, accumulate);
  }
  for (; m < M; ++m) {
    gemm_rows<1, kGemmVectors>(rows_at(m), b, ldb, c + m * ldc, ldc, N, K, accumulate);
  }
}

void gemm_nn(const float* A, std::size_t lda, const float* B, std::size_t ldb, float* C,
             std::size_t ldc, std::size_t M, std::size_t N, std::size_t K, bool accumulate) {
  gemm(Strided{A, lda, 1}, B, ldb, C, ldc, M, N, K, accumulate);
}
void gemm_nn_bf16(const float* A, std::size_t lda, const bf16* B, std::size_t ldb, float* C,
                  std::size_t ldc, std::size_t M, std::size_t N, std::size_t K, bool accumulate) {
  gemm(Strided{A, lda, 1}, B, ldb, C, ldc, M, N, K, accumulate);
}
void gemm_tn(const float* A, std::size_t lda, const float* B, std::size_t ldb, float* C,
             std::size_t ldc, std::size_t M, std::size_t N, std::size_t K, bool accumulate) {
  gemm(Strided{A, 1, lda}, B, ldb, C, ldc, M, N, K, accumulate);
}

}  // namespace
}  // namespace triax
