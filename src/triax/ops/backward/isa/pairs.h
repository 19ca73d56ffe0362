// Tiles of BF16 pairs, for the sets that multiply them: left tiles [16 rows][32 of k], right tiles
// [16 pairs of k][16 columns].
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "triax/kernels/isa/inline.h"
#include "triax/kernels/isa/transpose16.h"
#include "triax/ops/backward/kernels.h"

namespace triax {
namespace {

TRIAX_INLINE __mmask16 first_lanes(std::size_t n) {
  return n >= 16 ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << n) - 1u);
}
TRIAX_INLINE __m512i round_both(__m512 low, __m512 high) {
  return __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high, low));
}
// 32 columns of a row, of which `seen` are there.
TRIAX_INLINE __m512i row_of_32(const float* x, std::size_t seen) {
  if (seen >= 32) return round_both(_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16));
  const std::size_t more = seen > 16 ? seen - 16 : 0;
  return round_both(_mm512_maskz_loadu_ps(first_lanes(seen), x),
                    _mm512_maskz_loadu_ps(first_lanes(more), x + (more != 0 ? 16 : 0)));
}
// Pairs of two rows, 16 columns.
TRIAX_INLINE __m512i rows_to_pairs(__m512 upper, __m512 lower) {
  const __m512i order =
      _mm512_setr_epi32(0x00100000, 0x00110001, 0x00120002, 0x00130003, 0x00140004, 0x00150005,
                        0x00160006, 0x00170007, 0x00180008, 0x00190009, 0x001A000A, 0x001B000B,
                        0x001C000C, 0x001D000D, 0x001E000E, 0x001F000F);
  return _mm512_permutexvar_epi16(order, round_both(upper, lower));
}

// A tile of 16 rows by 32 columns from column c of n on; kTurn: transposed, as pairs; kWhole: all
// of it is there.
template <bool kTurn, bool kWhole>
TRIAX_INLINE void tile_from_rows(const float* const* rows, std::size_t count, std::size_t c,
                                 std::size_t n, bf16* tile) {
  __m512i r[16];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) {
    if constexpr (kWhole) {
      r[i] = row_of_32(rows[i] + c, 32);
    } else {
      r[i] = i < count ? row_of_32(rows[i] + c, n - c) : _mm512_setzero_si512();
    }
  }
  if constexpr (kTurn) transpose16(r);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) _mm512_storeu_si512(tile + 32 * i, r[i]);
}
// A tile of 32 rows by 16 columns, as pairs of rows; kTurn: transposed.
template <bool kTurn, bool kWhole>
TRIAX_INLINE void tile_from_cols(const float* const* rows, std::size_t count, std::size_t c,
                                 std::size_t n, bf16* tile) {
  const __mmask16 seen = first_lanes(n - c);
  const auto row = [&](std::size_t i) TRIAX_LAMBDA {
    if constexpr (kWhole) return _mm512_loadu_ps(rows[i] + c);
    return i < count ? _mm512_maskz_loadu_ps(seen, rows[i] + c) : _mm512_setzero_ps();
  };
  __m512i r[16];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) r[i] = rows_to_pairs(row(2 * i), row(2 * i + 1));
  if constexpr (kTurn) transpose16(r);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) _mm512_storeu_si512(tile + 32 * i, r[i]);
}

template <bool kTurn>
void tiles_of_rows(const float* const* rows, std::size_t count, std::size_t K, bf16* tiles) {
  for (std::size_t k = 0; k < K; k += kRoundedDepth, tiles += kRoundedTile) {
    if (count == kRoundedRows && K - k >= kRoundedDepth) {
      tile_from_rows<kTurn, true>(rows, count, k, K, tiles);
    } else {
      tile_from_rows<kTurn, false>(rows, count, k, K, tiles);
    }
  }
}
template <bool kTurn>
void tiles_of_cols(const float* const* rows, std::size_t count, std::size_t N, bf16* tiles,
                   std::size_t stride) {
  for (std::size_t n = 0; n < N; n += kRoundedRows, tiles += stride) {
    if (count == kRoundedDepth && N - n >= kRoundedRows) {
      tile_from_cols<kTurn, true>(rows, count, n, N, tiles);
    } else {
      tile_from_cols<kTurn, false>(rows, count, n, N, tiles);
    }
  }
}

// C's tile at c, as far as it is there, to 16 x 16 values and back.
TRIAX_INLINE void read_part(const float* c, std::size_t ldc, std::size_t rows, std::size_t cols,
                            float* tile) {
  const __mmask16 seen = first_lanes(cols);
  for (std::size_t i = 0; i < 16; ++i) {
    _mm512_storeu_ps(tile + 16 * i,
                     i < rows ? _mm512_maskz_loadu_ps(seen, c + i * ldc) : _mm512_setzero_ps());
  }
}
TRIAX_INLINE void write_part(const float* tile, float* c, std::size_t ldc, std::size_t rows,
                             std::size_t cols) {
  const __mmask16 seen = first_lanes(cols);
  for (std::size_t i = 0; i < rows; ++i) {
    _mm512_mask_storeu_ps(c + i * ldc, seen, _mm512_loadu_ps(tile + 16 * i));
  }
}

}  // namespace
}  // namespace triax
