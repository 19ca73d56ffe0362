// MLA in the expanded form: one item for each (segment, head). Tile by tile, the head's keys and
// values are made from the latent once and used for all rows of the segment.
#include <algorithm>
#include <cstring>
#include <limits>

#include "triax/kernels/kernels.h"
#include "triax/ops/mla_tile.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

constexpr std::size_t kRowBlock = 32;  // rows of a score product

// Scratch of one worker.
struct Scratch {
  float* keys;     // [kMlaTile, nope + rope]
  float* values;   // [kMlaTile, value], rows behind the context are zero
  float* latent;   // [kMlaTile, latent], in the form that the product takes
  float* scores;   // [kRowBlock, kMlaTile]
  float* acc;      // [rows, value]
  Running* state;  // [rows]

  static std::size_t size(const MlaShape& s, std::size_t rows) {
    return kMlaTile * (s.nope + s.rope + s.value + s.latent + kRowBlock) + rows * (s.value + 2);
  }
  Scratch(float* memory, const MlaShape& s, std::size_t rows)
      : keys(memory),
        values(keys + kMlaTile * (s.nope + s.rope)),
        latent(values + kMlaTile * s.value),
        scores(latent + kMlaTile * s.latent),
        acc(scores + kRowBlock * kMlaTile),
        state(reinterpret_cast<Running*>(acc + rows * s.value)) {
    static_assert(sizeof(Running) == 2 * sizeof(float));
  }
};

// y [n, w.rows] = latents of n tokens at `x` (rows `width` apart) times w^T, in the number mode.
template <class T>
void expand(const Context& ctx, const T* x, std::size_t width, std::size_t n, const MatrixView& w,
            float* scratch, float* y, std::size_t ldy) {
  const KernelTable& k = kernels();
  const std::size_t K = w.cols;
  if (w.dtype == DType::BF16 && ctx.precision == Precision::bf16) {
    const bf16* half;
    std::size_t ld = K;
    if constexpr (std::is_same_v<T, bf16>) {
      half = x;
      ld = width;
    } else {
      bf16* rounded = reinterpret_cast<bf16*>(scratch);
      for (std::size_t i = 0; i < n; ++i) k.to_bf16(x + i * width, K, rounded + i * K);
      half = rounded;
    }
    k.linear_bf16_bf16(half, ld, n, w.as_bf16(), K, w.rows, K, y, ldy);
    return;
  }
  const float* wide = scratch;
  std::size_t ld = K;
  if constexpr (std::is_same_v<T, bf16>) {
    for (std::size_t i = 0; i < n; ++i) k.from_bf16(x + i * width, K, scratch + i * K);
  } else if (ctx.precision == Precision::bf16) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t c = 0; c < K; ++c) scratch[i * K + c] = round_to_bf16(x[i * width + c]);
    }
  } else {
    wide = x;
    ld = width;
  }
  if (w.dtype == DType::BF16) {
    k.linear_f32_bf16(wide, ld, n, w.as_bf16(), K, w.rows, K, y, ldy);
  } else {
    k.linear_f32_f32(wide, ld, n, w.as_f32(), K, w.rows, K, y, ldy);
  }
}

// Keys and values of tokens [begin, end) of head h.
template <class T>
void make_tile(const Context& ctx, const MlaShape& s, const MatrixView& kv_b, const LatentView& c,
               std::size_t h, std::size_t begin, std::size_t end, const Scratch& m) {
  const std::size_t head = s.nope + s.rope;
  for_pieces<T>(c, begin, end, [&](const T* x, std::size_t at, std::size_t n) {
    expand(ctx, x, c.width, n, key_block(s, kv_b, h), m.latent, m.keys + at * head, head);
    expand(ctx, x, c.width, n, value_block(s, kv_b, h), m.latent, m.values + at * s.value, s.value);
    for (std::size_t i = 0; i < n; ++i) {
      float* shared = m.keys + (at + i) * head + s.nope;
      for (std::size_t d = 0; d < s.rope; ++d) shared[d] = to_float(x[i * c.width + s.latent + d]);
    }
  });
  // Always whole tiles of values: a row's sum does not change its order when tokens are appended.
  std::fill(m.values + (end - begin) * s.value, m.values + kMlaTile * s.value, 0.0f);
}

// Rows [first, first + n) of the segment against the tile of tokens [begin, end).
void attend_tile(const MlaShape& s, const float* q, std::size_t ldq, std::size_t before,
                 std::size_t first, std::size_t n, std::size_t begin, std::size_t end,
                 const Scratch& m) {
  const KernelTable& k = kernels();
  const std::size_t head = s.nope + s.rope;
  k.gemm_nt(q + first * ldq, ldq, m.keys, head, m.scores, kMlaTile, n, end - begin, head, false);
  causal_softmax(s, {before, first, n, begin, end}, m.scores, kMlaTile, m.state, m.acc);
  k.gemm_nn(m.scores, kMlaTile, m.values, s.value, m.acc + first * s.value, s.value, n, s.value,
            kMlaTile, true);
}

void attend_head(const Context& ctx, const MlaShape& s, Mat<const float> q, const MatrixView& kv_b,
                 const Segment& segment, const LatentView& c, std::size_t h, const Scratch& m,
                 Mat<float> attended) {
  const std::size_t n = segment.rows, before = c.tokens - n;
  const float* own = q.data + segment.begin * q.stride + h * (s.nope + s.rope);
  std::fill_n(m.acc, n * s.value, 0.0f);
  std::fill_n(m.state, n, Running{-std::numeric_limits<float>::infinity(), 0.0f});
  for (std::size_t t = 0; t < c.tokens; t += kMlaTile) {
    const std::size_t end = std::min(t + kMlaTile, c.tokens);
    if (c.dtype == DType::BF16) {
      make_tile<bf16>(ctx, s, kv_b, c, h, t, end, m);
    } else {
      make_tile<float>(ctx, s, kv_b, c, h, t, end, m);
    }
    // Rows that see any token of the tile; blocks begin at multiples of kRowBlock.
    const std::size_t first = t < before ? 0 : (t - before) / kRowBlock * kRowBlock;
    for (std::size_t i = first; i < n; i += kRowBlock) {
      attend_tile(s, own, q.stride, before, i, std::min(kRowBlock, n - i), t, end, m);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    kernels().scale(1.0f / m.state[i].sum, m.acc + i * s.value, s.value,
                    attended[segment.begin + i].data + h * s.value);
  }
}

}  // namespace

void mla_expanded(Context& ctx, const MlaShape& shape, Mat<const float> q, const MatrixView& kv_b,
                  const MlaBatch& batch, Mat<float> attended) {
  std::size_t rows = 0;
  for (std::size_t i : batch.index) rows = std::max(rows, batch.segments[i].rows);
  const Arena::Scope scope(ctx.arena);
  const std::size_t slice = round_up(Scratch::size(shape, rows), 16);
  const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * slice);
  ctx.pool.parallel_for(
      batch.index.size() * shape.heads, [&](std::size_t item, std::size_t worker) {
        const std::size_t i = batch.index[item / shape.heads];
        attend_head(ctx, shape, q, kv_b, batch.segments[i], batch.caches[i], item % shape.heads,
                    Scratch(scratch.data() + worker * slice, shape, rows), attended);
      });
}

}  // namespace triax::ops
