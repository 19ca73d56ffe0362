// The amx kernels: BF16 products of many rows by tiles of 16 rows by 64 bytes, sums in float32.
//
// Rows of weights are the left operand, 16 of them a tile, loaded from where they lie. Rows of x
// are the right operand and are packed for it once: [M / 16][K / 32] tiles of [16 pairs of k][16
// rows] BF16 pairs, one KiB each. The product of a tile pair is 16 weights rows x 16 rows of x,
// transposed on its way to y. TDPBF16PS adds the pairs of k one after the other, so an output is
// one chain of sums over k, whatever lies beside it in a tile. It counts subnormal numbers as zero.
#include <immintrin.h>

#include "triax/kernels/isa/simd_avx512.h"
#include "triax/kernels/kernels.h"

namespace triax {
namespace {

constexpr std::size_t kTile = kMatrixTile;           // rows of a tile
constexpr std::size_t kTileK = kMatrixTileCols;      // BF16 columns of a tile
constexpr std::size_t kTileValues = kTile * kTileK;  // BF16 values

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes[16] = {};
  std::uint8_t rows[16] = {};
};

constexpr TileConfig full_tiles() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.bytes[i] = 64;
    config.rows[i] = kTile;
  }
  return config;
}
constexpr TileConfig kFullTiles = full_tiles();

// The tile intrinsics of GCC 12 do not tell the compiler that they read memory: what they read must
// be written before.
TRIAX_INLINE void memory_is_written() {
  asm volatile("" ::: "memory");
}

// All eight tiles full size, while it lives.
class Tiles {
 public:
  TRIAX_INLINE Tiles() { _tile_loadconfig(&kFullTiles); }
  TRIAX_INLINE ~Tiles() { _tile_release(); }
};

// Sixteen vectors as a matrix of 32-bit values, transposed in place.
TRIAX_INLINE void transpose16(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD);
  }
}

// Rows of x [M, K] float32 as packed tiles of a matrix `cols` wide; rows past M are zero.
void pack_rows(const float* const* x, std::size_t M, std::size_t K, bf16* packed,
               std::size_t cols) {
  for (std::size_t m = 0; m < M; m += kTile) {
    const std::size_t rows = M - m < kTile ? M - m : kTile;
    bf16* to = packed + m * cols;
    for (std::size_t k = 0; k < K; k += kTileK, to += kTileValues) {
      __m512i r[16];
      for (std::size_t i = 0; i < kTile; ++i) {
        r[i] = _mm512_setzero_si512();
        if (i >= rows) continue;
        const float* p = x[m + i] + k;
        r[i] = __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(load(p + 16), load(p)));
      }
      transpose16(r);
      for (std::size_t i = 0; i < kTile; ++i) _mm512_storeu_si512(to + i * kTileK, r[i]);
    }
  }
}

// 16 x 16 sums [weight row][x row] to y[x row][weight row]; `rows` of x.
TRIAX_INLINE void write_tile(const float* tile, float* y, std::size_t ldy, std::size_t rows) {
  __m512i r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(tile + 16 * i);
  transpose16(r);
  for (std::size_t i = 0; i < rows; ++i) _mm512_storeu_si512(y + i * ldy, r[i]);
}

// Memory that will be read soon, brought to the second-level cache bit by bit. Rows of weights are
// read tile by tile, many rows at once: the processor's own prefetching follows no such pattern.
class Ahead {
 public:
  TRIAX_INLINE Ahead(const void* from, std::size_t bytes)
      : at_(static_cast<const char*>(from)), end_(from == nullptr ? at_ : at_ + bytes) {}
  TRIAX_INLINE std::size_t lines() const { return static_cast<std::size_t>(end_ - at_ + 63) / 64; }
  TRIAX_INLINE void step(std::size_t lines) {
    for (; lines > 0 && at_ < end_; --lines, at_ += 64) _mm_prefetch(at_, _MM_HINT_T1);
  }

 private:
  const char *at_, *end_;
};

// Two tiles of weight rows: the first at w, the second `second` values behind it; the next tiles
// along k `k_step` values on; their rows `stride` bytes apart. The second tile's outputs are
// `lower` columns behind the first's.
struct WeightTiles {
  const bf16* w;
  std::size_t second, k_step;
  long stride;
  std::size_t lower;
};

// Against one or two tiles of rows of x, all of K.
template <bool kTwo>
TRIAX_INLINE void tile_pair(const WeightTiles& t, const bf16* x, std::size_t K, float* y,
                            std::size_t ldy, std::size_t rows, Ahead& ahead, std::size_t lines) {
  const bf16 *w0 = t.w, *w1 = t.w + t.second, *x1 = x + kTile * K;
  memory_is_written();
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTwo) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::size_t k = 0; k < K / kTileK; ++k) {
    _tile_loadd(4, w0 + k * t.k_step, t.stride);
    _tile_loadd(6, x + k * kTileValues, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, w1 + k * t.k_step, t.stride);
    _tile_dpbf16ps(1, 5, 6);
    if constexpr (kTwo) {
      _tile_loadd(7, x1 + k * kTileValues, 64);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    ahead.step(lines);
  }
  alignas(64) float sums[4][kTile * kTile];
  const std::size_t first = rows < kTile ? rows : kTile;
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  write_tile(sums[0], y, ldy, first);
  write_tile(sums[1], y + t.lower, ldy, first);
  if constexpr (kTwo) {
    _tile_stored(2, sums[2], 64);
    _tile_stored(3, sums[3], 64);
    write_tile(sums[2], y + kTile * ldy, ldy, rows - kTile);
    write_tile(sums[3], y + kTile * ldy + t.lower, ldy, rows - kTile);
  }
}

// Against all rows of x; what `ahead` names is fetched meanwhile.
TRIAX_INLINE void tile_rows(const WeightTiles& t, const bf16* packed, std::size_t M, std::size_t K,
                            float* y, std::size_t ldy, Ahead ahead) {
  const std::size_t steps = (M + 2 * kTile - 1) / (2 * kTile) * (K / kTileK);
  const std::size_t lines = (ahead.lines() + steps - 1) / steps;
  for (std::size_t m = 0; m < M; m += 2 * kTile) {
    const std::size_t rows = M - m < 2 * kTile ? M - m : 2 * kTile;
    if (rows > kTile) {
      tile_pair<true>(t, packed + m * K, K, y + m * ldy, ldy, rows, ahead, lines);
    } else {
      tile_pair<false>(t, packed + m * K, K, y + m * ldy, ldy, rows, ahead, lines);
    }
  }
}

// Steps of 32 rows of weights; where N is no multiple of 32 the last step overlaps the one before
// (the same sums again), and of 16 to 31 rows the two tiles do. f(first row, offset of the lower
// tile, whether another step follows)
template <class F>
TRIAX_INLINE void for_row_pairs(std::size_t N, F&& f) {
  if (N < 2 * kTile) return f(std::size_t{0}, N - kTile, false);
  for (std::size_t n = 0; n < N; n += 2 * kTile) {
    f(n + 2 * kTile <= N ? n : N - 2 * kTile, kTile, n + 2 * kTile < N);
  }
}

// Rows of weights whose length is a power of two lie in the same sets of the first cache, so for
// many rows of x they are copied to tiles that lie one behind the other: [K / 32][2][16 rows][32].
constexpr std::size_t kCopyFrom = 4 * kTile;  // rows of x

void product_bf16(const bf16* packed, std::size_t M, const bf16* w, std::size_t ldw, std::size_t N,
                  std::size_t K, float* y, std::size_t ldy, float* scratch) {
  const Tiles tiles;
  bf16* copy = reinterpret_cast<bf16*>(scratch);
  const std::size_t step_bytes = 2 * kTile * ldw * sizeof(bf16);
  Ahead(w, N < 2 * kTile ? N * ldw * sizeof(bf16) : step_bytes).step(~std::size_t{0});
  for_row_pairs(N, [&](std::size_t n, std::size_t lower, bool more) TRIAX_LAMBDA {
    const bf16* rows = w + n * ldw;
    const Ahead next(more ? rows + 2 * kTile * ldw : nullptr, step_bytes);
    if (M < kCopyFrom) {
      const WeightTiles t{rows, lower * ldw, kTileK, static_cast<long>(2 * ldw), lower};
      tile_rows(t, packed, M, K, y + n, ldy, next);
      return;
    }
    // Column tile by column tile: the stores go straight on.
    const bf16* second = rows + lower * ldw;
    for (std::size_t k = 0; k < K; k += kTileK) {
      bf16* to = copy + 2 * kTile * k;
      for (std::size_t i = 0; i < kTile; ++i) {
        _mm512_storeu_si512(to + i * kTileK, _mm512_loadu_si512(rows + i * ldw + k));
      }
      for (std::size_t i = 0; i < kTile; ++i) {
        _mm512_storeu_si512(to + kTileValues + i * kTileK,
                            _mm512_loadu_si512(second + i * ldw + k));
      }
    }
    tile_rows({copy, kTileValues, 2 * kTileValues, 64, lower}, packed, M, K, y + n, ldy, next);
  });
}

// Sixteen rows of MXFP4, kGroups groups of 32 columns from group g on, to tiles 2 KiB apart.
template <std::size_t kGroups>
TRIAX_INLINE void decode_rows(const std::uint8_t* w, const std::uint8_t* scale, std::size_t K,
                              std::size_t g, bf16* to) {
  w += 16 * g;
  scale += g;
  for (std::size_t i = 0; i < kTile; ++i, w += K / 2, scale += K / kTileK, to += kTileK) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kGroups; ++j) {
      _mm512_storeu_si512(to + j * 2 * kTileValues, decode_pairs(w + 16 * j, scale[j]));
    }
  }
}

// MXFP4 rows are decoded to such tiles, exactly. `next`: what the caller multiplies after this, of
// the same shape; null when there is nothing.
void product_mxfp4(const bf16* packed, std::size_t M, const std::uint8_t* w,
                   const std::uint8_t* scale, std::size_t N, std::size_t K, float* y,
                   std::size_t ldy, float* scratch, const std::uint8_t* next,
                   const std::uint8_t* next_scale) {
  const Tiles tiles;
  bf16* copy = reinterpret_cast<bf16*>(scratch);
  const std::size_t groups = K / kTileK, row_bytes = K / 2;
  for_row_pairs(N, [&](std::size_t n, std::size_t lower, bool more) TRIAX_LAMBDA {
    const std::uint8_t *from = w + n * row_bytes, *exponent = scale + n * groups;
    const std::size_t rows = 2 * kTile;
    Ahead ahead(more ? from + rows * row_bytes : next, rows * row_bytes);
    Ahead(more ? exponent + rows * groups : next_scale, rows * groups).step(~std::size_t{0});
    const std::uint8_t* second = from + lower * row_bytes;
    const std::uint8_t* second_exponent = exponent + lower * groups;
    std::size_t g = 0;
    for (; g + 4 <= groups; g += 4) {  // 64 bytes of each row
      bf16* to = copy + 2 * kTileValues * g;
      decode_rows<4>(from, exponent, K, g, to);
      ahead.step(kTile);
      decode_rows<4>(second, second_exponent, K, g, to + kTileValues);
      ahead.step(kTile);
    }
    for (; g < groups; ++g) {
      bf16* to = copy + 2 * kTileValues * g;
      decode_rows<1>(from, exponent, K, g, to);
      decode_rows<1>(second, second_exponent, K, g, to + kTileValues);
    }
    tile_rows({copy, kTileValues, 2 * kTileValues, 64, lower}, packed, M, K, y + n, ldy,
              Ahead(nullptr, 0));
  });
}

}  // namespace

const MatrixKernels* table_amx() {
  static constexpr MatrixKernels table{
      .pack = pack_rows, .product_bf16 = product_bf16, .product_mxfp4 = product_mxfp4};
  return &table;
}

}  // namespace triax
