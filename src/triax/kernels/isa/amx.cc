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
#include "triax/kernels/isa/transpose16.h"
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
  static constexpr int sum(int w, int row) { return w * kRows + row; }
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
// None of these clobbers all memory: the compiler would forget what it holds in registers.
template <int kT>
TRIAX_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kT));
}
// Of memory that this function has not written.
template <int kT>
TRIAX_INLINE void tile_load(const void* from, long stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kT), "r"(from), "r"(stride));
}
// Of a tile that this function has written.
struct TileMemory {
  bf16 values[kTileValues];
};
template <int kT>
TRIAX_INLINE void tile_load(const TileMemory& from) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kT), "r"(&from), "r"(64L), "m"(from));
}
struct TileSums {
  float values[kTile * kTile];
};
template <int kT>
TRIAX_INLINE void tile_store(TileSums& to) {
  asm volatile("tilestored %%tmm%c1, (%2,%3,1)" : "=m"(to) : "i"(kT), "r"(&to), "r"(64L));
}
// One column of sums.
struct ColumnSums {
  float values[kTile];
};
template <int kT>
TRIAX_INLINE void tile_store(ColumnSums& to) {
  asm volatile("tilestored %%tmm%c1, (%2,%3,1)" : "=m"(to) : "i"(kT), "r"(&to), "r"(4L));
}
// sums += weights times x
template <int kSum, int kW, int kX>
TRIAX_INLINE void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kW), "i"(kX));
}

// 32 values as BF16. For MXFP4 in the order that its decoding gives: place 8 l + i holds column
// 4 i + l.
TRIAX_INLINE __m512i round_columns(const float* x, ColumnOrder order) {
  const __m512i plain = __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(load(x + 16), load(x)));
  if (order == ColumnOrder::plain) return plain;
  alignas(64) static constexpr std::uint16_t kColumns[32] = {
      0, 4, 8,  12, 16, 20, 24, 28, 1, 5, 9,  13, 17, 21, 25, 29,
      2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31};
  const __m512i columns = _mm512_load_si512(kColumns);
  return _mm512_permutexvar_epi16(columns, plain);
}

void pack_row(const float* x, std::size_t K, bf16* out, ColumnOrder order) {
  for (std::size_t k = 0; k < K; k += kTileK) {
    _mm512_storeu_si512(out + k, round_columns(x + k, order));
  }
}

// Rows of x [M, K] float32 as packed tiles of a matrix `cols` wide; rows past M are zero.
void pack_rows(const float* const* x, std::size_t M, std::size_t K, bf16* packed, std::size_t cols,
               ColumnOrder order) {
  for (std::size_t m = 0; m < M; m += kTile) {
    const std::size_t rows = M - m < kTile ? M - m : kTile;
    bf16* to = packed + m * cols;
    for (std::size_t k = 0; k < K; k += kTileK, to += kTileValues) {
      __m512i r[16];
      for (std::size_t i = 0; i < kTile; ++i) {
        r[i] = _mm512_setzero_si512();
        if (i >= rows) continue;
        r[i] = round_columns(x[m + i] + k, order);
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

// The compiler would rather keep an address for every row than count one up.
#define TRIAX_OPAQUE(x) asm("" : "+r"(x))

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
  // The processor's own prefetching follows 32 rows at a time better than ours.
  Ahead ahead(std::size_t) const { return Ahead(nullptr, 0); }
};

// Two tiles of rows for each step of k, one behind the other: [K / 32][2][16 rows][32].
struct CopiedSource {
  static constexpr bool kDirect = true;
  const bf16* tiles;

  TRIAX_INLINE TileAt tile(std::size_t row, std::size_t g) const {
    return {tiles + (2 * g + (row != 0 ? 1 : 0)) * kTileValues, 64};
  }
  CopiedSource from(std::size_t) const { return *this; }
};

// 32 columns of MXFP4 as BF16, exact, in the order of round_columns(): every word of the 16 bytes
// holds the codes of four columns, and lane l of 128 bits takes the l-th of each. The lookup reads
// five bits of an index, of which four count.
TRIAX_INLINE __m512i decode_columns(const std::uint8_t* packed, std::uint8_t e) {
  const __m512i down =
      _mm512_setr_epi64(0, 0, 0x0004000400040004, 0x0004000400040004, 0x0008000800080008,
                        0x0008000800080008, 0x000C000C000C000C, 0x000C000C000C000C);
  const __m512i words =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(packed)));
  return _mm512_permutexvar_epi16(_mm512_srlv_epi16(words, down),
                                  _mm512_load_si512(kMxfp4Pairs.at[e]));
}

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
  // Four rows of the step at hand to their places in a tile; the next call takes the next four.
  TRIAX_INLINE void decode(std::size_t, bf16* to) {
    const std::size_t row = K / 2, groups = K / kTileK;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      _mm512_storeu_si512(to + i * kTileK, decode_columns(w + i * row, scale[i * groups]));
    }
    w += 4 * row;
    scale += 4 * groups;
    TRIAX_OPAQUE(w);
    TRIAX_OPAQUE(scale);
  }
  // After sixteen rows: back to the first one, a step further.
  TRIAX_INLINE void next_step() {
    w += 16 - kTile * (K / 2);
    scale += 1 - static_cast<std::ptrdiff_t>(kTile * (K / kTileK));
  }
};

// 32 codes times their scale, rounded to BF16.
TRIAX_INLINE __m512i decode_codes(const std::int8_t* codes, F by) {
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
  TRIAX_INLINE void decode(std::size_t g, bf16* to) {
    const std::size_t groups = K / kTileK;
    // A scale and the one before it are the halves of 32 bits: broadcast from memory, the lower
    // half cleared. The first of a row has none before it.
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000u));
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      F by;
      if (g == 0) {
        by = set1(to_float(scale[i * groups]));
      } else {
        int pair;
        __builtin_memcpy(&pair, scale + i * groups - 1, sizeof pair);
        by = _mm512_castsi512_ps(_mm512_and_si512(_mm512_set1_epi32(pair), upper));
      }
      _mm512_storeu_si512(to + i * kTileK, decode_codes(w + i * K, by));
    }
    w += 4 * K;
    scale += 4 * groups;
    TRIAX_OPAQUE(w);
    TRIAX_OPAQUE(scale);
  }
  TRIAX_INLINE void next_step() {
    w += kTileK - kTile * K;
    scale += 1 - static_cast<std::ptrdiff_t>(kTile * (K / kTileK));
  }
};

// ---- Products -----------------------------------------------------------------------------------

// The sums of 16 kWeights rows of weights and 16 kRows rows of x over all of K, to y.
//   lower: how far the second tile's rows lie behind the first's
//   x: tiles of rows; rows: how many of them are there
template <int kWeights, int kRows, bool kOneRow, class Source>
struct Block {
  using T = Tiles<kWeights, kRows>;
  Source source, second;  // from the first tile's rows on, and from the second's
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
  TRIAX_INLINE void load_weights(std::size_t g, const TileMemory* decoded) const {
    if constexpr (Source::kDirect) {
      const TileAt from = source.tile(kW * lower, g);
      tile_load<T::weights(kW)>(from.at, from.stride);
    } else {
      tile_load<T::weights(kW)>(decoded[kW]);
    }
  }
  // Product i of step g: tile of x i / kWeights, tile of weights i % kWeights. Between the products
  // a share of the weights of a later step is decoded: few instructions apart, the two overlap even
  // where the processor looks ahead only a little.
  template <bool kMore, int kI>
  TRIAX_INLINE void multiply(std::size_t g, TileMemory* ring) {
    constexpr int kX = kI / kWeights, kW = kI % kWeights;
    if constexpr (kX == 0) load_weights<kW>(g, ring + slot(g));
    if constexpr (kW == 0 && kOneRow) tile_load<T::x>(x + g * kTileK, 4);
    if constexpr (kW == 0 && !kOneRow) {
      tile_load<T::x>(x + kX * kTile * K + g * kTileValues, 64);
    }
    tile_multiply<T::sum(kW, kX), T::weights(kW), T::x>();
    if constexpr (kMore) {
      constexpr std::size_t kQuads = 4 * kWeights, kShare = kWeights * kRows;
      decode<kQuads * kI / kShare, kQuads*(kI + 1) / kShare>(g + kDecodedAhead, ring);
    }
  }
  template <bool kMore, int... kI>
  TRIAX_INLINE void multiply_all(std::size_t g, TileMemory* ring,
                                 std::integer_sequence<int, kI...>) {
    (multiply<kMore, kI>(g, ring), ...);
  }
  template <int kW, int kX>
  TRIAX_INLINE void write() const {
    if constexpr (kOneRow) {
      tile_store<T::sum(kW, kX)>(*reinterpret_cast<ColumnSums*>(y + kW * lower));
    } else {
      constexpr std::size_t begin = kX * kTile;
      if (rows <= begin) return;
      alignas(64) TileSums sums;
      tile_store<T::sum(kW, kX)>(sums);
      write_tile(sums.values, y + begin * ldy + kW * lower, ldy,
                 rows - begin < kTile ? rows - begin : kTile);
    }
  }
  template <int... kX>
  TRIAX_INLINE void write_all(std::integer_sequence<int, kX...>) const {
    (write<0, kX>(), ...);
    if constexpr (kWeights == 2) (write<1, kX>(), ...);
  }
  static constexpr std::size_t slot(std::size_t g) { return g % kRing * kWeights; }
  // Quads [kBegin, kEnd) of step g, four rows each; those of the second tile follow the first's.
  template <std::size_t kBegin, std::size_t kEnd>
  TRIAX_INLINE void decode(std::size_t g, TileMemory* ring) {
    TileMemory* to = ring + slot(g);
#pragma GCC unroll 8
    for (std::size_t quad = kBegin; quad < kEnd; ++quad) {
      Source& from = quad < 4 ? source : second;
      from.decode(g, to[quad / 4].values + quad % 4 * 4 * kTileK);
      if (quad % 4 == 3) from.next_step();
    }
  }

  TRIAX_INLINE void run(Ahead ahead) {
    constexpr auto products = std::make_integer_sequence<int, kWeights * kRows>();
    constexpr std::size_t kAhead = Source::kDirect ? 0 : kDecodedAhead;
    alignas(64) TileMemory ring[Source::kDirect ? 1 : kRing * kWeights];
    const std::size_t steps = K / kTileK;
    const std::size_t lines = (ahead.lines() + steps - 1) / steps;
    zero_sums(products);
    if constexpr (kAhead > 0) {
      for (std::size_t g = 0; g < kAhead && g < steps; ++g) decode<0, 4 * kWeights>(g, ring);
    }
    std::size_t g = 0;
    for (; g + kAhead < steps; ++g) {
      multiply_all<(kAhead > 0)>(g, ring, products);
      ahead.step(lines);
    }
    for (; g < steps; ++g) multiply_all<false>(g, ring, products);
    write_all(std::make_integer_sequence<int, kRows>());
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
    Block<2, 2, kOneRow, Source>{source, source.from(lower), lower, p.x, p.K, p.M, p.y, p.ldy}.run(
        ahead);
  } else {
    Block<2, 1, kOneRow, Source>{source, source.from(lower), lower, p.x, p.K, p.M, p.y, p.ldy}.run(
        ahead);
  }
}

// One tile of weights against 33 to 96 rows of x.
constexpr std::size_t kTallRows = 6 * kTile;
template <class Source>
TRIAX_INLINE void tall(const Source& source, const Product& p, Ahead ahead) {
  const auto run = [&]<int kRows>() TRIAX_LAMBDA {
    Block<1, kRows, false, Source>{source, source, 0, p.x, p.K, p.M, p.y, p.ldy}.run(ahead);
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
  Source half[2] = {s, s.from(lower)};
  for (std::size_t g = 0; g < K / kTileK; ++g) {
    for (Source& from : half) {
      for (std::size_t quad = 0; quad < 4; ++quad, to += 4 * kTileK) from.decode(g, to);
      from.next_step();
    }
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
      asm volatile("" ::: "memory");  // the copies are written before tiles are loaded from them
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
                                       .pack_row = pack_row,
                                       .product_bf16 = product_bf16,
                                       .product_mxfp4 = product_mxfp4,
                                       .product_int8 = product_int8};
  return &table;
}

}  // namespace triax
