// Rounded products with the trunk's weights: rows of x in blocks, which a thread rounds for itself.
#include "triax/ops/backward/rounded.h"

#include <vector>

#include "triax/ops/backward/rounded_tiles.h"

namespace triax::ops {
namespace {

constexpr std::size_t kItemRows = 64;    // rows of an item: rounded they lie in the first cache
constexpr std::size_t kStrips = 8;       // of weights, 16 or 32 rows each, that an item rounds
constexpr std::size_t kWeightRows = 32;  // rows of dW of an item

// f(job, first row) over strips of `height` rows of every job's matrix, kStrips at a time.
template <class Jobs, class F>
void for_strips(Context& ctx, const Jobs& jobs, std::size_t height, F&& f) {
  struct Strip {
    std::size_t job, row;
  };
  std::vector<Strip> strips;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (std::size_t r = 0; r < jobs[j].w.shape[0]; r += height) strips.push_back({j, r});
  }
  ctx.pool.parallel_for(ceil_div(strips.size(), kStrips), [&](std::size_t item, std::size_t) {
    const std::size_t end = std::min(strips.size(), (item + 1) * kStrips);
    for (std::size_t i = item * kStrips; i < end; ++i) f(strips[i].job, strips[i].row);
  });
}

Mat<const float> rows_of(Mat<const float> w, std::size_t first, std::size_t count) {
  return w.slice(first, std::min(first + count, w.shape[0]));
}

}  // namespace

void rounded_linear(Context& ctx, Mat<const float> x, std::span<const RoundedJob> jobs) {
  const RoundedKernels& k = *training_kernels().rounded;
  const std::size_t T = x.shape[0], K = x.shape[1];
  const Arena::Scope scope(ctx.arena);
  std::vector<Tiles> weights;
  for (const RoundedJob& job : jobs) {
    const std::size_t N = job.w.shape[0];
    TRIAX_CHECK(job.w.shape[1] == K && job.y.shape[0] == T && job.y.shape[1] == N);
    ctx.count(0, 2 * T * N * K);
    weights.push_back(Tiles::take(ctx, N, K));
  }
  for_strips(ctx, jobs, kRoundedRows, [&](std::size_t j, std::size_t row) {
    Tiles to = weights[j];
    to.data = to.row(row);
    right_of_rows(k, rows_of(jobs[j].w, row, kRoundedRows), to);
  });
  const std::size_t slice = Tiles::size(kItemRows, K);
  const std::span<bf16> scratch = ctx.arena.take<bf16>(ctx.pool.threads() * slice);
  ctx.pool.parallel_for(ceil_div(T, kItemRows), [&](std::size_t item, std::size_t worker) {
    const std::size_t begin = item * kItemRows, end = std::min(T, begin + kItemRows);
    const Tiles left(scratch.data() + worker * slice, K);
    left_of_rows(k, x.slice(begin, end), left);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      multiply(k, left, weights[j], jobs[j].y.slice(begin, end), false);
    }
  });
}

void rounded_activate_row(const Activation& a, const float* gate, const float* up, std::size_t n,
                          float* y) {
  if (a.situ) {
    training_kernels().situ(gate, up, a.beta, a.linear_beta, n, y);
  } else {
    activate_row(a, gate, up, n, y);
  }
}

void rounded_activate(Context& ctx, Mat<const float> gate, Mat<const float> up, const Activation& a,
                      Mat<float> y) {
  TRIAX_CHECK(up.shape == gate.shape && y.shape == gate.shape);
  for_row_blocks(ctx, y.shape[0], y.shape[1], [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      rounded_activate_row(a, gate[t].data, up[t].data, y.shape[1], y[t].data);
    }
  });
}

void rounded_linear_backward(Context& ctx, Mat<const float> x,
                             std::span<const RoundedGradientJob> jobs, Mat<float> dx,
                             bool accumulate) {
  const RoundedKernels& k = *training_kernels().rounded;
  const std::size_t T = x.shape[0], K = x.shape[1];
  TRIAX_CHECK(dx.shape == x.shape);
  const Arena::Scope scope(ctx.arena);
  const Tiles x_right = Tiles::take(ctx, K, T);
  std::vector<Tiles> weights, given;
  std::size_t widest = 0;
  for (const RoundedGradientJob& job : jobs) {
    const std::size_t N = job.w.shape[0];
    TRIAX_CHECK(job.w.shape[1] == K && job.dy.shape[0] == T && job.dy.shape[1] == N);
    TRIAX_CHECK(job.dw.shape == job.w.shape);
    ctx.count(0, 4 * T * N * K);
    weights.push_back(Tiles::take(ctx, K, N));
    given.push_back(Tiles::take(ctx, N, T));
    widest = std::max(widest, N);
  }
  for_strips(ctx, jobs, kRoundedDepth, [&](std::size_t j, std::size_t row) {
    Tiles to = weights[j];
    to.data = to.column(row);
    right_of_cols(k, rows_of(jobs[j].w, row, kRoundedDepth), to);
  });

  const std::size_t slice = Tiles::size(kItemRows, widest);
  const std::span<bf16> scratch = ctx.arena.take<bf16>(ctx.pool.threads() * slice);
  ctx.pool.parallel_for(ceil_div(T, kItemRows), [&](std::size_t item, std::size_t worker) {
    const std::size_t begin = item * kItemRows, end = std::min(T, begin + kItemRows);
    Tiles part = x_right;
    part.data = part.column(begin);
    right_of_cols(k, x.slice(begin, end), part);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const Mat<const float> dy = jobs[j].dy.slice(begin, end);
      part = given[j];
      part.data = part.column(begin);
      left_of_cols(k, dy, part);
      const Tiles left(scratch.data() + worker * slice, dy.shape[1]);
      left_of_rows(k, dy, left);
      multiply(k, left, weights[j], dx.slice(begin, end), accumulate || j > 0);
    }
  });

  struct Block {
    std::size_t job, row;
  };
  std::vector<Block> blocks;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (std::size_t r = 0; r < jobs[j].w.shape[0]; r += kWeightRows) blocks.push_back({j, r});
  }
  ctx.pool.parallel_for(blocks.size(), [&](std::size_t item, std::size_t) {
    const auto& [j, row] = blocks[item];
    Tiles left = given[j];
    left.data = left.row(row);
    const Mat<float> dw = jobs[j].dw;
    multiply(k, left, x_right, dw.slice(row, std::min(row + kWeightRows, dw.shape[0])), true);
  });
}

}  // namespace triax::ops
