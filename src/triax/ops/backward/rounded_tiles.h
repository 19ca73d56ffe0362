// Operands of rounded products in memory. Internal to ops/backward.
#pragma once

#include <algorithm>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/backward/kernels.h"
#include "triax/ops/split.h"

namespace triax::ops {

// Tiles [ceil(rows / 16)][depth], for products over `k` = 32 * depth numbers at most.
struct Tiles {
  bf16* data = nullptr;
  std::size_t depth = 0;

  static std::size_t depth_of(std::size_t k) { return ceil_div(k, kRoundedDepth); }
  static std::size_t size(std::size_t rows, std::size_t k) {
    return ceil_div(rows, kRoundedRows) * depth_of(k) * kRoundedTile;
  }
  Tiles() = default;
  Tiles(bf16* memory, std::size_t k) : data(memory), depth(depth_of(k)) {}
  static Tiles take(Context& ctx, std::size_t rows, std::size_t k) {
    return {ctx.arena.take<bf16>(size(rows, k)).data(), k};
  }
  std::size_t stride() const { return depth * kRoundedTile; }
  bf16* row(std::size_t first) const { return data + first / kRoundedRows * stride(); }
  bf16* column(std::size_t first) const { return data + first / kRoundedDepth * kRoundedTile; }
};

// Addresses of up to 32 rows, in order or as a function of the place gives them.
struct RowPointers {
  const float* at[kRoundedDepth];
  std::size_t count;

  RowPointers(Mat<const float> x, std::size_t begin, std::size_t end) : count(end - begin) {
    for (std::size_t i = 0; i < count; ++i) at[i] = x.data + (begin + i) * x.stride;
  }
  template <class F>
  RowPointers(std::size_t begin, std::size_t end, F&& row) : count(end - begin) {
    for (std::size_t i = 0; i < count; ++i) at[i] = row(begin + i);
  }
};

// x [n, K] as left or right tiles with k along its columns, n rows or columns of the product.
inline void left_of_rows(const RoundedKernels& kernels, Mat<const float> x, Tiles to) {
  for (std::size_t t = 0; t < x.shape[0]; t += kRoundedRows) {
    const RowPointers rows(x, t, std::min(t + kRoundedRows, x.shape[0]));
    kernels.left_of_rows(rows.at, rows.count, x.shape[1], to.row(t));
  }
}
inline void right_of_rows(const RoundedKernels& kernels, Mat<const float> x, Tiles to) {
  for (std::size_t t = 0; t < x.shape[0]; t += kRoundedRows) {
    const RowPointers rows(x, t, std::min(t + kRoundedRows, x.shape[0]));
    kernels.right_of_rows(rows.at, rows.count, x.shape[1], to.row(t));
  }
}
// x [k, n]: k down its rows.
inline void left_of_cols(const RoundedKernels& kernels, Mat<const float> x, Tiles to) {
  for (std::size_t t = 0; t < x.shape[0]; t += kRoundedDepth) {
    const RowPointers rows(x, t, std::min(t + kRoundedDepth, x.shape[0]));
    kernels.left_of_cols(rows.at, rows.count, x.shape[1], to.column(t), to.stride());
  }
}
inline void right_of_cols(const RoundedKernels& kernels, Mat<const float> x, Tiles to) {
  for (std::size_t t = 0; t < x.shape[0]; t += kRoundedDepth) {
    const RowPointers rows(x, t, std::min(t + kRoundedDepth, x.shape[0]));
    kernels.right_of_cols(rows.at, rows.count, x.shape[1], to.column(t), to.stride());
  }
}

// C (+)= left right
inline void multiply(const RoundedKernels& kernels, Tiles left, Tiles right, Mat<float> C,
                     bool accumulate) {
  kernels.product(left.data, left.stride(), right.data, right.stride(), C.shape[0], C.shape[1],
                  right.depth, C.data, C.stride, accumulate);
}

}  // namespace triax::ops
