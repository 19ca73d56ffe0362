// Rounded products by the instruction for BF16 pairs.
#include "triax/ops/backward/isa/pairs.h"

namespace triax {
namespace {

constexpr int kRows = 8, kColumns = 2;  // rows, tiles of columns at a time

// `first_row`: of the left tile; sums [kRows][kColumns] vectors.
template <int kCols>
TRIAX_INLINE void block(const bf16* left, const bf16* right, std::size_t right_stride,
                        std::size_t depth, __m512 (&acc)[kRows][kCols]) {
  for (std::size_t g = 0; g < depth; ++g, left += kRoundedTile, right += kRoundedTile) {
    for (std::size_t p = 0; p < 16; ++p) {
      __m512bh b[kCols];
#pragma GCC unroll 2
      for (int v = 0; v < kCols; ++v) {
        b[v] = __builtin_bit_cast(__m512bh, _mm512_loadu_si512(right + v * right_stride + 32 * p));
      }
#pragma GCC unroll 8
      for (int m = 0; m < kRows; ++m) {
        int pair;
        __builtin_memcpy(&pair, left + 32 * m + 2 * p, sizeof pair);
        const auto a = __builtin_bit_cast(__m512bh, _mm512_set1_epi32(pair));
#pragma GCC unroll 2
        for (int v = 0; v < kCols; ++v) acc[m][v] = _mm512_dpbf16_ps(acc[m][v], a, b[v]);
      }
    }
  }
}

template <int kCols>
TRIAX_INLINE void columns(const bf16* left, std::size_t left_stride, const bf16* right,
                          std::size_t right_stride, std::size_t M, std::size_t N, std::size_t depth,
                          float* C, std::size_t ldc, bool accumulate) {
  for (std::size_t m = 0; m < M; m += kRows) {
    const std::size_t rows = M - m < kRows ? M - m : kRows;
    __m512 acc[kRows][kCols];
    const auto seen = [&](int v) TRIAX_LAMBDA { return first_lanes(N - 16 * v); };
    float* c = C + m * ldc;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kCols; ++v) {
        acc[i][v] = accumulate && i < rows ? _mm512_maskz_loadu_ps(seen(v), c + i * ldc + 16 * v)
                                           : _mm512_setzero_ps();
      }
    }
    block<kCols>(left + m / kRoundedRows * left_stride + m % kRoundedRows * kRoundedDepth, right,
                 right_stride, depth, acc);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      if (i >= rows) continue;
#pragma GCC unroll 2
      for (int v = 0; v < kCols; ++v) {
        _mm512_mask_storeu_ps(c + i * ldc + 16 * v, seen(v), acc[i][v]);
      }
    }
  }
}

void product(const bf16* left, std::size_t left_stride, const bf16* right, std::size_t right_stride,
             std::size_t M, std::size_t N, std::size_t depth, float* C, std::size_t ldc,
             bool accumulate) {
  std::size_t n = 0;
  for (; n + kRoundedRows < N; n += kColumns * kRoundedRows) {
    columns<kColumns>(left, left_stride, right + n / kRoundedRows * right_stride, right_stride, M,
                      N - n, depth, C + n, ldc, accumulate);
  }
  if (n < N) {
    columns<1>(left, left_stride, right + n / kRoundedRows * right_stride, right_stride, M, N - n,
               depth, C + n, ldc, accumulate);
  }
}

}  // namespace

const RoundedKernels* training_avx512bf16() {
  static constexpr RoundedKernels table{.left_of_rows = tiles_of_rows<false>,
                                        .right_of_rows = tiles_of_rows<true>,
                                        .left_of_cols = tiles_of_cols<true>,
                                        .right_of_cols = tiles_of_cols<false>,
                                        .product = product};
  return &table;
}

}  // namespace triax
