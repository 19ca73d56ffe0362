// Rounded products by the matrix unit: 32 rows by 32 columns of C at a time.
#include "triax/ops/backward/isa/pairs.h"

namespace triax {
namespace {

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileConfig kTiles;

// Sums are tiles 0 to 3, [row tile][column tile]; 4 and 5 are left, 6 and 7 right. (GCC 12's
// intrinsics do not say that they read memory.)
template <int kT>
TRIAX_INLINE void zero_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kT));
}
template <int kT>
TRIAX_INLINE void load_tile(const void* from, std::size_t bytes) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kT), "r"(from), "r"(bytes) : "memory");
}
template <int kT>
TRIAX_INLINE void store_tile(void* to, std::size_t bytes) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kT), "r"(to), "r"(bytes) : "memory");
}
template <int kSum, int kLeft, int kRight>
TRIAX_INLINE void multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kLeft), "i"(kRight));
}

// Where the sums of one pair of tiles go: `rows` by `cols` of them are there.
struct Corner {
  float* c;
  std::size_t ldc, rows, cols;
  TRIAX_INLINE bool whole() const { return rows >= 16 && cols >= 16; }
};
template <int kT>
TRIAX_INLINE void begin(const Corner& at, bool accumulate) {
  if (!accumulate) return zero_tile<kT>();
  if (at.whole()) return load_tile<kT>(at.c, at.ldc * sizeof(float));
  alignas(64) float part[256];
  read_part(at.c, at.ldc, at.rows, at.cols, part);
  load_tile<kT>(part, 64);
}
template <int kT>
TRIAX_INLINE void end(const Corner& at) {
  if (at.whole()) return store_tile<kT>(at.c, at.ldc * sizeof(float));
  alignas(64) float part[256];
  store_tile<kT>(part, 64);
  write_part(part, at.c, at.ldc, at.rows < 16 ? at.rows : 16, at.cols);
}

// One or two tiles of rows by one or two of columns; M, N: what is there of them.
template <int kM, int kN>
TRIAX_INLINE void block(const bf16* left, std::size_t left_stride, const bf16* right,
                        std::size_t right_stride, std::size_t M, std::size_t N, std::size_t depth,
                        float* C, std::size_t ldc, bool accumulate) {
  const Corner c00{C, ldc, M, N}, c01{C + 16, ldc, M, N - 16};
  const Corner c10{C + 16 * ldc, ldc, M - 16, N}, c11{C + 16 * ldc + 16, ldc, M - 16, N - 16};
  begin<0>(c00, accumulate);
  if constexpr (kN == 2) begin<1>(c01, accumulate);
  if constexpr (kM == 2) begin<2>(c10, accumulate);
  if constexpr (kM == 2 && kN == 2) begin<3>(c11, accumulate);
  for (std::size_t g = 0; g < depth; ++g, left += kRoundedTile, right += kRoundedTile) {
    load_tile<4>(left, 64);
    load_tile<6>(right, 64);
    multiply<0, 4, 6>();
    if constexpr (kN == 2) {
      load_tile<7>(right + right_stride, 64);
      multiply<1, 4, 7>();
    }
    if constexpr (kM == 2) {
      load_tile<5>(left + left_stride, 64);
      multiply<2, 5, 6>();
    }
    if constexpr (kM == 2 && kN == 2) multiply<3, 5, 7>();
  }
  end<0>(c00);
  if constexpr (kN == 2) end<1>(c01);
  if constexpr (kM == 2) end<2>(c10);
  if constexpr (kM == 2 && kN == 2) end<3>(c11);
}

template <int kN>
TRIAX_INLINE void columns(const bf16* left, std::size_t left_stride, const bf16* right,
                          std::size_t right_stride, std::size_t M, std::size_t N, std::size_t depth,
                          float* C, std::size_t ldc, bool accumulate) {
  std::size_t m = 0;
  for (; m + 16 < M; m += 32) {
    block<2, kN>(left + m / 16 * left_stride, left_stride, right, right_stride, M - m, N, depth,
                 C + m * ldc, ldc, accumulate);
  }
  if (m < M) {
    block<1, kN>(left + m / 16 * left_stride, left_stride, right, right_stride, M - m, N, depth,
                 C + m * ldc, ldc, accumulate);
  }
}

// Sums over more than kLongest tiles of k are cut in stretches of kStretch, whose operands stay in
// the first cache; sums wait in C meanwhile, which changes none of them.
constexpr std::size_t kLongest = 12, kStretch = 8;

void product(const bf16* left, std::size_t left_stride, const bf16* right, std::size_t right_stride,
             std::size_t M, std::size_t N, std::size_t depth, float* C, std::size_t ldc,
             bool accumulate) {
  asm volatile("ldtilecfg %0" ::"m"(kTiles));
  const std::size_t stretch = depth > kLongest ? kStretch : depth;
  for (std::size_t g = 0; g < depth; g += stretch) {
    const std::size_t count = depth - g < stretch ? depth - g : stretch;
    const bf16 *a = left + g * kRoundedTile, *b = right + g * kRoundedTile;
    const bool add = accumulate || g > 0;
    std::size_t n = 0;
    for (; n + 16 < N; n += 32) {
      columns<2>(a, left_stride, b + n / 16 * right_stride, right_stride, M, N - n, count, C + n,
                 ldc, add);
    }
    if (n < N) {
      columns<1>(a, left_stride, b + n / 16 * right_stride, right_stride, M, N - n, count, C + n,
                 ldc, add);
    }
  }
  asm volatile("tilerelease");
}

}  // namespace

const RoundedKernels* training_amx() {
  static constexpr RoundedKernels table{.left_of_rows = tiles_of_rows<false>,
                                        .right_of_rows = tiles_of_rows<true>,
                                        .left_of_cols = tiles_of_cols<true>,
                                        .right_of_cols = tiles_of_cols<false>,
                                        .product = product};
  return &table;
}

}  // namespace triax
