// Expanded MLA with rounded products: an item is a head of a document; 64 rows of queries at a time
// meet all keys before them.
#include <cmath>
#include <limits>

#include "triax/kernels/kernels.h"
#include "triax/ops/backward/rounded.h"
#include "triax/ops/backward/rounded_tiles.h"

namespace triax::ops {
namespace {

constexpr std::size_t kBlock = 64;  // rows of queries; a multiple of 32

// Memory of a worker for documents of up to `rows` rows.
struct Scratch {
  Tiles keys, keys_cols;        // right: k along the channels; k down the rows
  Tiles values, values_cols;    // right
  Tiles query, query_cols;      // left; right
  Tiles given, given_cols;      // left; right, of the output's gradient
  Tiles weights, weights_cols;  // left, of probabilities and then of the scores' gradients
  float *key_rows, *dkey_rows;  // [rows, nope + rope]
  float *p, *dp;                // [kBlock, rows]
  std::size_t numbers;

  Scratch(float* memory, const MlaShape& s, std::size_t rows, bool backward) {
    const std::size_t head = s.nope + s.rope;
    std::size_t used = 0;
    const auto take = [&](std::size_t n) {
      float* at = memory == nullptr ? nullptr : memory + used;
      used += round_up(n, kAlignment / sizeof(float));
      return at;
    };
    const auto tiles = [&](std::size_t n, std::size_t k) {
      return Tiles(reinterpret_cast<bf16*>(take(Tiles::size(n, k) / 2)), k);
    };
    keys = tiles(rows, head), query = tiles(kBlock, head);
    values_cols = tiles(s.value, rows), weights = tiles(kBlock, rows);
    key_rows = take(rows * head), p = take(kBlock * rows);
    if (backward) {
      keys_cols = tiles(head, rows), values = tiles(rows, s.value);
      query_cols = tiles(head, kBlock);
      given = tiles(kBlock, s.value), given_cols = tiles(s.value, kBlock);
      weights_cols = tiles(rows, kBlock);
      dkey_rows = take(rows * head), dp = take(kBlock * rows);
    }
    numbers = used;
  }
};

// Columns [first, first + n) of rows of a segment.
template <class T>
Mat<T> part(const Mat<T>& x, std::size_t row, std::size_t rows, std::size_t first, std::size_t n) {
  return Mat<T>(x.data + row * x.stride + first, {rows, n}, x.stride);
}

// left [M, k] right [k, N] over the first `k` numbers of k.
void multiply_over(const RoundedKernels& k, Tiles left, Tiles right, std::size_t depth,
                   Mat<float> C, bool accumulate) {
  k.product(left.data, left.stride(), right.data, right.stride(), C.shape[0], C.shape[1],
            Tiles::depth_of(depth), C.data, C.stride, accumulate);
}

// A head's keys, row by row, and their tiles.
Mat<const float> take_keys(const MlaShape& s, Mat<const float> kv, Mat<const float> latent,
                           const Segment& seg, std::size_t h, const Scratch& m) {
  const std::size_t head = s.nope + s.rope, both = s.nope + s.value;
  for (std::size_t t = 0; t < seg.rows; ++t) {
    std::copy_n(kv[seg.begin + t].data + h * both, s.nope, m.key_rows + t * head);
    std::copy_n(latent[seg.begin + t].data + s.latent, s.rope, m.key_rows + t * head + s.nope);
  }
  return {m.key_rows, {seg.rows, head}};
}

// Rows [first, first + n) of a segment: scores [n, first + n] of the scaled products become
// probabilities, zero behind each row's own token. Returns the largest scaled score.
float softmax_rows(const Mat<float>& p, std::size_t first, float scale) {
  const KernelTable& k = kernels();
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < p.shape[0]; ++i) {
    float* row = p[i].data;
    const std::size_t seen = first + i + 1;
    k.scale(scale, row, seen, row);
    const float shift = k.max(row, seen);
    k.scale(1 / k.exp_sum(row, shift, seen, row), row, seen, row);
    std::fill(row + seen, row + p.shape[1], 0.0f);
    largest = std::max(largest, shift);
  }
  return largest;
}

struct Arrays {
  const MlaShape& s;
  Mat<const float> q, latent, kv;
  float scale() const { return 1 / std::sqrt(static_cast<float>(s.nope + s.rope)); }
};

// p [n, first + n] of a block of rows.
float probabilities(const RoundedKernels& k, const Arrays& a, const Segment& seg, std::size_t h,
                    std::size_t first, const Mat<float>& p, const Scratch& m) {
  const std::size_t head = a.s.nope + a.s.rope;
  left_of_rows(k, part(a.q, seg.begin + first, p.shape[0], h * head, head), m.query);
  multiply(k, m.query, m.keys, p, false);
  return softmax_rows(p, first, a.scale());
}

void head_forward(const RoundedKernels& k, const Arrays& a, const Segment& seg, std::size_t h,
                  const Scratch& m, Mat<float> attended) {
  const MlaShape& s = a.s;
  const std::size_t both = s.nope + s.value;
  right_of_rows(k, take_keys(s, a.kv, a.latent, seg, h, m), m.keys);
  right_of_cols(k, part(a.kv, seg.begin, seg.rows, h * both + s.nope, s.value), m.values_cols);
  for (std::size_t first = 0; first < seg.rows; first += kBlock) {
    const std::size_t n = std::min(kBlock, seg.rows - first), seen = first + n;
    const Mat<float> p(m.p, {n, seen});
    probabilities(k, a, seg, h, first, p, m);
    Tiles weights = m.weights;
    weights.depth = Tiles::depth_of(seen);
    left_of_rows(k, p, weights);
    multiply_over(k, weights, m.values_cols, seen,
                  part(attended, seg.begin + first, n, h * s.value, s.value), false);
  }
}

struct Gradients {
  Mat<const float> attended, d_attended;
  Mat<float> dq, dkv, dr;  // dr [T, H * rope]: each head's part of the shared channels' gradient
};

// One head of one document; returns its largest scaled score.
float head_backward(const RoundedKernels& k, const Arrays& a, const Gradients& g,
                    const Segment& seg, std::size_t h, const Scratch& m) {
  const MlaShape& s = a.s;
  const std::size_t head = s.nope + s.rope, both = s.nope + s.value;
  const Mat<const float> keys = take_keys(s, a.kv, a.latent, seg, h, m);
  const Mat<const float> values = part(a.kv, seg.begin, seg.rows, h * both + s.nope, s.value);
  right_of_rows(k, keys, m.keys);
  right_of_cols(k, keys, m.keys_cols);
  right_of_rows(k, values, m.values);
  const Mat<float> dkv = part(g.dkv, seg.begin, seg.rows, h * both, both);
  for (std::size_t t = 0; t < seg.rows; ++t) std::fill_n(dkv[t].data, both, 0.0f);
  const Mat<float> dkeys(m.dkey_rows, {seg.rows, head});
  std::fill_n(m.dkey_rows, seg.rows * head, 0.0f);
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t first = 0; first < seg.rows; first += kBlock) {
    const std::size_t n = std::min(kBlock, seg.rows - first), seen = first + n;
    const std::size_t at = seg.begin + first;
    const Mat<float> p(m.p, {n, seen}), dp(m.dp, {n, seen});
    const Mat<const float> da = part(g.d_attended, at, n, h * s.value, s.value);
    const Mat<const float> out = part(g.attended, at, n, h * s.value, s.value);
    largest = std::max(largest, probabilities(k, a, seg, h, first, p, m));
    right_of_cols(k, da, m.given_cols);
    left_of_cols(k, p, m.weights_cols);
    multiply_over(k, m.weights_cols, m.given_cols, n, part(dkv, 0, seen, s.nope, s.value), true);
    left_of_rows(k, da, m.given);
    multiply(k, m.given, m.values, dp, false);
    for (std::size_t i = 0; i < n; ++i) {
      const float mean = kernels().dot(da[i].data, out[i].data, s.value), scale = a.scale();
      const float* prob = p[i].data;
      float* d = dp[i].data;
      for (std::size_t j = 0; j < seen; ++j) d[j] = prob[j] * (d[j] - mean) * scale;
    }
    Tiles weights = m.weights;
    weights.depth = Tiles::depth_of(seen);
    left_of_rows(k, dp, weights);
    multiply_over(k, weights, m.keys_cols, seen, part(g.dq, at, n, h * head, head), false);
    left_of_cols(k, dp, m.weights_cols);
    right_of_cols(k, part(a.q, at, n, h * head, head), m.query_cols);
    multiply_over(k, m.weights_cols, m.query_cols, n, part(dkeys, 0, seen, 0, head), true);
  }
  for (std::size_t t = 0; t < seg.rows; ++t) {
    std::copy_n(dkeys[t].data, s.nope, dkv[t].data);
    std::copy_n(dkeys[t].data + s.nope, s.rope, g.dr[seg.begin + t].data + h * s.rope);
  }
  return largest;
}

std::size_t longest(std::span<const Segment> segments, std::size_t T) {
  std::size_t out = 0, next = 0;
  for (const Segment& seg : segments) {
    TRIAX_CHECK(seg.begin == next && seg.rows > 0, "documents tile the rows");
    next += seg.rows;
    out = std::max(out, seg.rows);
  }
  TRIAX_CHECK(next == T, "documents tile the rows");
  return out;
}

void check_shapes(const MlaShape& s, Mat<const float> q, Mat<const float> latent,
                  Mat<const float> kv_b) {
  TRIAX_CHECK(q.shape[1] == s.heads * (s.nope + s.rope));
  TRIAX_CHECK(latent.shape[0] == q.shape[0] && latent.shape[1] == s.latent + s.rope);
  TRIAX_CHECK(kv_b.shape[0] == s.heads * (s.nope + s.value) && kv_b.shape[1] == s.latent);
}

// f(document, head, scratch)
template <class F>
void for_heads(Context& ctx, const MlaShape& s, std::span<const Segment> segments, std::size_t T,
               bool backward, F&& f) {
  const std::size_t rows = longest(segments, T);
  const Arena::Scope scope(ctx.arena);
  const std::size_t slice = Scratch(nullptr, s, rows, backward).numbers;
  const std::span<float> memory = ctx.arena.take<float>(ctx.pool.threads() * slice);
  ctx.pool.parallel_for(segments.size() * s.heads, [&](std::size_t item, std::size_t worker) {
    f(item / s.heads, item % s.heads, Scratch(memory.data() + worker * slice, s, rows, backward));
  });
}

}  // namespace

void rounded_mla(Context& ctx, const MlaShape& shape, Mat<const float> q, Mat<const float> latent,
                 Mat<const float> kv_b, std::span<const Segment> segments, Mat<float> attended) {
  check_shapes(shape, q, latent, kv_b);
  const RoundedKernels& k = *training_kernels().rounded;
  const std::size_t T = q.shape[0];
  const Arena::Scope scope(ctx.arena);
  const Mat<float> kv = ctx.arena.take_mat<float>(T, kv_b.shape[0]);
  const RoundedJob job{kv_b, kv};
  rounded_linear(ctx, part(latent, 0, T, 0, shape.latent), {&job, 1});
  const Arrays arrays{shape, q, latent, kv};
  for_heads(ctx, shape, segments, T, false, [&](std::size_t i, std::size_t h, const Scratch& m) {
    head_forward(k, arrays, segments[i], h, m, attended);
  });
}

void rounded_mla_backward(Context& ctx, const MlaShape& shape, Mat<const float> q,
                          Mat<const float> latent, Mat<const float> kv_b,
                          std::span<const Segment> segments, Mat<const float> attended,
                          Mat<const float> d_attended, Mat<float> dq, Mat<float> dlatent,
                          Mat<float> dkv_b, Vec<float> max_logits) {
  check_shapes(shape, q, latent, kv_b);
  const RoundedKernels& k = *training_kernels().rounded;
  const std::size_t T = q.shape[0], H = shape.heads, rope = shape.rope;
  TRIAX_CHECK(dq.shape == q.shape && dlatent.shape == latent.shape && dkv_b.shape == kv_b.shape);
  TRIAX_CHECK(max_logits.data == nullptr || max_logits.size() == H);
  const Arena::Scope scope(ctx.arena);
  const Mat<float> kv = ctx.arena.take_mat<float>(T, kv_b.shape[0]);
  const Mat<float> dkv = ctx.arena.take_mat<float>(T, kv_b.shape[0]);
  const Mat<float> dr = ctx.arena.take_mat<float>(T, H * rope);
  const Mat<float> top = ctx.arena.take_mat<float>(segments.size(), H);
  const Mat<const float> c = part(latent, 0, T, 0, shape.latent);
  const RoundedJob job{kv_b, kv};
  rounded_linear(ctx, c, {&job, 1});
  const Arrays arrays{shape, q, latent, kv};
  const Gradients gradients{attended, d_attended, dq, dkv, dr};
  for_heads(ctx, shape, segments, T, true, [&](std::size_t i, std::size_t h, const Scratch& m) {
    top[i][h] = head_backward(k, arrays, gradients, segments[i], h, m);
  });
  if (max_logits.data != nullptr) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      for (std::size_t h = 0; h < H; ++h) max_logits[h] = std::max(max_logits[h], top[i][h]);
    }
  }
  const RoundedGradientJob back{kv_b, dkv, dkv_b};
  rounded_linear_backward(ctx, c, {&back, 1}, part(dlatent, 0, T, 0, shape.latent), false);
  for_row_blocks(ctx, T, H * rope, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      float* out = dlatent[t].data + shape.latent;
      std::fill_n(out, rope, 0.0f);
      for (std::size_t h = 0; h < H; ++h) {
        for (std::size_t d = 0; d < rope; ++d) out[d] += dr[t][h * rope + d];
      }
    }
  });
}

}  // namespace triax::ops
