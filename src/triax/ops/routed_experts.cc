// The routed experts. Tokens are grouped by expert, so an expert's weights are decoded once for all
// of its tokens. Stage A, items (expert, rows of w1 and w3): h = act(w1 z, w3 z). Stage B, items
// (rows of w2): every expert in ascending order adds to its tokens; an item owns its columns of the
// aggregate, so the order of a token's sum is that of the ids and no buffer for single experts is
// needed.
#include <algorithm>
#include <cstring>

#include "triax/kernels/kernels.h"
#include "triax/ops/moe.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

constexpr std::size_t kGateRows = 128;    // rows of w1 and w3 in an item
constexpr std::size_t kDownRows = 64;     // rows of w2 in an item
constexpr std::size_t kTokenBlock = 256;  // tokens of a product: bounds the scratch

// Rows of activations in the number mode's form.
struct Rows {
  Mat<float> f32;
  Mat<bf16> half;
  Rows(Context& ctx, std::size_t rows, std::size_t cols) {
    if (ctx.precision == Precision::bf16) {
      half = ctx.arena.take_mat<bf16>(rows, cols);
    } else {
      f32 = ctx.arena.take_mat<float>(rows, cols);
    }
  }
  void store(std::size_t row, std::size_t column, const float* x, std::size_t n) const {
    if (half.data != nullptr) {
      kernels().to_bf16(x, n, half[row].data + column);
    } else {
      std::memcpy(f32[row].data + column, x, n * sizeof(float));
    }
  }
};

// y [M, rows] = x rows [first, first + M) times rows [row, row + rows) of w.
void product(const Rows& x, std::size_t first, std::size_t M, const Mxfp4View& w, std::size_t row,
             std::size_t rows, float* y, std::size_t ldy, float* scratch) {
  const std::uint8_t* packed = w.packed + row * (w.cols / 2);
  const std::uint8_t* scale = w.scale + row * (w.cols / 32);
  if (x.half.data != nullptr) {
    kernels().linear_bf16_mxfp4(x.half[first].data, w.cols, M, packed, scale, rows, w.cols, y, ldy,
                                scratch);
  } else {
    kernels().linear_f32_mxfp4(x.f32[first].data, w.cols, M, packed, scale, rows, w.cols, y, ldy,
                               scratch);
  }
}

// The (token, expert) pairs in order of expert, then of token.
struct Grouping {
  std::span<std::size_t> first;    // [experts + 1]: pairs of expert e are [first[e], first[e+1])
  std::span<std::uint32_t> token;  // [pairs]
  std::span<float> weight;         // [pairs]
  // By the matrix unit, all pairs or none.
  bool matrix;
  std::span<std::size_t> tile_row;  // [experts + 1]: first row of e's tiles in a packed matrix

  std::size_t pairs(std::size_t e) const { return first[e + 1] - first[e]; }
};

Grouping group(Context& ctx, Mat<const std::int32_t> ids, Mat<const float> weights,
               std::span<const std::int32_t> experts) {
  const std::size_t T = ids.shape[0], k = ids.shape[1];
  Grouping g{ctx.arena.take<std::size_t>(experts.size() + 1), ctx.arena.take<std::uint32_t>(T * k),
             ctx.arena.take<float>(T * k),
             ctx.precision == Precision::bf16 && kernels().matrix != nullptr,
             ctx.arena.take<std::size_t>(experts.size() + 1)};
  const std::span<std::size_t> slot = ctx.arena.take<std::size_t>(T * k);
  std::fill(g.first.begin(), g.first.end(), 0);
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t i = 0; i < k; ++i) {
      TRIAX_CHECK(i == 0 || ids[t][i - 1] < ids[t][i], "a token's ids ascend");
      const auto at = std::lower_bound(experts.begin(), experts.end(), ids[t][i]);
      TRIAX_CHECK(at != experts.end() && *at == ids[t][i], "every chosen expert is given");
      slot[t * k + i] = static_cast<std::size_t>(at - experts.begin());
      ++g.first[slot[t * k + i] + 1];
    }
  }
  for (std::size_t e = 0; e < experts.size(); ++e) g.first[e + 1] += g.first[e];
  const std::span<std::size_t> next = ctx.arena.take<std::size_t>(experts.size());
  std::copy_n(g.first.begin(), experts.size(), next.begin());
  for (std::size_t p = 0; p < T * k; ++p) {
    const std::size_t at = next[slot[p]]++;
    g.token[at] = static_cast<std::uint32_t>(p / k);
    g.weight[at] = weights[p / k][p % k];
  }
  // A single row needs no tiles.
  g.tile_row[0] = 0;
  for (std::size_t e = 0; e < experts.size(); ++e) {
    const std::size_t n = g.pairs(e);
    g.tile_row[e + 1] = g.tile_row[e] + (n == 1 ? 1 : round_up(n, kMatrixTile));
  }
  return g;
}

// Activations of the matrix unit's pairs, packed expert by expert.
struct PackedExperts {
  const Grouping& g;
  std::span<bf16> data;
  std::size_t cols;
  PackedExperts(Context& ctx, const Grouping& grouping, std::size_t n)
      : g(grouping), data(ctx.arena.take<bf16>(g.matrix ? g.tile_row.back() * n : 0)), cols(n) {}

  bf16* at(std::size_t e, std::size_t m) const { return data.data() + (g.tile_row[e] + m) * cols; }
  // Rows [m, m + M) of expert e, m a multiple of 16.
  PackedRows rows(std::size_t e, std::size_t m, std::size_t M) const {
    return {at(e, m), M, g.pairs(e) == 1};
  }
  // Columns [column, column + n), both multiples of 32, of those rows.
  void store(std::size_t e, std::size_t m, std::size_t M, std::size_t column, const float* const* x,
             std::size_t n) const {
    const MatrixKernels& matrix = *kernels().matrix;
    if (g.pairs(e) == 1) return matrix.pack_row(x[0], n, at(e, 0) + column, ColumnOrder::mxfp4);
    matrix.pack(x, M, n, at(e, m) + column / kMatrixTileCols * packed_tile(), cols,
                ColumnOrder::mxfp4);
  }
};

// The inputs of all experts: gathered rows of z, in the form that their product takes.
void gather(Context& ctx, Mat<const float> z, const Grouping& g, const Rows& rows,
            const PackedExperts& packed) {
  const std::size_t experts = g.first.size() - 1, latent = z.shape[1];
  ctx.pool.parallel_for(experts, [&](std::size_t e, std::size_t) {
    if (!g.matrix) {
      for (std::size_t p = g.first[e]; p < g.first[e + 1]; ++p) {
        rows.store(p, 0, z[g.token[p]].data, latent);
      }
      return;
    }
    for (std::size_t p = g.first[e]; p < g.first[e + 1]; p += kMatrixTile) {
      const float* at[kMatrixTile];
      const std::size_t n = std::min(kMatrixTile, g.first[e + 1] - p);
      for (std::size_t i = 0; i < n; ++i) at[i] = z[g.token[p + i]].data;
      packed.store(e, p - g.first[e], n, 0, at, latent);
    }
  });
}

void check_shapes(Mat<const float> z, Mat<const std::int32_t> ids, Mat<const float> weights,
                  std::span<const std::int32_t> experts, std::span<const ExpertView> views,
                  Mat<float> aggregate) {
  const std::size_t latent = z.shape[1];
  TRIAX_CHECK(ids.shape[0] == z.shape[0] && weights.shape == ids.shape, "ids, weights [T, top_k]");
  TRIAX_CHECK(aggregate.shape == z.shape, "aggregate is [T, latent]");
  TRIAX_CHECK(experts.size() == views.size(), "one view an expert");
  for (std::size_t e = 0; e < views.size(); ++e) {
    const ExpertView& v = views[e];
    const std::size_t width = views[0].w1.rows;
    TRIAX_CHECK(e == 0 || experts[e - 1] < experts[e], "experts ascend");
    TRIAX_CHECK(v.w1.rows == width && v.w1.cols == latent, "w1 is [width, latent]");
    TRIAX_CHECK(v.w3.rows == width && v.w3.cols == latent, "w3 is [width, latent]");
    TRIAX_CHECK(v.w2.rows == latent && v.w2.cols == width, "w2 is [latent, width]");
    TRIAX_CHECK(latent % 32 == 0 && width % 32 == 0, "whole MXFP4 groups");
  }
}

// What the two stages work on.
struct Stages {
  const Grouping& g;
  const Rows &z, &h;  // [pairs, latent], [pairs, width]
  const PackedExperts &packed_z, &packed_h;
};

// Rows of a matrix from `row` on; nothing when `w` is null.
struct RowsOf {
  const Mxfp4View* w = nullptr;
  std::size_t row = 0;
  const std::uint8_t* codes() const {
    return w == nullptr ? nullptr : w->packed + row * (w->cols / 2);
  }
  const std::uint8_t* scale() const {
    return w == nullptr ? nullptr : w->scale + row * (w->cols / 32);
  }
};

// y [M, rows] = pairs [m, m + M) of expert e times `rows` rows of w, by either form of the
// activations. `next`: what this thread will probably read after it.
void product(const Grouping& g, const Rows& x, const PackedExperts& packed, std::size_t e,
             std::size_t m, std::size_t M, RowsOf w, std::size_t rows, float* y, std::size_t ldy,
             float* scratch, RowsOf next) {
  if (!g.matrix) return product(x, g.first[e] + m, M, *w.w, w.row, rows, y, ldy, scratch);
  kernels().matrix->product_mxfp4(packed.rows(e, m, M), w.codes(), w.scale(), rows, w.w->cols, y,
                                  ldy, scratch, next.codes(), next.scale());
}

// h[pairs of e, rows] = act(w1 z, w3 z)
void gate_and_up(const Stages& s, std::size_t e, const ExpertView& v, const Activation& activation,
                 std::size_t row, std::size_t rows, float* scratch, RowsOf next) {
  const Grouping& g = s.g;
  float* gate = scratch + kMxfp4RowTile * v.w1.cols;  // [kTokenBlock, kGateRows]
  float* up = gate + kTokenBlock * kGateRows;         // [kTokenBlock, kGateRows]
  for (std::size_t m = 0; m < g.pairs(e); m += kTokenBlock) {
    const std::size_t M = std::min(kTokenBlock, g.pairs(e) - m);
    product(g, s.z, s.packed_z, e, m, M, {&v.w1, row}, rows, gate, kGateRows, scratch,
            {&v.w3, row});
    product(g, s.z, s.packed_z, e, m, M, {&v.w3, row}, rows, up, kGateRows, scratch, next);
    const float* at[kTokenBlock];
    for (std::size_t i = 0; i < M; ++i) {
      float* out = gate + i * kGateRows;
      activate_row(activation, out, up + i * kGateRows, rows, out);
      at[i] = out;
    }
    if (g.matrix) {
      s.packed_h.store(e, m, M, row, at, rows);
    } else {
      for (std::size_t i = 0; i < M; ++i) s.h.store(g.first[e] + m + i, row, at[i], rows);
    }
  }
}

// aggregate[t, rows] = sum over experts of weight * (w2 h)[rows]
void down(const Stages& s, std::span<const ExpertView> views, std::size_t row, std::size_t rows,
          float* scratch, std::size_t next_row, Mat<float> aggregate) {
  const Grouping& g = s.g;
  for (std::size_t t = 0; t < aggregate.shape[0]; ++t)
    std::fill_n(aggregate[t].data + row, rows, 0.0f);
  for (std::size_t e = 0; e < views.size(); ++e) {
    const Mxfp4View& w = views[e].w2;
    const RowsOf next = e + 1 < views.size() ? RowsOf{&views[e + 1].w2, row}
                        : next_row < w.rows  ? RowsOf{&views[0].w2, next_row}
                                             : RowsOf{};
    float* y = scratch + kMxfp4RowTile * w.cols;  // [kTokenBlock, kDownRows]
    for (std::size_t m = 0; m < g.pairs(e); m += kTokenBlock) {
      const std::size_t M = std::min(kTokenBlock, g.pairs(e) - m);
      product(g, s.h, s.packed_h, e, m, M, {&w, row}, rows, y, kDownRows, scratch, next);
      for (std::size_t i = 0; i < M; ++i) {
        const std::size_t p = g.first[e] + m + i;
        kernels().axpy(g.weight[p], y + i * kDownRows, rows, aggregate[g.token[p]].data + row);
      }
    }
  }
}

}  // namespace

void routed_experts(Context& ctx, Mat<const float> z, Mat<const std::int32_t> ids,
                    Mat<const float> weights, std::span<const std::int32_t> experts,
                    std::span<const ExpertView> views, const Activation& activation,
                    Mat<float> aggregate) {
  check_shapes(z, ids, weights, experts, views, aggregate);
  if (z.shape[0] == 0) return;
  TRIAX_CHECK(!views.empty(), "experts for the tokens");
  const std::size_t latent = z.shape[1], width = views[0].w1.rows, pairs = ids.size();
  const std::size_t expert_bytes = 3 * latent * width / 32 * 17;  // 16 bytes of codes, one of scale
  ctx.count(views.size() * expert_bytes, 6 * pairs * latent * width);
  const Arena::Scope scope(ctx.arena);
  const Grouping g = group(ctx, ids, weights, experts);
  const Rows gathered(ctx, g.matrix ? 0 : pairs, latent), h(ctx, g.matrix ? 0 : pairs, width);
  const PackedExperts packed_z(ctx, g, latent), packed_h(ctx, g, width);
  gather(ctx, z, g, gathered, packed_z);
  const Stages stages{g, gathered, h, packed_z, packed_h};

  // One slice of scratch a worker: decoded weight rows, then outputs.
  const std::size_t slice = kMxfp4RowTile * std::max(latent, width) + 2 * kTokenBlock * kGateRows;
  const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * slice);
  const std::size_t blocks = ceil_div(width, kGateRows);
  const std::size_t threads = ctx.pool.threads();
  ctx.pool.parallel_for(views.size() * blocks, [&](std::size_t item, std::size_t worker) {
    const std::size_t e = item / blocks, row = item % blocks * kGateRows;
    const std::size_t later = item + threads;  // what this thread will probably take next
    const RowsOf next = later / blocks < views.size()
                            ? RowsOf{&views[later / blocks].w1, later % blocks * kGateRows}
                            : RowsOf{};
    gate_and_up(stages, e, views[e], activation, row, std::min(kGateRows, width - row),
                scratch.data() + worker * slice, next);
  });
  ctx.pool.parallel_for(ceil_div(latent, kDownRows), [&](std::size_t item, std::size_t worker) {
    const std::size_t row = item * kDownRows;
    down(stages, views, row, std::min(kDownRows, latent - row), scratch.data() + worker * slice,
         row + threads * kDownRows, aggregate);
  });
}

}  // namespace triax::ops
