// MLA in the expanded form by the matrix unit (bf16 mode): queries, keys, values and probabilities
// are rounded to BF16, sums and softmax stay float32. One item for each (segment, head); a tile of
// tokens is expanded once and used for all rows of the segment.
#include <algorithm>
#include <limits>

#include "triax/kernels/kernels.h"
#include "triax/ops/mla_tile.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

constexpr std::size_t kTokens = 256;   // of a tile: a row's sum goes tile by tile from token 0
constexpr std::size_t kRowBlock = 64;  // rows of a score product

// The latents of a segment's context as rows of x, shared by all heads.
struct PackedLatent {
  std::span<bf16> data;  // [context / 16 tiles][latent / 32]
  std::size_t latent;
  PackedRows rows(std::size_t begin, std::size_t n) const {
    return {data.data() + begin * latent, n, false};
  }
};

// Scratch of one worker, carved from one piece of memory.
struct Scratch {
  bf16* keys;       // [kTokens, nope + rope]
  bf16* values;     // [value, kTokens]: transposed, zero behind the context
  bf16* packed_wv;  // rows of Wv as x
  bf16* packed_q;   // rows of q as x
  bf16* packed_p;   // [kRowBlock, kTokens] as x
  float* wide;      // a product's output, or rows to be packed
  float* scores;    // [kRowBlock, kTokens]
  float* acc;       // [rows, value]
  float* matrix;    // the unit's own
  Running* state;   // [rows]

  static std::size_t wide_size(const MlaShape& s) {
    return std::max({kTokens * s.nope, kTokens * s.value, s.value * s.latent});
  }
  // float32 values; every part begins at a multiple of 16 of them.
  static std::size_t size(const MlaShape& s, std::size_t rows) {
    std::size_t at = 0;
    layout(s, rows, nullptr, at);
    return at;
  }
  Scratch(float* memory, const MlaShape& s, std::size_t rows) {
    std::size_t at = 0;
    *this = layout(s, rows, memory, at);
  }

 private:
  Scratch() = default;
  static Scratch layout(const MlaShape& s, std::size_t rows, float* memory, std::size_t& at) {
    const auto take = [&](std::size_t floats) {
      float* p = memory == nullptr ? nullptr : memory + at;
      at += round_up(floats, 16);
      return p;
    };
    const auto take_half = [&](std::size_t n) {
      return reinterpret_cast<bf16*>(take(ceil_div(n, 2)));
    };
    Scratch m;
    m.keys = take_half(kTokens * (s.nope + s.rope));
    m.values = take_half(s.value * kTokens);
    m.packed_wv = take_half(packed_size(s.value, s.latent));
    m.packed_q = take_half(packed_size(rows, s.nope + s.rope));
    m.packed_p = take_half(packed_size(kRowBlock, kTokens));
    m.wide = take(wide_size(s));
    m.scores = take(kRowBlock * kTokens);
    m.acc = take(rows * s.value);
    m.matrix = take(matrix_scratch(std::max({s.latent, s.nope + s.rope, kTokens})));
    m.state = reinterpret_cast<Running*>(take(2 * rows));
    static_assert(sizeof(Running) == 2 * sizeof(float));
    return m;
  }
};

void pack(const float* x, std::size_t ld, std::size_t rows, std::size_t K, bf16* packed) {
  const float* at[kMatrixTile];
  for (std::size_t m = 0; m < rows; m += kMatrixTile) {
    const std::size_t n = std::min(kMatrixTile, rows - m);
    for (std::size_t i = 0; i < n; ++i) at[i] = x + (m + i) * ld;
    kernels().matrix->pack(at, n, K, packed + m * K, K, ColumnOrder::plain);
  }
}

// Tokens [begin, end) of the context, begin a multiple of 16, to packed rows.
void pack_latent(const LatentView& c, std::size_t latent, std::size_t begin, std::size_t end,
                 float* wide, bf16* packed) {
  for_pieces<bf16>(c, begin, end, [&](const bf16* x, std::size_t at, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      kernels().from_bf16(x + i * c.width, latent, wide + (at + i) * latent);
    }
  });
  pack(wide, latent, end - begin, latent, packed + begin * latent);
}

// Keys and transposed values of tokens [begin, end) of head h.
void make_tile(const MlaShape& s, const MatrixView& kv_b, const LatentView& c,
               const PackedLatent& latent, std::size_t h, std::size_t begin, std::size_t end,
               const Scratch& m) {
  const KernelTable& k = kernels();
  const std::size_t head = s.nope + s.rope, n = end - begin;
  k.matrix->product_bf16(latent.rows(begin, n), key_block(s, kv_b, h).as_bf16(), s.latent, s.nope,
                         s.latent, m.wide, s.nope, m.matrix);
  for (std::size_t i = 0; i < n; ++i) k.to_bf16(m.wide + i * s.nope, s.nope, m.keys + i * head);
  for_pieces<bf16>(c, begin, end, [&](const bf16* x, std::size_t at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::copy_n(x + i * c.width + s.latent, s.rope, m.keys + (at + i) * head + s.nope);
    }
    // A page's rows are the weights here, so its values come out transposed; a tile takes no fewer
    // than 16 of them, so the last ones may reach behind the context: pages are whole.
    k.matrix->product_bf16({m.packed_wv, s.value, false}, x, c.width, std::max(count, kMatrixTile),
                           s.latent, m.wide + at, kTokens, m.matrix);
  });
  for (std::size_t v = 0; v < s.value; ++v) {
    bf16* row = m.values + v * kTokens;
    k.to_bf16(m.wide + v * kTokens, n, row);
    std::fill(row + n, row + kTokens, bf16{});
  }
}

// Rows [first, first + n) of the segment against the tile of tokens [begin, end).
void attend_tile(const MlaShape& s, std::size_t before, std::size_t first, std::size_t n,
                 std::size_t begin, std::size_t end, const Scratch& m) {
  const KernelTable& k = kernels();
  const std::size_t head = s.nope + s.rope;
  k.matrix->product_bf16({m.packed_q + first * head, n, false}, m.keys, head,
                         std::max(end - begin, kMatrixTile), head, m.scores, kTokens, m.matrix);
  causal_softmax(s, {before, first, n, begin, end}, m.scores, kTokens, m.state, m.acc);
  pack(m.scores, kTokens, n, kTokens, m.packed_p);
  float* sums = m.scores;  // [n, value]: the probabilities are packed
  k.matrix->product_bf16({m.packed_p, n, false}, m.values, kTokens, s.value, kTokens, sums, s.value,
                         m.matrix);
  k.add(m.acc + first * s.value, sums, n * s.value, m.acc + first * s.value);
}

void attend_head(const MlaShape& s, Mat<const float> q, const MatrixView& kv_b,
                 const Segment& segment, const LatentView& c, const PackedLatent& latent,
                 std::size_t h, const Scratch& m, Mat<float> attended) {
  const KernelTable& k = kernels();
  const std::size_t n = segment.rows, before = c.tokens - n, head = s.nope + s.rope;
  std::fill_n(m.acc, n * s.value, 0.0f);
  std::fill_n(m.state, n, Running{-std::numeric_limits<float>::infinity(), 0.0f});
  pack(q.data + segment.begin * q.stride + h * head, q.stride, n, head, m.packed_q);
  const MatrixView wv = value_block(s, kv_b, h);
  k.from_bf16(wv.as_bf16(), s.value * s.latent, m.wide);
  pack(m.wide, s.latent, s.value, s.latent, m.packed_wv);
  for (std::size_t t = 0; t < c.tokens; t += kTokens) {
    const std::size_t end = std::min(t + kTokens, c.tokens);
    make_tile(s, kv_b, c, latent, h, t, end, m);
    // Rows that see any token of the tile; blocks begin at multiples of kRowBlock.
    const std::size_t first = t < before ? 0 : (t - before) / kRowBlock * kRowBlock;
    for (std::size_t i = first; i < n; i += kRowBlock) {
      attend_tile(s, before, i, std::min(kRowBlock, n - i), t, end, m);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    k.scale(1.0f / m.state[i].sum, m.acc + i * s.value, s.value,
            attended[segment.begin + i].data + h * s.value);
  }
}

}  // namespace

bool mla_suits_matrix(const Context& ctx, const MlaShape& s, const MatrixView& kv_b,
                      const LatentView& cache) {
  return ctx.precision == Precision::bf16 && kernels().matrix != nullptr &&
         kv_b.dtype == DType::BF16 && cache.dtype == DType::BF16 &&
         cache.page_tokens % kMatrixTile == 0 && kTokens % cache.page_tokens == 0 &&
         s.latent % kMatrixTileCols == 0 && (s.nope + s.rope) % kMatrixTileCols == 0 &&
         s.nope >= kMatrixTile && s.value >= kMatrixTile && s.value <= kTokens;
}

void mla_expanded_matrix(Context& ctx, const MlaShape& shape, Mat<const float> q,
                         const MatrixView& kv_b, const MlaBatch& batch, Mat<float> attended) {
  for (const std::size_t i : batch.index) {
    const Segment& segment = batch.segments[i];
    const LatentView& c = batch.caches[i];
    const Arena::Scope scope(ctx.arena);
    const PackedLatent latent{ctx.arena.take<bf16>(packed_size(c.tokens, shape.latent)),
                              shape.latent};
    const std::size_t slice =
        round_up(std::max(Scratch::size(shape, segment.rows), kTokens * shape.latent), 16);
    const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * slice);
    ctx.pool.parallel_for(ceil_div(c.tokens, kTokens), [&](std::size_t item, std::size_t worker) {
      const std::size_t begin = item * kTokens, end = std::min(begin + kTokens, c.tokens);
      pack_latent(c, shape.latent, begin, end, scratch.data() + worker * slice, latent.data.data());
    });
    ctx.pool.parallel_for(shape.heads, [&](std::size_t h, std::size_t worker) {
      attend_head(shape, q, kv_b, segment, c, latent, h,
                  Scratch(scratch.data() + worker * slice, shape, segment.rows), attended);
    });
  }
}

}  // namespace triax::ops
