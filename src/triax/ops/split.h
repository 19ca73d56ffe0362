// Cutting work into items for the pool. A cut decides who computes a value, never how: every result
// is the same for any cut, so cuts may look at the whole batch and at the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>

#include "triax/core/context.h"

namespace triax::ops {

// Elements that are worth an item of their own: below that the barrier costs more than the work.
inline constexpr std::size_t kItemElements = 16384;

inline std::size_t ceil_div(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}
inline std::size_t round_up(std::size_t a, std::size_t b) {
  return ceil_div(a, b) * b;
}

// f(begin, end) over blocks of rows, each row of `row_elements`.
template <class F>
void for_row_blocks(Context& ctx, std::size_t rows, std::size_t row_elements, F&& f) {
  if (rows == 0) return;
  const std::size_t block =
      std::max<std::size_t>(kItemElements / std::max<std::size_t>(row_elements, 1), 1);
  ctx.pool.parallel_for(ceil_div(rows, block), [&](std::size_t item, std::size_t) {
    f(item * block, std::min(rows, (item + 1) * block));
  });
}

// f(row, begin, end) over stretches of columns of every row, for functions of single elements.
// Stretches begin at multiples of kItemElements, so an element lies at the same place in its
// stretch whatever else is computed.
template <class F>
void for_row_stretches(Context& ctx, std::size_t rows, std::size_t cols, F&& f) {
  if (rows == 0 || cols == 0) return;
  if (cols <= kItemElements) {
    for_row_blocks(ctx, rows, cols, [&](std::size_t begin, std::size_t end) {
      for (std::size_t t = begin; t < end; ++t) f(t, 0, cols);
    });
    return;
  }
  const std::size_t pieces = ceil_div(cols, kItemElements);
  ctx.pool.parallel_for(rows * pieces, [&](std::size_t item, std::size_t) {
    const std::size_t begin = item % pieces * kItemElements;
    f(item / pieces, begin, std::min(cols, begin + kItemElements));
  });
}

}  // namespace triax::ops
