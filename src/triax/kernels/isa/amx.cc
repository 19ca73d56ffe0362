// The amx kernels: BF16 products by tiles of 16 rows by 64 bytes, sums in float32.
//
// Rows of weights are the left operand, 16 of them a tile; BF16 rows are loaded from where they
// lie, others are decoded to tiles a few steps of k before they are needed. Rows of x are the right
// operand and are packed for it once: [M / 16][K / 32] tiles of [16 pairs of k][16 rows] BF16
// pairs, one KiB each; one row alone is its own tile, a column of pairs. The product of a tile pair
// is 16 weight rows x 16 rows of x, transposed on its way to y. TDPBF16PS adds the pairs of k one
// after the other, so an output is one chain of sums over k, whatever lies beside it in a tile. It
// counts subnormal numbers as zero.
#include <immintrin.h>

#include <utility>

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

// Which tiles hold what. Sums come first, [weight tile][tile of x]; then weights, then x.
template <int kWeights, int kRows>
struct Tiles {
  static constexpr int sum(int w, int x) { return w * kRows + x; }
  static constexpr int weights(int w) { return kWeights * kRows + w; }
  static constexpr int x = kWeights * kRows + kWeights;
  static_assert(x < 8);
};

// Eight tiles of 16 rows by 64 bytes; or, for one row of x, sums and x one pair wide.
constexpr TileConfig make_config(bool one_row) {
  TileConfig config;
  using T = Tiles<2, 1>;
  for (int i = 0; i < 8; ++i) {
    const bool weights = i == T::weights(0) || i == T::weights(1);
    config.bytes[i] = one_row && !weights ? 4 : 64;
    config.rows[i] = kTile;
  }
  return config;
}
constexpr TileConfig kFullTiles = make_config(false), kRowTiles = make_config(true);

// The tiles in use, while it lives.
class TileState {
 public:
  TRIAX_INLINE explicit TileState(bool one_row) {
    _tile_loadconfig(one_row ? &kRowTiles : &kFullTiles);
  }
  TRIAX_INLINE ~TileState() { _tile_release(); }
};

// The intrinsics take tile numbers as literals only and do not tell GCC 12 that they touch memory.
template <int kT>
TRIAX_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kT));
}
template <int kT>
TRIAX_INLINE void tile_load(const void* from, long stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kT), "r"(from), "r"(stride) : "memory");
}
template <int kT>
TRIAX_INLINE void tile_store(void* to, long stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kT), "r"(to), "r"(stride) : "memory");
}
// sums += weights times x
template <int kSum, int kW, int kX>
TRIAX_INLINE void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kW), "i"(kX));
}

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
  // The next `lines` of it for someone else to bring.
  TRIAX_INLINE Ahead take(std::size_t lines) {
    const std::size_t left = static_cast<std::size_t>(end_ - at_), bytes = lines * 64;
    const Ahead part(at_, bytes < left ? bytes : left);
    at_ += bytes < left ? bytes : left;
    return part;
  }

 private:
  const char *at_, *end_;
};

// ---- Where weights come from --------------------------------------------------------------------

constexpr std::size_t kDecodedAhead = 2;  // steps of k
constexpr std::size_t kRing = 4;          // decoded steps that are kept

// A tile of weights in memory.
struct TileAt {
  const bf16* at;
  long stride;  // bytes
};

// Rows of BF16, from the product's first row on.
struct Bf16Source {
  static constexpr bool kDirect = true;
  const bf16* w;
  std::size_t ldw;

  TRIAX_INLINE TileAt tile(std::size_t row, std::size_t g) const {
    return {w + row * ldw + g * kTileK, static_cast<long>(ldw * sizeof(bf16))};
  }
  Bf16Source from(std::size_t row) const { return {w + row * ldw, ldw}; }
  Ahead ahead(std::size_t rows) const { return Ahead(w, rows * ldw * sizeof(bf16)); }
};

// Two tiles of rows for each step of k, one behind the other: [K / 32][2][16 rows][32].
struct CopiedSource {
  static constexpr bool kDirect = true;
  const bf16* tiles;

  TRIAX_INLINE TileAt tile(std::size_t row, std::size_t g) const {
    return {tiles + (2 * g + (row != 0 ? 1 : 0)) * kTileValues, 64};
  }
};

// Rows of MXFP4, decoded exactly.
struct Mxfp4Source {
  static constexpr bool kDirect = false;
  const std::uint8_t *w, *scale;
  std::size_t K;

  Mxfp4Source from(std::size_t row) const {
    return {w + row * (K / 2), scale + row * (K / kTileK), K};
  }
  Ahead ahead(std::size_t rows) const {
    Ahead(w == nullptr ? nullptr : scale, rows * (K / kTileK)).step(~std::size_t{0});
    return Ahead(w, rows * (K / 2));
  }
  // Sixteen rows of step g to a tile.
  TRIAX_INLINE void decode(std::size_t g, bf16* to) const {
    const std::uint8_t *from = w + 16 * g, *exponent = scale + g;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kTile; ++i) {
      _mm512_storeu_si512(to + i * kTileK, decode_pairs(from, *exponent));
      from += K / 2;
      exponent += K / kTileK;
    }
  }
};

// 32 codes times their scale, rounded to BF16.
TRIAX_INLINE __m512i decode_codes(const std::int8_t* codes, bf16 factor) {
  const F by = set1(to_float(factor));
  const F low = mul(load_codes(codes), by), high = mul(load_codes(codes + 16), by);
  return __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high, low));
}

// Rows of 8-bit codes with their scales.
struct Int8Source {
  static constexpr bool kDirect = false;
  const std::int8_t* w;
  const bf16* scale;
  std::size_t K;

  Int8Source from(std::size_t row) const { return {w + row * K, scale + row * (K / kTileK), K}; }
  Ahead ahead(std::size_t rows) const {
    Ahead(w == nullptr ? nullptr : scale, rows * (K / kTileK) * sizeof(bf16)).step(~std::size_t{0});
    return Ahead(w, rows * K);
  }
  TRIAX_INLINE void decode(std::size_t g, bf16* to) const {
    const std::int8_t* from = w + kTileK * g;
    const bf16* factor = scale + g;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kTile; ++i) {
      _mm512_storeu_si512(to + i * kTileK, decode_codes(from, *factor));
      from += K;
      factor += K / kTileK;
    }
  }
};

// ---- Products -----------------------------------------------------------------------------------

// The sums of 16 kWeights rows of weights and 16 kRows rows of x over all of K, to y.
//   first: row of the weights' first tile; lower: how far behind it the second one lies
//   x: tiles of rows; rows: how many of them are there
template <int kWeights, int kRows, bool kOneRow, class Source>
struct Block {
  using T = Tiles<kWeights, kRows>;
  const Source& source;
  std::size_t lower;
  const bf16* x;
  std::size_t K, rows;
  float* y;
  std::size_t ldy;

  template <int... kI>
  TRIAX_INLINE static void zero_sums(std::integer_sequence<int, kI...>) {
    (tile_zero<kI>(), ...);
  }
  template <int kW>
  TRIAX_INLINE void load_weights(std::size_t g, const bf16* decoded) const {
    if constexpr (Source::kDirect) {
      const TileAt from = source.tile(kW * lower, g);
      tile_load<T::weights(kW)>(from.at, from.stride);
    } else {
      tile_load<T::weights(kW)>(decoded + kW * kTileValues, 64);
    }
  }
  template <int kX>
  TRIAX_INLINE void multiply(std::size_t g) const {
    if constexpr (kOneRow) {
      tile_load<T::x>(x + g * kTileK, 4);
    } else {
      tile_load<T::x>(x + kX * kTile * K + g * kTileValues, 64);
    }
    tile_multiply<T::sum(0, kX), T::weights(0), T::x>();
    if constexpr (kWeights == 2) tile_multiply<T::sum(1, kX), T::weights(1), T::x>();
  }
  template <int... kX>
  TRIAX_INLINE void multiply_all(std::size_t g, std::integer_sequence<int, kX...>) const {
    (multiply<kX>(g), ...);
  }
  template <int kW, int kX>
  TRIAX_INLINE void write() const {
    if constexpr (kOneRow) {
      tile_store<T::sum(kW, kX)>(y + kW * lower, 4);
    } else {
      constexpr std::size_t begin = kX * kTile;
      if (rows <= begin) return;
      alignas(64) float sums[kTile * kTile];
      tile_store<T::sum(kW, kX)>(sums, 64);
      write_tile(sums, y + begin * ldy + kW * lower, ldy,
                 rows - begin < kTile ? rows - begin : kTile);
    }
  }
  template <int... kX>
  TRIAX_INLINE void write_all(std::integer_sequence<int, kX...>) const {
    (write<0, kX>(), ...);
    if constexpr (kWeights == 2) (write<1, kX>(), ...);
  }
  TRIAX_INLINE void decode(std::size_t g, bf16* ring) const {
    if constexpr (!Source::kDirect) {
      bf16* to = ring + g % kRing * kWeights * kTileValues;
      source.decode(g, to);
      if constexpr (kWeights == 2) source.from(lower).decode(g, to + kTileValues);
    }
  }

  TRIAX_INLINE void run(Ahead ahead) const {
    constexpr auto all_x = std::make_integer_sequence<int, kRows>();
    alignas(64) bf16 ring[Source::kDirect ? 1 : kRing * kWeights * kTileValues];
    const std::size_t steps = K / kTileK;
    const std::size_t lines = (ahead.lines() + steps - 1) / steps;
    zero_sums(std::make_integer_sequence<int, kWeights * kRows>());
    for (std::size_t g = 0; g < kDecodedAhead && g < steps; ++g) decode(g, ring);
    for (std::size_t g = 0; g < steps; ++g) {
      if (g + kDecodedAhead < steps) decode(g + kDecodedAhead, ring);
      const bf16* decoded = ring + g % kRing * kWeights * kTileValues;
      load_weights<0>(g, decoded);
      if constexpr (kWeights == 2) load_weights<1>(g, decoded);
      multiply_all(g, all_x);
      ahead.step(lines);
    }
    write_all(all_x);
  }
};

// Where the product's output goes, and what it is made of.
struct Product {
  const bf16* x;
  std::size_t M, K;
  float* y;
  std::size_t ldy;
};

// Two tiles of weights, `lower` rows apart, against up to 32 rows of x.
template <bool kOneRow, class Source>
TRIAX_INLINE void wide(const Source& source, std::size_t lower, const Product& p, Ahead ahead) {
  if (p.M > kTile) {
    Block<2, 2, kOneRow, Source>{source, lower, p.x, p.K, p.M, p.y, p.ldy}.run(ahead);
  } else {
    Block<2, 1, kOneRow, Source>{source, lower, p.x, p.K, p.M, p.y, p.ldy}.run(ahead);
  }
}

// One tile of weights against 33 to 96 rows of x.
constexpr std::size_t kTallRows = 6 * kTile;
template <class Source>
TRIAX_INLINE void tall(const Source& source, const Product& p, Ahead ahead) {
  const auto run = [&]<int kRows>() TRIAX_LAMBDA {
    Block<1, kRows, false, Source>{source, 0, p.x, p.K, p.M, p.y, p.ldy}.run(ahead);
  };
  switch ((p.M + kTile - 1) / kTile) {
    case 3:
      return run.template operator()<3>();
    case 4:
      return run.template operator()<4>();
    case 5:
      return run.template operator()<5>();
    default:
      return run.template operator()<6>();
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

// Two tiles of weight rows as CopiedSource has them. (Rows whose length is a power of two would lie
// in the same sets of the first cache.)
TRIAX_INLINE void copy_tiles(const Bf16Source& s, std::size_t lower, std::size_t K, bf16* to) {
  for (std::size_t k = 0; k < K; k += kTileK) {
    for (std::size_t half = 0; half < 2; ++half) {
      const bf16* from = s.w + half * lower * s.ldw + k;
      for (std::size_t i = 0; i < kTile; ++i, to += kTileK, from += s.ldw) {
        _mm512_storeu_si512(to, _mm512_loadu_si512(from));
      }
    }
  }
}
template <class Source>
TRIAX_INLINE void copy_tiles(const Source& s, std::size_t lower, std::size_t K, bf16* to) {
  for (std::size_t g = 0; g < K / kTileK; ++g) {
    s.decode(g, to + 2 * g * kTileValues);
    s.from(lower).decode(g, to + (2 * g + 1) * kTileValues);
  }
}

// Against many rows of x.
TRIAX_INLINE void many(const bf16* tiles, std::size_t lower, const Product& p, Ahead ahead) {
  const std::size_t blocks = (p.M + 2 * kTile - 1) / (2 * kTile);
  const std::size_t lines = (ahead.lines() + blocks - 1) / blocks;
  for (std::size_t m = 0; m < p.M; m += 2 * kTile) {
    const std::size_t rows = p.M - m < 2 * kTile ? p.M - m : 2 * kTile;
    wide<false>(CopiedSource{tiles}, lower, {p.x + m * p.K, rows, p.K, p.y + m * p.ldy, p.ldy},
                ahead.take(lines));
  }
}

// y = x W^T: N rows of weights against M rows of x. `next`: weights to be fetched meanwhile.
template <class Source>
void product(const Source& source, const PackedRows& packed, std::size_t N, std::size_t K, float* y,
             std::size_t ldy, float* scratch, const Source& next) {
  const TileState tiles(packed.single);
  bf16* copy = reinterpret_cast<bf16*>(scratch);
  source.ahead(N < 2 * kTile ? N : 2 * kTile).step(~std::size_t{0});
  for_row_pairs(N, [&](std::size_t n, std::size_t lower, bool more) TRIAX_LAMBDA {
    const Source rows = source.from(n);
    const Ahead ahead = (more ? rows.from(2 * kTile) : next).ahead(2 * kTile);
    const Product p{packed.data, packed.rows, K, y + n, ldy};
    if (packed.single) {
      wide<true>(rows, lower, p, ahead);
    } else if (packed.rows <= 2 * kTile) {
      wide<false>(rows, lower, p, ahead);
    } else if (packed.rows <= kTallRows) {
      tall(rows, p, Ahead(nullptr, 0));
      tall(rows.from(lower), {p.x, p.M, K, p.y + lower, ldy}, ahead);
    } else {
      copy_tiles(rows, lower, K, copy);
      many(copy, lower, p, ahead);
    }
  });
}

void product_bf16(const PackedRows& x, const bf16* w, std::size_t ldw, std::size_t N, std::size_t K,
                  float* y, std::size_t ldy, float* scratch) {
  product(Bf16Source{w, ldw}, x, N, K, y, ldy, scratch, Bf16Source{nullptr, 0});
}
void product_mxfp4(const PackedRows& x, const std::uint8_t* w, const std::uint8_t* scale,
                   std::size_t N, std::size_t K, float* y, std::size_t ldy, float* scratch,
                   const std::uint8_t* next, const std::uint8_t* next_scale) {
  product(Mxfp4Source{w, scale, K}, x, N, K, y, ldy, scratch, Mxfp4Source{next, next_scale, K});
}
void product_int8(const PackedRows& x, const std::int8_t* w, const bf16* scale, std::size_t N,
                  std::size_t K, float* y, std::size_t ldy, float* scratch) {
  product(Int8Source{w, scale, K}, x, N, K, y, ldy, scratch, Int8Source{nullptr, nullptr, K});
}

}  // namespace

const MatrixKernels* table_amx() {
  static constexpr MatrixKernels table{.pack = pack_rows,
                                       .product_bf16 = product_bf16,
                                       .product_mxfp4 = product_mxfp4,
                                       .product_int8 = product_int8};
  return &table;
}

}  // namespace triax
