// Gradient of expanded MLA: one item for each (head, segment), then products with kv_b.
#include "triax/ops/backward/mla.h"

#include <limits>

#include "triax/ops/backward/linear.h"
#include "triax/ops/backward/loops.h"

namespace triax::ops {
namespace {

constexpr std::size_t kBlock = 64;  // query rows whose probabilities lie in scratch at once

template <class F>
struct Arrays {
  const MlaShape& s;
  Mat<const F> q, latent, attended, d_attended;
  Mat<const F> kv;  // [T, H * (nope + value)], expanded
  Mat<F> dq, dkv;   // dkv as kv
  Mat<F> dr;        // [T, H * rope], each head's part of the shared key channels' gradient
};

// The scratch of a worker for sequences of up to `rows` rows.
template <class F>
struct Scratch {
  F *keys, *dkeys;  // [rows, nope + rope]
  F *p, *dp;        // [kBlock, rows]
  static std::size_t size(const MlaShape& s, std::size_t rows) {
    return 2 * rows * (s.nope + s.rope + kBlock);
  }
  Scratch(F* memory, const MlaShape& s, std::size_t rows)
      : keys(memory),
        dkeys(keys + rows * (s.nope + s.rope)),
        p(dkeys + rows * (s.nope + s.rope)),
        dp(p + kBlock * rows) {}
};

// Rows [first, first + n) of the segment; p holds n rows of `first + n` scores, ld apart. Turns
// scores into probabilities, zero behind each row's own token; returns the largest scaled score.
template <class F>
F softmax_rows(F* p, std::size_t ld, std::size_t first, std::size_t n, F scale) {
  F largest = -std::numeric_limits<F>::infinity();
  for (std::size_t i = 0; i < n; ++i) {
    F* row = p + i * ld;
    const std::size_t seen = first + i + 1;
    loops::scale(scale, row, seen, row);
    const F shift = loops::largest(row, seen);
    loops::scale<F>(1 / loops::exp_sum(row, shift, seen, row), row, seen, row);
    std::fill(row + seen, row + first + n, F{0});
    largest = std::max(largest, shift);
  }
  return largest;
}

// One head of one sequence; returns its largest scaled score.
template <class F>
F head_backward(const Arrays<F>& a, const Segment& seg, std::size_t h, const Scratch<F>& m) {
  const MlaShape& s = a.s;
  const std::size_t head = s.nope + s.rope, both = s.nope + s.value, L = seg.rows;
  const F scale = 1 / std::sqrt(static_cast<F>(head));
  const auto at = [&](const auto& x, std::size_t column) {
    return x.data + seg.begin * x.stride + column;
  };
  const F *kv = at(a.kv, h * both), *values = kv + s.nope, *q = at(a.q, h * head);
  F *dkv = at(a.dkv, h * both), *dq = at(a.dq, h * head);
  for (std::size_t t = 0; t < L; ++t) {
    std::copy_n(kv + t * a.kv.stride, s.nope, m.keys + t * head);
    std::copy_n(at(a.latent, s.latent) + t * a.latent.stride, s.rope, m.keys + t * head + s.nope);
    std::fill_n(dkv + t * a.dkv.stride, both, F{0});
  }
  std::fill_n(m.dkeys, L * head, F{0});
  F largest = -std::numeric_limits<F>::infinity();
  for (std::size_t first = 0; first < L; first += kBlock) {
    const std::size_t n = std::min(kBlock, L - first), seen = first + n;
    const F* da = at(a.d_attended, h * s.value) + first * a.d_attended.stride;
    const F* out = at(a.attended, h * s.value) + first * a.attended.stride;
    const F* rows = q + first * a.q.stride;
    loops::gemm_nt(rows, a.q.stride, m.keys, head, m.p, L, n, seen, head, false);
    largest = std::max(largest, softmax_rows(m.p, L, first, n, scale));
    loops::gemm_tn(m.p, L, da, a.d_attended.stride, dkv + s.nope, a.dkv.stride, seen, s.value, n,
                   true);
    loops::gemm_nt(da, a.d_attended.stride, values, a.kv.stride, m.dp, L, n, seen, s.value, false);
    for (std::size_t i = 0; i < n; ++i) {
      const F mean = loops::dot(da + i * a.d_attended.stride, out + i * a.attended.stride, s.value);
      const F* p = m.p + i * L;
      F* dp = m.dp + i * L;
      for (std::size_t j = 0; j < seen; ++j) dp[j] = p[j] * (dp[j] - mean) * scale;
    }
    loops::gemm_nn(m.dp, L, m.keys, head, dq + first * a.dq.stride, a.dq.stride, n, head, seen,
                   false);
    loops::gemm_tn(m.dp, L, rows, a.q.stride, m.dkeys, head, seen, head, n, true);
  }
  for (std::size_t t = 0; t < L; ++t) {
    std::copy_n(m.dkeys + t * head, s.nope, dkv + t * a.dkv.stride);
    std::copy_n(m.dkeys + t * head + s.nope, s.rope, at(a.dr, h * s.rope) + t * a.dr.stride);
  }
  return largest;
}

template <class F>
void fill_zero(Mat<F> x) {
  for (std::size_t t = 0; t < x.shape[0]; ++t) std::fill_n(x[t].data, x.shape[1], F{0});
}

}  // namespace

template <class F>
void mla_backward(Context& ctx, const MlaShape& s, Mat<const F> q, Mat<const F> latent,
                  Mat<const F> kv_b, std::span<const Segment> segments, Mat<const F> attended,
                  Mat<const F> d_attended, Mat<F> dq, Mat<F> dlatent, Mat<F> dkv_b,
                  Vec<F> max_logits) {
  const std::size_t T = q.shape[0], H = s.heads, both = s.nope + s.value;
  TRIAX_CHECK(q.shape[1] == H * (s.nope + s.rope) && dq.shape == q.shape);
  TRIAX_CHECK(latent.shape[0] == T && latent.shape[1] == s.latent + s.rope);
  TRIAX_CHECK(dlatent.shape == latent.shape && attended.shape[1] == H * s.value);
  TRIAX_CHECK(attended.shape[0] == T && d_attended.shape == attended.shape);
  TRIAX_CHECK(kv_b.shape[0] == H * both && kv_b.shape[1] == s.latent);
  TRIAX_CHECK(dkv_b.shape == kv_b.shape && (max_logits.data == nullptr || max_logits.size() == H));
  std::size_t longest = 0;
  for (const Segment& seg : segments) {
    TRIAX_CHECK(seg.begin + seg.rows <= T);
    longest = std::max(longest, seg.rows);
  }
  const Arena::Scope scope(ctx.arena);
  const Mat<F> kv = ctx.arena.take_mat<F>(T, H * both), dkv = ctx.arena.take_mat<F>(T, H * both);
  const Mat<F> dr = ctx.arena.take_mat<F>(T, H * s.rope);
  const Mat<F> top = ctx.arena.take_mat<F>(segments.size(), H);
  const Mat<const F> c(latent.data, {T, s.latent}, latent.stride);
  for_row_blocks(ctx, T, H * both * 8, [&](std::size_t begin, std::size_t end) {
    loops::gemm_nt(c[begin].data, c.stride, kv_b.data, kv_b.stride, kv[begin].data, kv.stride,
                   end - begin, H * both, s.latent, false);
  });
  fill_zero(dkv);
  fill_zero(dr);
  fill_zero(dq);

  const Arrays<F> arrays{s, q, latent, attended, d_attended, kv, dq, dkv, dr};
  const std::size_t slice = round_up(Scratch<F>::size(s, longest), 16);
  const std::span<F> scratch = ctx.arena.take<F>(ctx.pool.threads() * slice);
  ctx.pool.parallel_for(segments.size() * H, [&](std::size_t item, std::size_t worker) {
    const std::size_t i = item / H, h = item % H;
    if (segments[i].rows == 0) {
      top[i][h] = -std::numeric_limits<F>::infinity();
      return;
    }
    const Scratch<F> own(scratch.data() + worker * slice, s, longest);
    top[i][h] = head_backward(arrays, segments[i], h, own);
  });
  if (max_logits.data != nullptr) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      for (std::size_t h = 0; h < H; ++h) max_logits[h] = std::max(max_logits[h], top[i][h]);
    }
  }

  const Mat<F> dc(dlatent.data, {T, s.latent}, dlatent.stride);
  linear_input_gradient<F>(ctx, dkv, kv_b, dc, false);
  linear_weight_gradient<F>(ctx, c, dkv, dkv_b);
  for_row_blocks(ctx, T, H * s.rope, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      F* out = dlatent[t].data + s.latent;
      std::fill_n(out, s.rope, F{0});
      for (std::size_t h = 0; h < H; ++h) {
        for (std::size_t d = 0; d < s.rope; ++d) out[d] += dr[t][h * s.rope + d];
      }
    }
  });
}

#define TRIAX_INSTANCES(F)                                                             \
  template void mla_backward<F>(Context&, const MlaShape&, Mat<const F>, Mat<const F>, \
                                Mat<const F>, std::span<const Segment>, Mat<const F>,  \
                                Mat<const F>, Mat<F>, Mat<F>, Mat<F>, Vec<F>)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::ops
