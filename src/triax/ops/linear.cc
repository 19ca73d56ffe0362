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
// pass. Its columns are a multiple of a pair of tiles.
constexpr std::size_t kMatrixItemRows = 256;
constexpr std::size_t kMatrixColumnUnit = 32;

std::size_t columns_per_item(const MatrixView& w, std::size_t unit, std::size_t most) {
  const std::size_t row_bytes = std::max<std::size_t>(w.cols * dtype_size(w.dtype), 1);
  return std::min(round_up(ceil_div(kItemWeightBytes, row_bytes), unit), most);
}

// x in the forms that the kernels take; only those that the jobs need are there.
struct Operand {
  Mat<const float> f32;
  Mat<const bf16> half;          // empty: weights are multiplied with f32
  const bf16* packed = nullptr;  // for the matrix unit
};

// Products that the matrix unit does: all rows or none, so that a row's sums have one order.
bool suits_matrix(const MatrixView& w) {
  return kernels().matrix != nullptr && w.dtype != DType::F32 && w.rows >= kMatrixTile &&
         w.cols % kMatrixTileCols == 0;
}

void check_jobs(Mat<const float> x, std::span<const LinearJob> jobs) {
  for (const LinearJob& job : jobs) {
    TRIAX_CHECK(job.w.present() && job.w.cols == x.shape[1], "weight columns are x's columns");
    TRIAX_CHECK(
        job.w.dtype == DType::BF16 || job.w.dtype == DType::F32 ||
            (job.w.dtype == DType::I8 && job.w.scale != nullptr && job.w.cols % kQuantGroup == 0),
        "trunk weights are BF16, F32, or I8 with scales");
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
  } else if (w.dtype == DType::I8) {
    const bf16* scale = w.scale + column * (K / kQuantGroup);
    if (x.half.data != nullptr) {
      k.linear_bf16_int8(x.half.data + row * x.half.stride, x.half.stride, rows,
                         w.as_i8() + column * K, scale, columns, K, out, y.stride);
    } else {
      k.linear_f32_int8(x.f32.data + row * x.f32.stride, x.f32.stride, rows, w.as_i8() + column * K,
                        scale, columns, K, out, y.stride);
    }
  } else if (x.half.data != nullptr) {
    k.linear_bf16_bf16(x.half.data + row * x.half.stride, x.half.stride, rows,
                       w.as_bf16() + column * K, K, columns, K, out, y.stride);
  } else {
    k.linear_f32_bf16(x.f32.data + row * x.f32.stride, x.f32.stride, rows, w.as_bf16() + column * K,
                      K, columns, K, out, y.stride);
  }
}

void matrix_product(const Operand& x, const MatrixView& w, std::size_t row, std::size_t rows,
                    std::size_t column, std::size_t columns, Mat<float> y, float* scratch) {
  const MatrixKernels& matrix = *kernels().matrix;
  const std::size_t K = w.cols;
  const PackedRows packed{x.packed + row * K, rows, y.shape[0] == 1};
  float* out = y.data + row * y.stride + column;
  if (w.dtype == DType::I8) {
    matrix.product_int8(packed, w.as_i8() + column * K, w.scale + column * (K / kQuantGroup),
                        columns, K, out, y.stride, scratch);
  } else {
    matrix.product_bf16(packed, w.as_bf16() + column * K, K, columns, K, out, y.stride, scratch);
  }
}

// One job, cut into items: blocks of columns, and of rows within them.
struct Part {
  const LinearJob* job;
  bool matrix;  // by the matrix unit
  std::size_t row_block, row_blocks;
  std::size_t column_block, column_blocks;  // the last block takes what is left, too
  std::size_t first_item;

  std::size_t items() const { return row_blocks * column_blocks; }
};

Part make_part(const LinearJob& job, bool matrix, std::size_t first_item) {
  const std::size_t T = job.y.shape[0];
  const std::size_t height = matrix ? kMatrixItemRows : kItemRows;
  const std::size_t width = matrix ? columns_per_item(job.w, kMatrixColumnUnit, 256)
                                   : columns_per_item(job.w, kColumnUnit, 1024);
  // The matrix unit takes no fewer than 16 columns.
  const std::size_t blocks =
      matrix ? std::max<std::size_t>(job.w.rows / width, 1) : ceil_div(job.w.rows, width);
  return {&job, matrix, height, ceil_div(T, height), width, blocks, first_item};
}

void run_item(const Part& p, std::size_t item, const Operand& x, float* scratch) {
  // Row blocks turn fastest: threads that work at the same time read the same weights.
  const std::size_t block = item / p.row_blocks;
  const MatrixView& w = p.job->w;
  const Mat<float> y = p.job->y;
  const std::size_t row = item % p.row_blocks * p.row_block;
  const std::size_t rows = std::min(p.row_block, y.shape[0] - row);
  const std::size_t column = block * p.column_block;
  const std::size_t columns = block + 1 == p.column_blocks ? w.rows - column : p.column_block;
  if (p.matrix) {
    matrix_product(x, w, row, rows, column, columns, y, scratch);
  } else {
    product(x, w, row, rows, column, columns, y);
  }
}

void run(Context& ctx, const Operand& x, std::size_t T, std::span<const LinearJob> jobs) {
  for (const LinearJob& job : jobs) ctx.count(job.w.bytes(), 2 * T * job.w.rows * job.w.cols);
  const std::span<Part> parts = ctx.arena.take<Part>(jobs.size());
  std::size_t items = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    parts[i] = make_part(jobs[i], x.packed != nullptr && suits_matrix(jobs[i].w), items);
    items += parts[i].items();
  }
  const std::size_t slice = x.packed != nullptr ? matrix_scratch(jobs[0].w.cols) : 0;
  const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * slice);
  ctx.pool.parallel_for(items, [&](std::size_t item, std::size_t worker) {
    std::size_t p = 0;
    while (p + 1 < parts.size() && parts[p + 1].first_item <= item) ++p;
    run_item(parts[p], item - parts[p].first_item, x, scratch.data() + worker * slice);
  });
}

bool any_of_type(std::span<const LinearJob> jobs, DType type) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [&](const LinearJob& j) { return j.w.dtype == type; });
}

// x rounded to BF16, as the matrix unit takes it.
const bf16* pack_rows(Context& ctx, Mat<const float> x) {
  const std::size_t rows = x.shape[0], K = x.shape[1];
  const std::span<bf16> packed = ctx.arena.take<bf16>(packed_size(rows, K));
  if (rows == 1) {
    kernels().matrix->pack_row(x.data, K, packed.data(), ColumnOrder::plain);
    return packed.data();
  }
  const MatrixKernels* matrix = kernels().matrix;
  ctx.pool.parallel_for(ceil_div(rows, kMatrixTile), [&](std::size_t item, std::size_t) {
    const std::size_t first = item * kMatrixTile, n = std::min(kMatrixTile, rows - first);
    const float* at[kMatrixTile];
    for (std::size_t i = 0; i < n; ++i) at[i] = x[first + i].data;
    matrix->pack(at, n, K, packed.data() + first * K, K, ColumnOrder::plain);
  });
  return packed.data();
}

// x rounded to BF16; also widened again when a job's weights are float32.
Operand round_operand(Context& ctx, Mat<const float> x, std::span<const LinearJob> jobs) {
  const std::size_t T = x.shape[0], K = x.shape[1];
  Operand out{};
  const auto suits = [](const LinearJob& j) { return suits_matrix(j.w); };
  if (std::any_of(jobs.begin(), jobs.end(), suits)) out.packed = pack_rows(ctx, x);
  if (std::all_of(jobs.begin(), jobs.end(), suits)) return out;
  const Mat<bf16> half = ctx.arena.take_mat<bf16>(T, K);
  const bool widen = any_of_type(jobs, DType::F32);
  const Mat<float> wide = widen ? ctx.arena.take_mat<float>(T, K) : Mat<float>();
  out.half = half;
  out.f32 = wide;
  const KernelTable& k = kernels();
  for_row_blocks(ctx, T, K, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
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
