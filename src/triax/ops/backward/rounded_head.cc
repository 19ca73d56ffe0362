// Head and cross-entropy with rounded products: 64 rows of logits a thread, in the second cache.
#include <cmath>

#include "triax/kernels/kernels.h"
#include "triax/ops/backward/linear.h"
#include "triax/ops/backward/rounded.h"
#include "triax/ops/backward/rounded_tiles.h"

namespace triax::ops {
namespace {

constexpr std::size_t kItemRows = 64;
constexpr std::size_t kBlockRows = 1024;  // rows between two additions to dw
constexpr std::size_t kWeightRows = 32;

// Loss of a row of logits; the row becomes its gradient.
float row_loss(float* row, std::size_t V, std::int32_t target, float scale) {
  const KernelTable& k = kernels();
  if (target == kNoTarget) {
    std::fill_n(row, V, 0.0f);
    return 0;
  }
  const auto at = static_cast<std::size_t>(target);
  const float largest = k.max(row, V), wanted = row[at];
  const float sum = k.exp_sum(row, largest, V, row);
  k.scale(scale / sum, row, V, row);
  row[at] -= scale;
  return std::log(sum) + largest - wanted;
}

}  // namespace

void rounded_head(Context& ctx, Mat<const float> x, Mat<const float> w,
                  Vec<const std::int32_t> targets, float scale, Vec<float> losses, Mat<float> dx,
                  Mat<float> dw, Vec<const float> weights) {
  const RoundedKernels& k = *training_kernels().rounded;
  const std::size_t T = x.shape[0], K = x.shape[1], V = w.shape[0];
  TRIAX_CHECK(w.shape[1] == K && dx.shape == x.shape && dw.shape == w.shape);
  TRIAX_CHECK(targets.size() == T && losses.size() == T);
  TRIAX_CHECK(weights.data == nullptr || weights.size() == T);
  for (std::int32_t target : targets) {
    TRIAX_CHECK(target == kNoTarget || (target >= 0 && static_cast<std::size_t>(target) < V));
  }
  ctx.count(0, 6 * T * V * K);
  const Arena::Scope scope(ctx.arena);
  const Tiles forward = Tiles::take(ctx, V, K), back = Tiles::take(ctx, K, V);
  const std::size_t block_rows = std::min(kBlockRows, T);
  const Tiles given = Tiles::take(ctx, V, block_rows), x_right = Tiles::take(ctx, K, block_rows);
  ctx.pool.parallel_for(ceil_div(V, kRoundedDepth), [&](std::size_t item, std::size_t) {
    const std::size_t row = item * kRoundedDepth;
    const Mat<const float> part = w.slice(row, std::min(row + kRoundedDepth, V));
    Tiles to = forward;
    to.data = to.row(row);
    right_of_rows(k, part, to);
    to = back;
    to.data = to.column(row);
    right_of_cols(k, part, to);
  });

  const std::size_t x_size = Tiles::size(kItemRows, K), d_size = Tiles::size(kItemRows, V);
  const std::span<float> logits = ctx.arena.take<float>(ctx.pool.threads() * kItemRows * V);
  const std::span<bf16> scratch = ctx.arena.take<bf16>(ctx.pool.threads() * (x_size + d_size));
  for (std::size_t first = 0; first < T; first += kBlockRows) {
    const std::size_t last = std::min(T, first + kBlockRows);
    ctx.pool.parallel_for(ceil_div(last - first, kItemRows), [&](std::size_t item,
                                                                 std::size_t worker) {
      const std::size_t begin = first + item * kItemRows, end = std::min(last, begin + kItemRows);
      const Mat<float> rows(logits.data() + worker * kItemRows * V, {end - begin, V});
      const Tiles left(scratch.data() + worker * (x_size + d_size), K);
      left_of_rows(k, x.slice(begin, end), left);
      multiply(k, left, forward, rows, false);
      for (std::size_t t = begin; t < end; ++t) {
        const float own = weights.data == nullptr ? scale : scale * weights[t];
        losses[t] = row_loss(rows[t - begin].data, V, targets[t], own);
      }
      Tiles part = x_right;
      part.data = part.column(begin - first);
      right_of_cols(k, x.slice(begin, end), part);
      part = given;
      part.data = part.column(begin - first);
      left_of_cols(k, rows, part);
      const Tiles d(left.data + x_size, V);
      left_of_rows(k, rows, d);
      multiply(k, d, back, dx.slice(begin, end), false);
    });
    ctx.pool.parallel_for(ceil_div(V, kWeightRows), [&](std::size_t item, std::size_t) {
      const std::size_t row = item * kWeightRows;
      Tiles left = given;
      left.data = left.row(row);
      Tiles right = x_right;
      const Mat<float> to = dw.slice(row, std::min(row + kWeightRows, V));
      k.product(left.data, left.stride(), right.data, right.stride(), to.shape[0], K,
                Tiles::depth_of(last - first), to.data, to.stride, true);
    });
  }
}

}  // namespace triax::ops
