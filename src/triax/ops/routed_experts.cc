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

constexpr std::size_t kGateRows = 64;     // rows of w1 and w3 in an item
constexpr std::size_t kDownRows = 32;     // rows of w2 in an item
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

// The (token, expert) pairs in order of expert, then of token. The matrix unit's pairs of an expert
// stand before the others, since its tokens are the batch's first.
struct Grouping {
  std::span<std::size_t> first;     // [experts + 1]: pairs of expert e are [first[e], first[e+1])
  std::span<std::size_t> vector;    // [experts]: from here on the vector kernels' pairs
  std::span<std::size_t> tile_row;  // [experts + 1]: first row of e's tiles in a packed matrix
  std::span<std::uint32_t> token;   // [pairs]
  std::span<float> weight;          // [pairs]
};

Grouping group(Context& ctx, Mat<const std::int32_t> ids, Mat<const float> weights,
               std::span<const std::int32_t> experts) {
  const std::size_t T = ids.shape[0], k = ids.shape[1];
  Grouping g{ctx.arena.take<std::size_t>(experts.size() + 1),
             ctx.arena.take<std::size_t>(experts.size()),
             ctx.arena.take<std::size_t>(experts.size() + 1), ctx.arena.take<std::uint32_t>(T * k),
             ctx.arena.take<float>(T * k)};
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
  const bool matrix = ctx.precision == Precision::bf16 && kernels().matrix != nullptr;
  const std::size_t rows = matrix ? ctx.matrix_rows : 0;
  g.tile_row[0] = 0;
  for (std::size_t e = 0; e < experts.size(); ++e) {
    const auto begin = g.token.begin() + static_cast<std::ptrdiff_t>(g.first[e]);
    const auto end = g.token.begin() + static_cast<std::ptrdiff_t>(g.first[e + 1]);
    const std::size_t count = static_cast<std::size_t>(std::lower_bound(begin, end, rows) - begin);
    g.vector[e] = g.first[e] + count;
    g.tile_row[e + 1] = g.tile_row[e] + round_up(count, kMatrixTile);
  }
  return g;
}

// Activations of the matrix unit's pairs, packed expert by expert.
struct PackedRows {
  std::span<bf16> data;
  std::size_t cols;
  PackedRows(Context& ctx, const Grouping& g, std::size_t n)
      : data(ctx.arena.take<bf16>(g.tile_row.back() * n)), cols(n) {}
  // Tile row holding row `m` (a multiple of 16) of expert e, from column `column` (of 32) on.
  bf16* at(const Grouping& g, std::size_t e, std::size_t m, std::size_t column = 0) const {
    return data.data() + (g.tile_row[e] + m) * cols + column / kMatrixTileCols * packed_tile();
  }
};

// The inputs of all experts: gathered rows of z, in the form that their product takes.
void gather(Context& ctx, Mat<const float> z, const Grouping& g, const Rows& rows,
            const PackedRows& packed) {
  const std::size_t experts = g.vector.size(), latent = z.shape[1];
  ctx.pool.parallel_for(experts, [&](std::size_t e, std::size_t) {
    for (std::size_t p = g.first[e]; p < g.vector[e]; p += kMatrixTile) {
      const float* at[kMatrixTile];
      const std::size_t n = std::min(kMatrixTile, g.vector[e] - p);
      for (std::size_t i = 0; i < n; ++i) at[i] = z[g.token[p + i]].data;
      kernels().matrix->pack(at, n, latent, packed.at(g, e, p - g.first[e]), latent);
    }
    for (std::size_t p = g.vector[e]; p < g.first[e + 1]; ++p) {
      rows.store(p, 0, z[g.token[p]].data, latent);
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
  const PackedRows &packed_z, &packed_h;
};

// y [M, rows] = rows [m, m + M) of expert e's packed activations times rows [row, row + rows) of w.
// `next` (or null): the matrix whose same rows come after this.
void matrix_product(const Grouping& g, const PackedRows& x, std::size_t e, std::size_t m,
                    std::size_t M, const Mxfp4View& w, std::size_t row, std::size_t rows, float* y,
                    std::size_t ldy, float* scratch, const Mxfp4View* next) {
  const std::size_t packed = row * (w.cols / 2), scale = row * (w.cols / 32);
  kernels().matrix->product_mxfp4(x.at(g, e, m), M, w.packed + packed, w.scale + scale, rows,
                                  w.cols, y, ldy, scratch,
                                  next == nullptr ? nullptr : next->packed + packed,
                                  next == nullptr ? nullptr : next->scale + scale);
}

// h[pairs of e, rows] = act(w1 z, w3 z)
void gate_and_up(const Stages& s, std::size_t e, const ExpertView& v, const Activation& activation,
                 std::size_t row, std::size_t rows, float* scratch) {
  const Grouping& g = s.g;
  float* gate = scratch + kMxfp4RowTile * v.w1.cols;  // [kTokenBlock, kGateRows]
  float* up = gate + kTokenBlock * kGateRows;         // [kTokenBlock, kGateRows]
  const auto activate_rows = [&](std::size_t M) {
    for (std::size_t m = 0; m < M; ++m) {
      float* out = gate + m * kGateRows;
      activate_row(activation, out, up + m * kGateRows, rows, out);
    }
  };
  for (std::size_t p = g.first[e]; p < g.vector[e]; p += kTokenBlock) {
    const std::size_t M = std::min(kTokenBlock, g.vector[e] - p), m = p - g.first[e];
    matrix_product(g, s.packed_z, e, m, M, v.w1, row, rows, gate, kGateRows, scratch, &v.w3);
    matrix_product(g, s.packed_z, e, m, M, v.w3, row, rows, up, kGateRows, scratch, nullptr);
    activate_rows(M);
    const float* at[kTokenBlock];
    for (std::size_t i = 0; i < M; ++i) at[i] = gate + i * kGateRows;
    kernels().matrix->pack(at, M, rows, s.packed_h.at(g, e, m, row), s.packed_h.cols);
  }
  for (std::size_t p = g.vector[e]; p < g.first[e + 1]; p += kTokenBlock) {
    const std::size_t M = std::min(kTokenBlock, g.first[e + 1] - p);
    product(s.z, p, M, v.w1, row, rows, gate, kGateRows, scratch);
    product(s.z, p, M, v.w3, row, rows, up, kGateRows, scratch);
    activate_rows(M);
    for (std::size_t m = 0; m < M; ++m) s.h.store(p + m, row, gate + m * kGateRows, rows);
  }
}

// aggregate[t, rows] = sum over experts of weight * (w2 h)[rows]
void down(const Stages& s, std::span<const ExpertView> views, std::size_t row, std::size_t rows,
          float* scratch, Mat<float> aggregate) {
  const Grouping& g = s.g;
  for (std::size_t t = 0; t < aggregate.shape[0]; ++t)
    std::fill_n(aggregate[t].data + row, rows, 0.0f);
  for (std::size_t e = 0; e < views.size(); ++e) {
    const Mxfp4View& w = views[e].w2;
    float* y = scratch + kMxfp4RowTile * w.cols;  // [kTokenBlock, kDownRows]
    const auto add = [&](std::size_t p, std::size_t M) {
      for (std::size_t m = 0; m < M; ++m) {
        kernels().axpy(g.weight[p + m], y + m * kDownRows, rows,
                       aggregate[g.token[p + m]].data + row);
      }
    };
    for (std::size_t p = g.first[e]; p < g.vector[e]; p += kTokenBlock) {
      const std::size_t M = std::min(kTokenBlock, g.vector[e] - p);
      matrix_product(g, s.packed_h, e, p - g.first[e], M, w, row, rows, y, kDownRows, scratch,
                     e + 1 < views.size() ? &views[e + 1].w2 : nullptr);
      add(p, M);
    }
    for (std::size_t p = g.vector[e]; p < g.first[e + 1]; p += kTokenBlock) {
      const std::size_t M = std::min(kTokenBlock, g.first[e + 1] - p);
      product(s.h, p, M, w, row, rows, y, kDownRows, scratch);
      add(p, M);
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
  const Rows gathered(ctx, pairs, latent), h(ctx, pairs, width);
  const PackedRows packed_z(ctx, g, latent), packed_h(ctx, g, width);
  gather(ctx, z, g, gathered, packed_z);
  const Stages stages{g, gathered, h, packed_z, packed_h};

  // One slice of scratch a worker: decoded weight rows, then outputs.
  const std::size_t slice = kMxfp4RowTile * std::max(latent, width) + 2 * kTokenBlock * kGateRows;
  const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * slice);
  const std::size_t blocks = ceil_div(width, kGateRows);
  ctx.pool.parallel_for(views.size() * blocks, [&](std::size_t item, std::size_t worker) {
    const std::size_t e = item / blocks, row = item % blocks * kGateRows;
    gate_and_up(stages, e, views[e], activation, row, std::min(kGateRows, width - row),
                scratch.data() + worker * slice);
  });
  ctx.pool.parallel_for(ceil_div(latent, kDownRows), [&](std::size_t item, std::size_t worker) {
    const std::size_t row = item * kDownRows;
    down(stages, views, row, std::min(kDownRows, latent - row), scratch.data() + worker * slice,
         aggregate);
  });
}

}  // namespace triax::ops
