// Products with rows of weights: y[m, n] = sum_k x[m, k] w[n, k].
//
// One output is one vector of partial sums: lane l adds the products of k = l, l + step, l + 2
// step, ... in this order, and the lanes are added in the order of sum(). No tile, block or row
// count changes that.
//
// A call takes `rows` rows of x at a time, widened once into a panel on the stack [k / step][row],
// and runs through the weights in tiles of MR x NR outputs whose sums stay in registers. Where K is
// too long for the panel, it goes through K in blocks and keeps the partial sums between them.
#pragma once

namespace triax {
namespace {

constexpr std::size_t kPartColumns = 64;  // columns whose partial sums wait between blocks
constexpr std::size_t kWeightBlockBytes = 1u << 20;  // weights that stay in the second cache

// A panel's vectors of x, from float32 or BF16.
template <class X>
TRIAX_INLINE void load_x(const X* p, F& to) {
  to = load(p);
}
template <class X>
TRIAX_INLINE void load_x_n(const X* p, std::size_t n, F& to) {
  to = load_n(p, n);
}

// Weights of this element type, multiplied as float32.
template <class TW>
struct FloatKind {
  using W = TW;
  using V = F;
  static constexpr std::size_t kStep = kWidth;
  TRIAX_INLINE static V load_w(const W* p) { return load(p); }
  TRIAX_INLINE static V load_w_n(const W* p, std::size_t n) { return load_n(p, n); }
  TRIAX_INLINE static F mul_acc(F acc, V x, V w) { return fma(x, w, acc); }
};

// BF16 times BF16: as float32, or by the set's own instruction.
#ifdef TRIAX_BF16_PAIRS
using Bf16Kind = PairKind;
#else
using Bf16Kind = FloatKind<bf16>;
#endif

// Weights as plain rows.
template <class TKind>
struct Dense {
  using Kind = TKind;
  using V = typename Kind::V;
  const typename Kind::W* p;
  std::size_t ld;

  Dense from(std::size_t n) const { return {p + n * ld, ld}; }
  // Adds k in [k0, k1) of rows n.. to acc.
  template <int MR, int NR>
  TRIAX_INLINE void run(const V* panel, std::size_t n, std::size_t k0, std::size_t k1,
                        F (&acc)[MR * NR]) const {
    const typename Kind::W* row[NR];
#pragma GCC unroll 16
    for (int j = 0; j < NR; ++j) row[j] = p + (n + j) * ld;
    std::size_t k = k0;
    for (; k + Kind::kStep <= k1; k += Kind::kStep, panel += MR) {
      V w[NR];
#pragma GCC unroll 16
      for (int j = 0; j < NR; ++j) w[j] = Kind::load_w(row[j] + k);
#pragma GCC unroll 16
      for (int m = 0; m < MR; ++m) {
        V x = panel[m];
        TRIAX_KEEP(x);
#pragma GCC unroll 16
        for (int j = 0; j < NR; ++j) acc[m * NR + j] = Kind::mul_acc(acc[m * NR + j], x, w[j]);
      }
    }
    if (k < k1) {
#pragma GCC unroll 16
      for (int j = 0; j < NR; ++j) {
        const V w = Kind::load_w_n(row[j] + k, k1 - k);
#pragma GCC unroll 16
        for (int m = 0; m < MR; ++m) {
          acc[m * NR + j] = Kind::mul_acc(acc[m * NR + j], panel[m], w);
        }
      }
    }
  }
};

// Eight-bit codes times their scale, exact in float32.
TRIAX_INLINE void decode_group(const std::int8_t* codes, bf16 scale, F (&out)[32 / kWidth]) {
  const F by = set1(to_float(scale));
#pragma GCC unroll 8
  for (std::size_t j = 0; j < 32 / kWidth; ++j) out[j] = mul(load_codes(codes + j * kWidth), by);
}

// Weights in groups of 32 columns, `kBytes` and a scale each, decoded in registers: MXFP4 (packed
// [N, K/2], scale [N, K/32]) and 8-bit codes ([N, K], scale [N, K/32]).
template <class TKind, class Code, class Scale, std::size_t kBytes>
struct Groups {
  using Kind = TKind;
  using V = typename Kind::V;
  const Code* p;
  const Scale* scale;
  std::size_t K;

  std::size_t row_bytes() const { return K / 32 * kBytes; }
  Groups from(std::size_t n) const { return {p + n * row_bytes(), scale + n * (K / 32), K}; }
  template <int MR, int NR>
  TRIAX_INLINE void run(const V* panel, std::size_t n, std::size_t k0, std::size_t k1,
                        F (&acc)[MR * NR]) const {
    constexpr int kParts = static_cast<int>(32 / Kind::kStep);
    const Code* row = p + n * row_bytes();
    const Scale* row_scale = scale + n * (K / 32);
    for (std::size_t g = k0 / 32; g < k1 / 32; ++g, panel += kParts * MR) {
      // The rows are short and many: ask for the next tile's, a cache line at a time.
      if (g % (64 / kBytes) == 0) {
#pragma GCC unroll 16
        for (int j = 0; j < NR; ++j) __builtin_prefetch(row + (NR + j) * row_bytes() + g * kBytes);
      }
#pragma GCC unroll 16
      for (int j = 0; j < NR; ++j) {
        V w[kParts];
        decode_group(row + j * row_bytes() + g * kBytes, row_scale[j * (K / 32) + g], w);
#pragma GCC unroll 16
        for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 16
          for (int m = 0; m < MR; ++m) {
            acc[m * NR + j] = Kind::mul_acc(acc[m * NR + j], panel[part * MR + m], w[part]);
          }
        }
      }
    }
  }
};

template <class Kind>
using Packed = Groups<Kind, std::uint8_t, std::uint8_t, 16>;
template <class Kind>
using Codes = Groups<Kind, std::int8_t, bf16, 32>;

// Where a panel's outputs go.
struct Output {
  float* y;
  std::size_t ld;
  int rows;  // of the panel's MR; the others are padding
  bool accumulate;
};

// The lanes of MR x NR sums, added, to y[m, n + j].
template <int MR, int NR>
TRIAX_INLINE void write_sums(const F (&acc)[MR * NR], const Output& out, std::size_t n) {
  float total[MR * NR + 3];
  constexpr int kFours = MR * NR / 4 * 4;
#pragma GCC unroll 8
  for (int i = 0; i < kFours; i += 4) {
    store4(total + i, sum4(acc[i], acc[i + 1], acc[i + 2], acc[i + 3]));
  }
#pragma GCC unroll 4
  for (int i = kFours; i < MR * NR; ++i) total[i] = sum(acc[i]);
  for (int m = 0; m < MR && m < out.rows; ++m) {
    float* at = out.y + m * out.ld + n;
    for (int j = 0; j < NR; ++j)
      at[j] = out.accumulate ? at[j] + total[m * NR + j] : total[m * NR + j];
  }
}

// Columns [n, n1) over k in [k0, k1) of K. `part` holds the sums of earlier blocks, MR for each
// column from n_base on; null where K is one block.
template <int MR, int NR, class Weights>
void columns(const typename Weights::V* panel, const Weights& w, std::size_t n, std::size_t n1,
             std::size_t n_base, std::size_t k0, std::size_t k1, std::size_t K, F* part,
             const Output& out) {
  for (; n + NR <= n1; n += NR) {
    F acc[MR * NR];
    F* saved = part == nullptr ? nullptr : part + (n - n_base) * MR;
    if (k0 == 0) {
#pragma GCC unroll 32
      for (int i = 0; i < MR * NR; ++i) acc[i] = zero();
    } else {
#pragma GCC unroll 32
      for (int i = 0; i < MR * NR; ++i) acc[i] = saved[i];
    }
    w.template run<MR, NR>(panel, n, k0, k1, acc);
    if (k1 == K) {
      write_sums<MR, NR>(acc, out, n);
    } else {
#pragma GCC unroll 32
      for (int i = 0; i < MR * NR; ++i) saved[i] = acc[i];
    }
  }
  if constexpr (NR > 1) {
    if (n < n1) columns<MR, NR / 2>(panel, w, n, n1, n_base, k0, k1, K, part, out);
  }
}

template <class Kind, int MR, class X>
TRIAX_INLINE void pack(const X* x, std::size_t ldx, int rows, std::size_t k0, std::size_t k1,
                       typename Kind::V* panel) {
  for (int m = 0; m < MR; ++m) {
    typename Kind::V* to = panel + m;
    const X* from = x + m * ldx;
    std::size_t k = k0;
    for (; k + Kind::kStep <= k1; k += Kind::kStep, to += MR) {
      m < rows ? load_x(from + k, *to) : load_x_n(x, 0, *to);
    }
    if (k < k1) load_x_n(m < rows ? from + k : x, m < rows ? k1 - k : 0, *to);
  }
}

// Up to MR rows of x against all N rows of w.
template <int MR, class Weights, class X>
__attribute__((noinline)) void panel_rows(const X* x, std::size_t ldx, const Weights& w,
                                          std::size_t N, std::size_t K, const Output& out) {
  using Kind = typename Weights::Kind;
  constexpr int kFit = kAccumulators / MR;
  constexpr int NR = kFit >= 8 ? 8 : kFit >= 4 ? 4 : kFit;
  constexpr std::size_t kBlock = kPanelVectors / MR * Kind::kStep / 32 * 32;
  alignas(64) typename Kind::V panel[kPanelVectors];
  if (K <= kBlock) {
    pack<Kind, MR>(x, ldx, out.rows, 0, K, panel);
    columns<MR, NR>(panel, w, 0, N, 0, 0, K, K, nullptr, out);
    return;
  }
  alignas(64) F part[kPartColumns * MR];
  for (std::size_t n = 0; n < N; n += kPartColumns) {
    const std::size_t n1 = n + kPartColumns < N ? n + kPartColumns : N;
    for (std::size_t k0 = 0; k0 < K; k0 += kBlock) {
      const std::size_t k1 = k0 + kBlock < K ? k0 + kBlock : K;
      pack<Kind, MR>(x, ldx, out.rows, k0, k1, panel);
      columns<MR, NR>(panel, w, n, n1, n, k0, k1, K, part, out);
    }
  }
}

// `rows` <= kMaxRows rows: in the smallest tile that holds them.
template <class Weights, class X>
void some_rows(const X* x, std::size_t ldx, const Weights& w, std::size_t N, std::size_t K,
               const Output& out) {
  if (out.rows == 1) return panel_rows<1>(x, ldx, w, N, K, out);
  if (out.rows == 2) return panel_rows<2>(x, ldx, w, N, K, out);
  if constexpr (kMaxRows > 4) {
    if (out.rows <= 4) return panel_rows<4>(x, ldx, w, N, K, out);
  }
  if constexpr (kMaxRows > 8) {
    if (out.rows <= 8) return panel_rows<8>(x, ldx, w, N, K, out);
  }
  return panel_rows<kMaxRows>(x, ldx, w, N, K, out);
}

// All of y; `row_bytes` is the size of one row of w, for blocks of N that stay cached.
template <class Weights, class X>
void product(const X* x, std::size_t ldx, std::size_t M, const Weights& w, std::size_t N,
             std::size_t K, std::size_t row_bytes, float* y, std::size_t ldy, bool accumulate) {
  constexpr std::size_t kRows = static_cast<std::size_t>(kMaxRows);
  std::size_t block = kWeightBlockBytes / (row_bytes + 1) / kPartColumns * kPartColumns;
  if (block < kPartColumns) block = kPartColumns;
  if (M <= kRows) block = N;
  for (std::size_t n = 0; n < N; n += block) {
    const std::size_t count = n + block < N ? block : N - n;
    for (std::size_t m = 0; m < M; m += kRows) {
      const std::size_t rows = m + kRows < M ? kRows : M - m;
      some_rows(x + m * ldx, ldx, w.from(n), count, K,
                Output{y + m * ldy + n, ldy, static_cast<int>(rows), accumulate});
    }
  }
}

template <class Kind, class X>
TRIAX_INLINE void dense_product(const X* x, std::size_t ldx, std::size_t M,
                                const typename Kind::W* w, std::size_t ldw, std::size_t N,
                                std::size_t K, float* y, std::size_t ldy, bool accumulate) {
  product(x, ldx, M, Dense<Kind>{w, ldw}, N, K, K * sizeof(typename Kind::W), y, ldy, accumulate);
}

// MXFP4: few rows of x decode in registers; many decode kDecodeRows rows of weights to BF16 (exact,
// and so the same products) and run the dense tiles.
template <class Kind, class X>
void mxfp4_product(const X* x, std::size_t ldx, std::size_t M, const std::uint8_t* packed,
                   const std::uint8_t* scale, std::size_t N, std::size_t K, float* y,
                   std::size_t ldy, float* scratch) {
  if (M <= static_cast<std::size_t>(kMaxRows)) {
    product(x, ldx, M, Packed<Kind>{packed, scale, K}, N, K, K / 2, y, ldy, false);
    return;
  }
  constexpr std::size_t kDecodeRows = kMxfp4RowTile * sizeof(float) / sizeof(bf16);
  constexpr std::size_t kBatch = 20 * static_cast<std::size_t>(kMaxRows);  // rows of x kept cached
  bf16* rows = reinterpret_cast<bf16*>(scratch);                           // [kDecodeRows, K]
  for (std::size_t m = 0; m < M; m += kBatch) {
    const std::size_t batch = m + kBatch < M ? kBatch : M - m;
    for (std::size_t n = 0; n < N; n += kDecodeRows) {
      const std::size_t count = n + kDecodeRows < N ? kDecodeRows : N - n;
      for (std::size_t g = 0; g < count * (K / 32); ++g) {
        const std::size_t at = n * (K / 32) + g;
        decode_group(packed + at * 16, scale[at], rows + g * 32);
      }
      dense_product<Kind>(x + m * ldx, ldx, batch, rows, K, count, K, y + m * ldy + n, ldy, false);
    }
  }
}

void linear_f32_bf16(const float* x, std::size_t ldx, std::size_t M, const bf16* w, std::size_t ldw,
                     std::size_t N, std::size_t K, float* y, std::size_t ldy) {
  dense_product<FloatKind<bf16>>(x, ldx, M, w, ldw, N, K, y, ldy, false);
}
void linear_bf16_bf16(const bf16* x, std::size_t ldx, std::size_t M, const bf16* w, std::size_t ldw,
                      std::size_t N, std::size_t K, float* y, std::size_t ldy) {
  dense_product<Bf16Kind>(x, ldx, M, w, ldw, N, K, y, ldy, false);
}
void linear_f32_f32(const float* x, std::size_t ldx, std::size_t M, const float* w, std::size_t ldw,
                    std::size_t N, std::size_t K, float* y, std::size_t ldy) {
  dense_product<FloatKind<float>>(x, ldx, M, w, ldw, N, K, y, ldy, false);
}
void linear_f32_mxfp4(const float* x, std::size_t ldx, std::size_t M, const std::uint8_t* packed,
                      const std::uint8_t* scale, std::size_t N, std::size_t K, float* y,
                      std::size_t ldy, float* scratch) {
  mxfp4_product<FloatKind<bf16>>(x, ldx, M, packed, scale, N, K, y, ldy, scratch);
}
void linear_bf16_mxfp4(const bf16* x, std::size_t ldx, std::size_t M, const std::uint8_t* packed,
                       const std::uint8_t* scale, std::size_t N, std::size_t K, float* y,
                       std::size_t ldy, float* scratch) {
  mxfp4_product<Bf16Kind>(x, ldx, M, packed, scale, N, K, y, ldy, scratch);
}
void linear_f32_int8(const float* x, std::size_t ldx, std::size_t M, const std::int8_t* codes,
                     const bf16* scale, std::size_t N, std::size_t K, float* y, std::size_t ldy) {
  product(x, ldx, M, Codes<FloatKind<bf16>>{codes, scale, K}, N, K, K, y, ldy, false);
}
void linear_bf16_int8(const bf16* x, std::size_t ldx, std::size_t M, const std::int8_t* codes,
                      const bf16* scale, std::size_t N, std::size_t K, float* y, std::size_t ldy) {
  product(x, ldx, M, Codes<Bf16Kind>{codes, scale, K}, N, K, K, y, ldy, false);
}
void gemm_nt(const float* A, std::size_t lda, const float* B, std::size_t ldb, float* C,
             std::size_t ldc, std::size_t M, std::size_t N, std::size_t K, bool accumulate) {
  dense_product<FloatKind<float>>(A, lda, M, B, ldb, N, K, C, ldc, accumulate);
}
void gemm_nt_bf16(const float* A, std::size_t lda, const bf16* B, std::size_t ldb, float* C,
                  std::size_t ldc, std::size_t M, std::size_t N, std::size_t K, bool accumulate) {
  dense_product<FloatKind<bf16>>(A, lda, M, B, ldb, N, K, C, ldc, accumulate);
}

}  // namespace
}  // namespace triax
