// Products with trunk weights: one work list over jobs, blocks of output columns and blocks of
// rows.
#include "triax/ops/linear.h"

#include <cstring>

#include "triax/kernels/kernels.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

// Bytes of weights in an item: large against the cost of taking one, small against a matrix.
constexpr std::size_t kItemWeightBytes = std::size_t{1} << 18;
// Rows of x in an item: a block of x and a block of weights lie in the second-level cache together.
constexpr std::size_t kItemRows = 128;
constexpr std::size_t kColumnUnit = 16;  // item widths are multiples of it

std::size_t columns_per_item(const MatrixView& w) {
  const std::size_t row_bytes = std::max<std::size_t>(w.cols * dtype_size(w.dtype), 1);
  const std::size_t columns = round_up(ceil_div(kItemWeightBytes, row_bytes), kColumnUnit);
  return std::min<std::size_t>(columns, 1024);
}

// x in the forms that the kernels take; only those that the jobs need are there.
struct Operand {
  Mat<const float> f32;
  Mat<const bf16> half;  // empty: weights in BF16 are multiplied with f32
};

void check_jobs(Mat<const float> x, std::span<const LinearJob> jobs) {
  for (const LinearJob& job : jobs) {
    TRIAX_CHECK(job.w.present() && job.w.cols == x.shape[1], "weight columns are x's columns");
    TRIAX_CHECK(job.w.dtype == DType::BF16 || job.w.dtype == DType::F32,
                "trunk weights are BF16 or F32");
    TRIAX_CHECK(job.y.shape[0] == x.shape[0] && job.y.shape[1] == job.w.rows, "y is [T, N]");
  }
}

void product(const Operand& x, const MatrixView& w, std::size_t row, std::size_t rows,
             std::size_t column, std::size_t columns, Mat<float> y) {
  const KernelTable& k = kernels();
  const std::size_t K = w.cols;
  float* out = y.data + row * y.stride + column;
  if (w.dtype == DType::F32) {
    k.linear_f32_f32(x.f32.data + row * x.f32.stride, x.f32.stride, rows, w.as_f32() + column * K,
                     K, columns, K, out, y.stride);
  } else if (x.half.data != nullptr) {
    k.linear_bf16_bf16(x.half.data + row * x.half.stride, x.half.stride, rows,
                       w.as_bf16() + column * K, K, columns, K, out, y.stride);
  } else {
    k.linear_f32_bf16(x.f32.data + row * x.f32.stride, x.f32.stride, rows, w.as_bf16() + column * K,
                      K, columns, K, out, y.stride);
  }
}

void run(Context& ctx, const Operand& x, std::size_t T, std::span<const LinearJob> jobs) {
  // first[j]: the first item of job j
  const std::span<std::size_t> first = ctx.arena.take<std::size_t>(jobs.size() + 1);
  const std::size_t row_blocks = ceil_div(T, kItemRows);
  first[0] = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    first[j + 1] = first[j] + row_blocks * ceil_div(jobs[j].w.rows, columns_per_item(jobs[j].w));
  }
  ctx.pool.parallel_for(first.back(), [&](std::size_t item, std::size_t) {
    std::size_t j = 0;
    while (first[j + 1] <= item) ++j;
    const LinearJob& job = jobs[j];
    // Row blocks turn fastest: threads that work at the same time read the same weights.
    const std::size_t block = (item - first[j]) / row_blocks;
    const std::size_t row = (item - first[j]) % row_blocks * kItemRows;
    const std::size_t width = columns_per_item(job.w), column = block * width;
    product(x, job.w, row, std::min(kItemRows, T - row), column,
            std::min(width, job.w.rows - column), job.y);
  });
}

bool any_of_type(std::span<const LinearJob> jobs, DType type) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [&](const LinearJob& j) { return j.w.dtype == type; });
}

// x rounded to BF16; also widened again when a job's weights are float32.
Operand round_operand(Context& ctx, Mat<const float> x, std::span<const LinearJob> jobs) {
  const std::size_t T = x.shape[0], K = x.shape[1];
  const Mat<bf16> half = ctx.arena.take_mat<bf16>(T, K);
  const bool widen = any_of_type(jobs, DType::F32);
  const Mat<float> wide = widen ? ctx.arena.take_mat<float>(T, K) : Mat<float>();
  const KernelTable& k = kernels();
  for_row_blocks(ctx, T, K, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      k.to_bf16(x[t].data, K, half[t].data);
      if (widen) k.from_bf16(half[t].data, K, wide[t].data);
    }
  });
  return {wide, half};
}

}  // namespace

void linear(Context& ctx, Mat<const float> x, std::span<const LinearJob> jobs) {
  check_jobs(x, jobs);
  if (x.shape[0] == 0) return;
  const Arena::Scope scope(ctx.arena);
  const Operand operand =
      ctx.precision == Precision::bf16 ? round_operand(ctx, x, jobs) : Operand{x, {}};
  run(ctx, operand, x.shape[0], jobs);
}

void linear(Context& ctx, Mat<const float> x, const MatrixView& w, Mat<float> y) {
  const LinearJob job{w, y};
  linear(ctx, x, {&job, 1});
}

void linear_f32(Context& ctx, Mat<const float> x, std::span<const LinearJob> jobs) {
  check_jobs(x, jobs);
  if (x.shape[0] == 0) return;
  const Arena::Scope scope(ctx.arena);
  run(ctx, {x, {}}, x.shape[0], jobs);
}

void linear_f32(Context& ctx, Mat<const float> x, const MatrixView& w, Mat<float> y) {
  const LinearJob job{w, y};
  linear_f32(ctx, x, {&job, 1});
}

void embed(Context& ctx, const MatrixView& table, Vec<const std::int32_t> ids, Mat<float> y) {
  const std::size_t T = ids.size(), n = table.cols;
  TRIAX_CHECK(table.present() && y.shape[0] == T && y.shape[1] == n, "y is [T, hidden]");
  for (std::size_t t = 0; t < T; ++t) {
    if (ids[t] < 0 || static_cast<std::size_t>(ids[t]) >= table.rows) {
      fail(
          "token id {} at position {} of the input is outside the vocabulary of {}; check that the "
          "ids "
          "come from this model's tokenizer",
          ids[t], t, table.rows);
    }
  }
  const KernelTable& k = kernels();
  for_row_blocks(ctx, T, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      const std::size_t at = static_cast<std::size_t>(ids[t]) * n;
      if (table.dtype == DType::F32) {
        std::memcpy(y[t].data, table.as_f32() + at, n * sizeof(float));
      } else {
        k.from_bf16(table.as_bf16() + at, n, y[t].data);
      }
    }
  });
}

}  // namespace triax::ops
