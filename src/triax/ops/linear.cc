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
// An item of the matrix unit: packed rows that stay in the second-level cache, while the weights
// pass.
constexpr std::size_t kMatrixItemRows = 256;
constexpr std::size_t kMatrixItemColumns = 128;

std::size_t columns_per_item(const MatrixView& w) {
  const std::size_t row_bytes = std::max<std::size_t>(w.cols * dtype_size(w.dtype), 1);
  const std::size_t columns = round_up(ceil_div(kItemWeightBytes, row_bytes), kColumnUnit);
  return std::min<std::size_t>(columns, 1024);
}

// x in the forms that the kernels take; only those that the jobs need are there.
struct Operand {
  Mat<const float> f32;
  Mat<const bf16> half;          // empty: weights in BF16 are multiplied with f32
  const bf16* packed = nullptr;  // the first packed_rows rows, for the matrix unit
  std::size_t packed_rows = 0;
};

// Products that the matrix unit can do.
bool suits_matrix(const MatrixView& w) {
  return kernels().matrix != nullptr && w.dtype == DType::BF16 && w.rows >= kMatrixTile &&
         w.cols % kMatrixTileCols == 0;
}

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

// Rows [row, row + rows) of one job, cut into items: blocks of columns, and of rows within them.
struct Part {
  const LinearJob* job;
  bool matrix;  // by the matrix unit
  std::size_t row, rows;
  std::size_t row_block, row_blocks;
  std::size_t column_block, column_blocks;  // the last block takes what is left, too
  std::size_t first_item;

  std::size_t items() const { return row_blocks * column_blocks; }
};

Part vector_part(const LinearJob& job, std::size_t row, std::size_t rows) {
  const std::size_t width = columns_per_item(job.w);
  return {&job,      false,
          row,       rows,
          kItemRows, ceil_div(rows, kItemRows),
          width,     ceil_div(job.w.rows, width),
          0};
}

Part matrix_part(const LinearJob& job, std::size_t rows) {
  return {&job,
          true,
          0,
          rows,
          kMatrixItemRows,
          ceil_div(rows, kMatrixItemRows),
          kMatrixItemColumns,
          std::max<std::size_t>(job.w.rows / kMatrixItemColumns, 1),
          0};
}

void run_item(const Part& p, std::size_t item, const Operand& x, float* scratch) {
  // Row blocks turn fastest: threads that work at the same time read the same weights.
  const std::size_t block = item / p.row_blocks;
  const std::size_t row = p.row + item % p.row_blocks * p.row_block;
  const std::size_t rows = std::min(p.row_block, p.row + p.rows - row);
  const MatrixView& w = p.job->w;
  const Mat<float> y = p.job->y;
  const std::size_t column = block * p.column_block;
  const std::size_t columns = block + 1 == p.column_blocks ? w.rows - column : p.column_block;
  if (p.matrix) {
    kernels().matrix->product_bf16(x.packed + row * w.cols, rows, w.as_bf16() + column * w.cols,
                                   w.cols, columns, w.cols, y.data + row * y.stride + column,
                                   y.stride, scratch);
  } else {
    product(x, w, row, rows, column, columns, y);
  }
}

void run(Context& ctx, const Operand& x, std::size_t T, std::span<const LinearJob> jobs) {
  for (const LinearJob& job : jobs) ctx.count(job.w.bytes(), 2 * T * job.w.rows * job.w.cols);
  const std::span<Part> parts = ctx.arena.take<Part>(2 * jobs.size());
  std::size_t count = 0, items = 0;
  const auto add = [&](Part part) {
    if (part.rows == 0) return;
    part.first_item = items;
    items += part.items();
    parts[count++] = part;
  };
  for (const LinearJob& job : jobs) {
    const std::size_t rows = suits_matrix(job.w) ? x.packed_rows : 0;
    add(matrix_part(job, rows));
    add(vector_part(job, rows, T - rows));
  }
  const std::size_t slice = x.packed_rows > 0 ? matrix_scratch(jobs[0].w.cols) : 0;
  const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * slice);
  ctx.pool.parallel_for(items, [&](std::size_t item, std::size_t worker) {
    std::size_t p = 0;
    while (p + 1 < count && parts[p + 1].first_item <= item) ++p;
    run_item(parts[p], item - parts[p].first_item, x, scratch.data() + worker * slice);
  });
}

bool any_of_type(std::span<const LinearJob> jobs, DType type) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [&](const LinearJob& j) { return j.w.dtype == type; });
}

// The first rows of x, rounded to BF16, as the matrix unit takes them.
const bf16* pack_rows(Context& ctx, Mat<const float> x, std::size_t rows) {
  const std::size_t K = x.shape[1];
  const std::span<bf16> packed = ctx.arena.take<bf16>(packed_size(rows, K));
  const MatrixKernels* matrix = kernels().matrix;
  ctx.pool.parallel_for(ceil_div(rows, kMatrixTile), [&](std::size_t item, std::size_t) {
    const std::size_t first = item * kMatrixTile, n = std::min(kMatrixTile, rows - first);
    const float* at[kMatrixTile];
    for (std::size_t i = 0; i < n; ++i) at[i] = x[first + i].data;
    matrix->pack(at, n, K, packed.data() + first * K, K);
  });
  return packed.data();
}

// x rounded to BF16; also widened again when a job's weights are float32.
Operand round_operand(Context& ctx, Mat<const float> x, std::span<const LinearJob> jobs) {
  const std::size_t T = x.shape[0], K = x.shape[1];
  const Mat<bf16> half = ctx.arena.take_mat<bf16>(T, K);
  const bool widen = any_of_type(jobs, DType::F32);
  const Mat<float> wide = widen ? ctx.arena.take_mat<float>(T, K) : Mat<float>();
  Operand out{wide, half};
  const auto suits = [](const LinearJob& j) { return suits_matrix(j.w); };
  if (std::any_of(jobs.begin(), jobs.end(), suits)) {
    out.packed_rows = std::min(ctx.matrix_rows, T);
    out.packed = pack_rows(ctx, x, out.packed_rows);
  }
  const std::size_t first = std::all_of(jobs.begin(), jobs.end(), suits) ? out.packed_rows : 0;
  const KernelTable& k = kernels();
  for_row_blocks(ctx, T - first, K, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = first + begin; t < first + end; ++t) {
      k.to_bf16(x[t].data, K, half[t].data);
      if (widen) k.from_bf16(half[t].data, K, wide[t].data);
    }
  });
  return out;
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
  ctx.count(T * n * dtype_size(table.dtype), 0);
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
