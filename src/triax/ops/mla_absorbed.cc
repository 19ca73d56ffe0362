// MLA in the absorbed form: heads are rows of one product with the latent, so that the cache is
// read once for a group of heads. Three stages: q' = q_nope Wk; running softmax over the cache, the
// context of few rows cut into ranges for parallelism; ranges combined and Wv applied.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "triax/kernels/kernels.h"
#include "triax/ops/mla_tile.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

constexpr std::size_t kHeadGroup = 8;  // heads of an item
constexpr std::size_t kRowTile = 8;    // rows of an item
constexpr std::size_t kRange = 512;    // tokens of a range, at least
constexpr std::size_t kMostRanges =
    64;  // ranges times rows of a segment, at most: bounds the scratch

// The cut of one segment. Ranges follow from its own rows and context alone.
struct Plan {
  std::size_t segment = 0;
  std::size_t first_row = 0;  // of its rows in the packed q' and r
  std::size_t range = 0;      // tokens of a range
  std::size_t ranges = 0;
  std::size_t first_partial = 0;  // of its (row, range) entries in the partial results
  std::size_t first_item = 0;
};

// Partial results: for each (row, range, head): acc [latent], then largest and sum.
struct Partials {
  std::span<float> data;
  std::size_t heads, width;
  float* at(const Plan& p, std::size_t row, std::size_t range, std::size_t h) const {
    return data.data() + ((p.first_partial + row * p.ranges + range) * heads + h) * width;
  }
};

struct Work {
  const MlaShape& shape;
  const MatrixView& kv_b;
  const MlaBatch& batch;
  std::span<Plan> plans;
  View<float, 3> q;  // [rows, H, latent + rope]: q' and the shared channels, scaled
  Partials partials;
  std::size_t groups;

  const Segment& segment(const Plan& p) const { return batch.segments[p.segment]; }
  const LatentView& cache(const Plan& p) const { return batch.caches[p.segment]; }
  // Tokens that row i of the segment sees.
  std::size_t visible(const Plan& p, std::size_t i) const {
    return cache(p).tokens - segment(p).rows + i + 1;
  }
};

std::span<Plan> make_plans(Context& ctx, const MlaBatch& batch, std::size_t groups,
                           std::size_t& rows, std::size_t& partials, std::size_t& items) {
  const std::span<Plan> plans = ctx.arena.take<Plan>(batch.index.size());
  rows = partials = items = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    Plan& p = plans[i];
    p = {};
    p.segment = batch.index[i];
    const std::size_t n = batch.segments[p.segment].rows, context = batch.caches[p.segment].tokens;
    const std::size_t most = std::max<std::size_t>(kMostRanges / n, 1);
    p.range = round_up(std::max(ceil_div(context, most), kRange), kRange);
    p.ranges = ceil_div(context, p.range);
    p.first_row = rows;
    p.first_partial = partials;
    p.first_item = items;
    rows += n;
    partials += n * p.ranges;
    items += ceil_div(n, kRowTile) * p.ranges * groups;
  }
  return plans;
}

// One item of stage one: rows [begin, begin + rows) of a segment, head h.
void absorb_query(Context& ctx, const Work& w, const Plan& p, Mat<const float> q, std::size_t h,
                  std::size_t begin, std::size_t rows, float* scratch) {
  const KernelTable& k = kernels();
  const MlaShape& s = w.shape;
  const std::size_t head = s.nope + s.rope, width = s.latent + s.rope;
  const float scale = mla_scale(s);
  const float* x = q.data + (w.segment(p).begin + begin) * q.stride + h * head;
  std::size_t ldx = q.stride;
  const float* shared = x + s.nope;
  if (ctx.precision == Precision::bf16) {
    bf16* half = reinterpret_cast<bf16*>(scratch + rows * s.nope);
    for (std::size_t i = 0; i < rows; ++i) {
      k.to_bf16(x + i * ldx, s.nope, half);
      k.from_bf16(half, s.nope, scratch + i * s.nope);
    }
    x = scratch;
    ldx = s.nope;
  }
  const MatrixView keys = key_block(s, w.kv_b, h);
  float* out = w.q[p.first_row + begin][h].data;
  const std::size_t ldo = w.q.stride;
  if (keys.dtype == DType::BF16) {
    k.gemm_nn_bf16(x, ldx, keys.as_bf16(), s.latent, out, ldo, rows, s.latent, s.nope, false);
  } else {
    k.gemm_nn(x, ldx, keys.as_f32(), s.latent, out, ldo, rows, s.latent, s.nope, false);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    std::memcpy(out + i * ldo + s.latent, shared + i * q.stride, s.rope * sizeof(float));
    k.scale(scale, out + i * ldo, width, out + i * ldo);
  }
}

// scores [heads, tokens] of one row against tokens [begin, end) of the cache.
void score_tile(const Work& w, const LatentView& c, const float* q, std::size_t heads,
                std::size_t begin, std::size_t end, float* scores) {
  const KernelTable& k = kernels();
  const std::size_t width = c.width;
  if (c.dtype == DType::BF16) {
    for_pieces<bf16>(c, begin, end, [&](const bf16* x, std::size_t at, std::size_t n) {
      k.gemm_nt_bf16(q, width, x, width, scores + at, kMlaTile, heads, n,
                     w.shape.latent + w.shape.rope, false);
    });
  } else {
    for_pieces<float>(c, begin, end, [&](const float* x, std::size_t at, std::size_t n) {
      k.gemm_nt(q, width, x, width, scores + at, kMlaTile, heads, n, w.shape.latent + w.shape.rope,
                false);
    });
  }
}

// acc [heads, latent] += p [heads, tokens] times the latents of tokens [begin, end).
void gather_tile(const Work& w, const LatentView& c, const float* p, std::size_t heads,
                 std::size_t begin, std::size_t end, float* acc, std::size_t ldacc) {
  const KernelTable& k = kernels();
  const std::size_t latent = w.shape.latent;
  if (c.dtype == DType::BF16) {
    for_pieces<bf16>(c, begin, end, [&](const bf16* x, std::size_t at, std::size_t n) {
      k.gemm_nn_bf16(p + at, kMlaTile, x, c.width, acc, ldacc, heads, latent, n, true);
    });
  } else {
    for_pieces<float>(c, begin, end, [&](const float* x, std::size_t at, std::size_t n) {
      k.gemm_nn(p + at, kMlaTile, x, c.width, acc, ldacc, heads, latent, n, true);
    });
  }
}

// One item of stage two: a tile of rows, a group of heads, one range of the context. Tiles of keys
// are the outer loop, so the rows share what the first of them brought into the cache.
void attend_range(const Work& w, const Plan& p, std::size_t row_tile, std::size_t range,
                  std::size_t group) {
  const std::size_t latent = w.shape.latent, ld = w.partials.width;
  const std::size_t first = row_tile * kRowTile,
                    last = std::min(w.segment(p).rows, first + kRowTile);
  const std::size_t h = group * kHeadGroup, heads = std::min(kHeadGroup, w.shape.heads - h);
  Running state[kRowTile][kHeadGroup];
  for (std::size_t i = first; i < last; ++i) {
    std::fill_n(state[i - first], heads, Running{-std::numeric_limits<float>::infinity(), 0.0f});
    for (std::size_t j = 0; j < heads; ++j)
      std::fill_n(w.partials.at(p, i, range, h + j), latent, 0.0f);
  }
  float scores[kHeadGroup * kMlaTile];
  const std::size_t end = std::min((range + 1) * p.range, w.visible(p, last - 1));
  for (std::size_t t = range * p.range; t < end; t += kMlaTile) {
    for (std::size_t i = first; i < last; ++i) {
      const std::size_t stop = std::min({t + kMlaTile, end, w.visible(p, i)});
      if (stop <= t) continue;  // the row lies before this tile
      float* acc = w.partials.at(p, i, range, h);
      score_tile(w, w.cache(p), w.q[p.first_row + i][h].data, heads, t, stop, scores);
      for (std::size_t j = 0; j < heads; ++j) {
        softmax_tile(state[i - first][j], scores + j * kMlaTile, stop - t, acc + j * ld, latent);
      }
      gather_tile(w, w.cache(p), scores, heads, t, stop, acc, ld);
    }
  }
  for (std::size_t i = first; i < last; ++i) {
    for (std::size_t j = 0; j < heads; ++j) {
      float* at = w.partials.at(p, i, range, h + j) + latent;
      at[0] = state[i - first][j].largest;
      at[1] = state[i - first][j].sum;
    }
  }
}

// r = sum p c of one row and head, its ranges combined in order; left in the first range's place.
void combine(const Work& w, const Plan& p, std::size_t row, std::size_t h) {
  const KernelTable& k = kernels();
  const std::size_t latent = w.shape.latent;
  float* r = w.partials.at(p, row, 0, h);
  float largest = r[latent];
  for (std::size_t i = 1; i < p.ranges; ++i) {
    largest = std::max(largest, w.partials.at(p, row, i, h)[latent]);
  }
  const float factor = std::exp(r[latent] - largest);
  float sum = r[latent + 1] * factor;
  k.scale(factor, r, latent, r);
  for (std::size_t i = 1; i < p.ranges; ++i) {
    const float* part = w.partials.at(p, row, i, h);
    if (part[latent + 1] == 0.0f) continue;  // a range behind the row
    const float f = std::exp(part[latent] - largest);
    sum += part[latent + 1] * f;
    k.axpy(f, part, latent, r);
  }
  k.scale(1.0f / sum, r, latent, r);
}

// One item of stage three: attended = Wv r for rows [begin, begin + rows), head h.
void apply_values(Context& ctx, const Work& w, const Plan& p, std::size_t h, std::size_t begin,
                  std::size_t rows, float* scratch, Mat<float> attended) {
  const KernelTable& k = kernels();
  const MlaShape& s = w.shape;
  const MatrixView values = value_block(s, w.kv_b, h);
  float* out = attended.data + (w.segment(p).begin + begin) * attended.stride + h * s.value;
  for (std::size_t i = 0; i < rows; ++i) combine(w, p, begin + i, h);
  const float* r = w.partials.at(p, begin, 0, h);
  std::size_t ldr = p.ranges * w.partials.heads * w.partials.width;
  if (ctx.precision == Precision::bf16) {
    bf16* half = reinterpret_cast<bf16*>(scratch);
    for (std::size_t i = 0; i < rows; ++i) k.to_bf16(r + i * ldr, s.latent, half + i * s.latent);
    if (values.dtype == DType::BF16) {
      k.linear_bf16_bf16(half, s.latent, rows, values.as_bf16(), s.latent, s.value, s.latent, out,
                         attended.stride);
      return;
    }
    float* wide = scratch + rows * s.latent;
    k.from_bf16(half, rows * s.latent, wide);
    r = wide;
    ldr = s.latent;
  }
  if (values.dtype == DType::BF16) {
    k.linear_f32_bf16(r, ldr, rows, values.as_bf16(), s.latent, s.value, s.latent, out,
                      attended.stride);
  } else {
    k.linear_f32_f32(r, ldr, rows, values.as_f32(), s.latent, s.value, s.latent, out,
                     attended.stride);
  }
}

// The segments, cut into blocks of rows for the products with kv_b.
struct RowBlock {
  std::size_t plan, begin, rows;
};
constexpr std::size_t kProductRows = 32;

std::span<RowBlock> make_blocks(Context& ctx, const MlaBatch& batch, std::span<const Plan> plans) {
  std::size_t count = 0;
  for (const Plan& p : plans) count += ceil_div(batch.segments[p.segment].rows, kProductRows);
  const std::span<RowBlock> blocks = ctx.arena.take<RowBlock>(count);
  std::size_t at = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::size_t n = batch.segments[plans[i].segment].rows;
    for (std::size_t t = 0; t < n; t += kProductRows)
      blocks[at++] = {i, t, std::min(kProductRows, n - t)};
  }
  return blocks;
}

}  // namespace

void mla_absorbed(Context& ctx, const MlaShape& shape, Mat<const float> q, const MatrixView& kv_b,
                  const MlaBatch& batch, Mat<float> attended) {
  const Arena::Scope scope(ctx.arena);
  const std::size_t H = shape.heads, groups = ceil_div(H, kHeadGroup),
                    width = shape.latent + shape.rope;
  std::size_t rows, partials, items;
  const std::span<Plan> plans = make_plans(ctx, batch, groups, rows, partials, items);
  const std::span<RowBlock> blocks = make_blocks(ctx, batch, plans);
  const std::size_t partial_width = round_up(shape.latent + 2, 16);
  const Work w{shape,
               kv_b,
               batch,
               plans,
               View<float, 3>(ctx.arena.take<float>(rows * H * width).data(), {rows, H, width}),
               {ctx.arena.take<float>(partials * H * partial_width), H, partial_width},
               groups};
  const std::size_t slice =
      round_up(kProductRows * 2 * std::max(shape.latent, shape.nope) + shape.nope, 16);
  const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * slice);

  // Blocks turn fastest: a head's weights are used for all of them while they are near.
  ctx.pool.parallel_for(H * blocks.size(), [&](std::size_t item, std::size_t worker) {
    const RowBlock& b = blocks[item % blocks.size()];
    absorb_query(ctx, w, plans[b.plan], q, item / blocks.size(), b.begin, b.rows,
                 scratch.data() + worker * slice);
  });
  ctx.pool.parallel_for(items, [&](std::size_t item, std::size_t) {
    const auto next =
        std::upper_bound(plans.begin(), plans.end(), item,
                         [](std::size_t i, const Plan& p) { return i < p.first_item; });
    const Plan& p = *(next - 1);
    const std::size_t local = item - p.first_item;
    attend_range(w, p, local / (groups * p.ranges), local / groups % p.ranges, local % groups);
  });
  ctx.pool.parallel_for(H * blocks.size(), [&](std::size_t item, std::size_t worker) {
    const RowBlock& b = blocks[item % blocks.size()];
    apply_values(ctx, w, plans[b.plan], item / blocks.size(), b.begin, b.rows,
                 scratch.data() + worker * slice, attended);
  });
}

}  // namespace triax::ops
