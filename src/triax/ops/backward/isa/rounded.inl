// Products of rounded numbers without instructions for them: left tiles [16 rows][32 of k], right
// tiles [32 of k][16 columns], widened as they are multiplied.
#pragma once

#include "triax/kernels/isa/elementwise.inl"
#include "triax/ops/backward/kernels.h"

namespace triax {
namespace {

// `rows` rows of `width` columns from column c of n to tile rows `width` wide, zeros where there is
// nothing.
template <std::size_t kHeight, std::size_t kColumns>
TRIAX_INLINE void tile_straight(const float* const* rows, std::size_t count, std::size_t c,
                                std::size_t n, bf16* tile) {
  const std::size_t seen = n - c < kColumns ? n - c : kColumns;
  for (std::size_t i = 0; i < kHeight; ++i, tile += kColumns) {
    for (std::size_t j = 0; j < kColumns; j += kWidth) {
      F v = zero();
      if (i < count && j < seen) {
        v = seen - j >= kWidth ? load(rows[i] + c + j) : load_n(rows[i] + c + j, seen - j);
      }
      store(tile + j, v);
    }
  }
}
// The same, transposed: tile rows are columns.
template <std::size_t kHeight, std::size_t kColumns>
TRIAX_INLINE void tile_turned(const float* const* rows, std::size_t count, std::size_t c,
                              std::size_t n, bf16* tile) {
  const std::size_t seen = n - c < kColumns ? n - c : kColumns;
  float turned[kHeight * kColumns];
  for (std::size_t j = 0; j < kColumns; ++j) {
    for (std::size_t i = 0; i < kHeight; ++i) {
      turned[j * kHeight + i] = i < count && j < seen ? rows[i][c + j] : 0.0f;
    }
  }
  for (std::size_t i = 0; i < kHeight * kColumns; i += kWidth) store(tile + i, load(turned + i));
}

void left_of_rows(const float* const* rows, std::size_t count, std::size_t K, bf16* tiles) {
  for (std::size_t k = 0; k < K; k += kRoundedDepth, tiles += kRoundedTile) {
    tile_straight<kRoundedRows, kRoundedDepth>(rows, count, k, K, tiles);
  }
}
void right_of_rows(const float* const* rows, std::size_t count, std::size_t K, bf16* tiles) {
  for (std::size_t k = 0; k < K; k += kRoundedDepth, tiles += kRoundedTile) {
    tile_turned<kRoundedRows, kRoundedDepth>(rows, count, k, K, tiles);
  }
}
void left_of_cols(const float* const* rows, std::size_t count, std::size_t N, bf16* tiles,
                  std::size_t stride) {
  for (std::size_t n = 0; n < N; n += kRoundedRows, tiles += stride) {
    tile_turned<kRoundedDepth, kRoundedRows>(rows, count, n, N, tiles);
  }
}
void right_of_cols(const float* const* rows, std::size_t count, std::size_t N, bf16* tiles,
                   std::size_t stride) {
  for (std::size_t n = 0; n < N; n += kRoundedRows, tiles += stride) {
    tile_straight<kRoundedDepth, kRoundedRows>(rows, count, n, N, tiles);
  }
}

// Rows by 16 columns at a time.
constexpr int kTileVectors = static_cast<int>(kRoundedRows / kWidth);
constexpr std::size_t kTileRows = kTileVectors == 1 ? 8 : 4;

// kTileRows rows of a left tile row by a right tile column, over all tiles of k.
TRIAX_INLINE void rounded_block(const bf16* left, const bf16* right, std::size_t depth,
                                std::size_t first_row, float* sums) {
  F acc[kTileRows][kTileVectors];
  for (std::size_t m = 0; m < kTileRows; ++m) {
    for (int v = 0; v < kTileVectors; ++v) acc[m][v] = load(sums + m * kRoundedRows + v * kWidth);
  }
  for (std::size_t g = 0; g < depth; ++g) {
    float a[kTileRows * kRoundedDepth];
    const bf16* rows = left + g * kRoundedTile + first_row * kRoundedDepth;
    for (std::size_t i = 0; i < kTileRows * kRoundedDepth; i += kWidth)
      store(a + i, load(rows + i));
    const bf16* b = right + g * kRoundedTile;
    for (std::size_t k = 0; k < kRoundedDepth; ++k) {
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        const F column = load(b + k * kRoundedRows + v * kWidth);
#pragma GCC unroll 8
        for (std::size_t m = 0; m < kTileRows; ++m) {
          acc[m][v] = fma(set1(a[m * kRoundedDepth + k]), column, acc[m][v]);
        }
      }
    }
  }
  for (std::size_t m = 0; m < kTileRows; ++m) {
    for (int v = 0; v < kTileVectors; ++v) store(sums + m * kRoundedRows + v * kWidth, acc[m][v]);
  }
}

void rounded_product(const bf16* left, std::size_t left_stride, const bf16* right,
                     std::size_t right_stride, std::size_t M, std::size_t N, std::size_t depth,
                     float* C, std::size_t ldc, bool accumulate) {
  for (std::size_t n = 0; n < N; n += kRoundedRows, right += right_stride) {
    const std::size_t cols = N - n < kRoundedRows ? N - n : kRoundedRows;
    for (std::size_t m = 0; m < M; m += kTileRows) {
      const std::size_t rows = M - m < kTileRows ? M - m : kTileRows;
      float sums[kTileRows * kRoundedRows] = {};
      float* c = C + m * ldc + n;
      for (std::size_t i = 0; accumulate && i < rows; ++i) {
        for (std::size_t j = 0; j < cols; ++j) sums[i * kRoundedRows + j] = c[i * ldc + j];
      }
      rounded_block(left + m / kRoundedRows * left_stride, right, depth, m % kRoundedRows, sums);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < cols; ++j) c[i * ldc + j] = sums[i * kRoundedRows + j];
      }
    }
  }
}

}  // namespace
}  // namespace triax
