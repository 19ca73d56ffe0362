// KDA in training: one item for each (segment, head).
#include "triax/ops/backward/kda.h"

#include <vector>

#include "triax/ops/backward/kernels.h"
#include "triax/ops/backward/loops.h"

namespace triax::ops {
namespace {

// First kept state of each segment.
std::vector<std::size_t> kept_begin(std::span<const Segment> segments) {
  std::vector<std::size_t> out{0};
  for (const Segment& s : segments) out.push_back(out.back() + ceil_div(s.rows, kKdaKeepRows));
  return out;
}

template <class F>
void check_shapes(const KdaArrays<F>& in, std::span<const Segment> segments,
                  const View<const F, 3>& o, std::size_t kept) {
  TRIAX_CHECK(in.k.shape == in.q.shape && in.g.shape == in.q.shape, "q, k, g are [T, H, K]");
  TRIAX_CHECK(in.v.shape == o.shape && in.v.shape[0] == in.q.shape[0], "v, o are [T, H, V]");
  TRIAX_CHECK(in.v.shape[1] == in.q.shape[1] && in.beta.shape[0] == in.q.shape[0]);
  TRIAX_CHECK(in.beta.shape[1] == in.q.shape[1], "beta is [T, H]");
  TRIAX_CHECK(kept == kda_kept_states(segments), "one kept state a stretch");
  for (const Segment& s : segments) TRIAX_CHECK(s.begin + s.rows <= in.q.shape[0]);
}

// The vectors of one row and head.
template <class F>
struct Row {
  const F *q, *k, *v, *g;
  F beta;
  Row(const KdaArrays<F>& in, std::size_t t, std::size_t h)
      : q(in.q.data + t * in.q.stride + h * in.q.shape[2]),
        k(in.k.data + t * in.k.stride + h * in.k.shape[2]),
        v(in.v.data + t * in.v.stride + h * in.v.shape[2]),
        g(in.g.data + t * in.g.stride + h * in.g.shape[2]),
        beta(in.beta[t][h]) {}
};

// scratch: 2 K + V
template <class F>
void forward_step(const Row<F>& r, F scale, std::size_t K, std::size_t V, F* S, F* o, F* scratch) {
  if constexpr (std::is_same_v<F, float>) {
    kernels().scale(scale, r.q, K, scratch);
    kernels().kda_step(S, scratch, r.k, r.v, r.g, r.beta, K, V, o, scratch + K);
  } else {
    F* u = scratch;
    std::copy_n(r.v, V, u);
    for (std::size_t d = 0; d < K; ++d) {
      const F decay = std::exp(r.g[d]);
      for (std::size_t j = 0; j < V; ++j) {
        S[d * V + j] *= decay;
        u[j] -= S[d * V + j] * r.k[d];
      }
    }
    std::fill_n(o, V, F{0});
    for (std::size_t d = 0; d < K; ++d) {
      for (std::size_t j = 0; j < V; ++j) {
        S[d * V + j] += r.k[d] * r.beta * u[j];
        o[j] += S[d * V + j] * scale * r.q[d];
      }
    }
  }
}

// What a worker needs to walk back through one stretch.
template <class F>
struct Stretch {
  std::size_t K, V;
  F* states;                 // [kKdaKeepRows + 1, K, V]: before the first row, after each row
  F* decay;                  // [kKdaKeepRows, K] = exp(g)
  F* u;                      // [kKdaKeepRows, V], not yet times beta
  F* dS;                     // [K, V]
  F *row_k, *row_a, *row_b;  // [K]
  F *row_v, *row_w;          // [V]

  static std::size_t size(std::size_t K, std::size_t V) {
    return (kKdaKeepRows + 2) * K * V + kKdaKeepRows * (K + V) + 3 * K + 2 * V;
  }
  Stretch(F* memory, std::size_t K_, std::size_t V_) : K(K_), V(V_) {
    const auto take = [&](std::size_t n) {
      F* out = memory;
      memory += n;
      return out;
    };
    states = take((kKdaKeepRows + 1) * K * V);
    dS = take(K * V);
    decay = take(kKdaKeepRows * K);
    u = take(kKdaKeepRows * V);
    row_k = take(K), row_a = take(K), row_b = take(K);
    row_v = take(V), row_w = take(V);
  }
  F* state(std::size_t i) const { return states + i * K * V; }

  // State i + 1 from state i by row r.
  void recompute(std::size_t i, const Row<F>& r) const {
    const F* before = state(i);
    F *after = state(i + 1), *alpha = decay + i * K, *error = u + i * V;
    loops::exp(r.g, K, alpha);
    if constexpr (std::is_same_v<F, float>) {
      training_kernels().kda_recompute(before, alpha, r.k, r.v, r.beta, K, V, error, after);
      return;
    }
    for (std::size_t d = 0; d < K; ++d) row_k[d] = -alpha[d] * r.k[d];
    std::copy_n(r.v, V, error);
    loops::gemm_nn(row_k, K, before, V, error, V, 1, V, K, true);  // v - S'^T k
    for (std::size_t j = 0; j < V; ++j) row_v[j] = r.beta * error[j];
    for (std::size_t d = 0; d < K; ++d) {
      const F a = alpha[d], key = r.k[d];
      for (std::size_t j = 0; j < V; ++j) after[d * V + j] = a * before[d * V + j] + key * row_v[j];
    }
  }
};

// Where a row's gradients go.
template <class F>
struct RowGradients {
  F *q, *k, *v, *g, *beta;
  RowGradients(const KdaGradients<F>& out, std::size_t t, std::size_t h)
      : q(out.q.data + t * out.q.stride + h * out.q.shape[2]),
        k(out.k.data + t * out.k.stride + h * out.k.shape[2]),
        v(out.v.data + t * out.v.stride + h * out.v.shape[2]),
        g(out.g.data + t * out.g.stride + h * out.g.shape[2]),
        beta(&out.beta[t][h]) {}
};

// One channel: dS -= key dv, then the sum of dS * S before the decay, then dS *= alpha.
template <class F>
F leave_row(F* dS, const F* before, F alpha, F key, const F* dv, std::size_t V) {
  F sum[8] = {};
  std::size_t j = 0;
  for (; j + 8 <= V; j += 8) {
    for (std::size_t i = 0; i < 8; ++i) {
      const F d = dS[j + i] - key * dv[j + i];
      sum[i] += d * before[j + i];
      dS[j + i] = alpha * d;
    }
  }
  for (; j < V; ++j) {
    const F d = dS[j] - key * dv[j];
    sum[0] += d * before[j];
    dS[j] = alpha * d;
  }
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// Row i of the stretch; dS is the gradient of the state after it, from later rows alone, and
// becomes that of the state before it.
template <class F>
void backward_step(const Stretch<F>& s, std::size_t i, const Row<F>& r, F scale, const F* d_o,
                   const RowGradients<F>& out) {
  const std::size_t K = s.K, V = s.V;
  const F *before = s.state(i), *after = s.state(i + 1), *alpha = s.decay + i * K;
  if constexpr (std::is_same_v<F, float>) {
    kernels().scale(scale, r.q, K, s.row_k);
    *out.beta =
        training_kernels().kda_back(before, after, alpha, s.row_k, r.k, s.u + i * V, d_o, r.beta, K,
                                    V, s.dS, out.q, out.k, out.v, out.g, s.row_v);
    kernels().scale(scale, out.q, K, out.q);
    return;
  }
  for (std::size_t d = 0; d < K; ++d) {
    const F q = scale * r.q[d];
    for (std::size_t j = 0; j < V; ++j) s.dS[d * V + j] += q * d_o[j];
  }
  loops::gemm_nt(d_o, V, after, V, out.q, K, 1, K, V, false);   // S do
  loops::gemm_nn(r.k, K, s.dS, V, s.row_w, V, 1, V, K, false);  // dS^T k
  *out.beta = loops::dot<F>(s.row_w, s.u + i * V, V);
  for (std::size_t j = 0; j < V; ++j) out.v[j] = r.beta * s.row_w[j];
  for (std::size_t j = 0; j < V; ++j) s.row_v[j] = r.beta * s.u[i * V + j];
  loops::gemm_nt(s.row_v, V, s.dS, V, s.row_a, K, 1, K, V, false);  // dS (beta u)
  loops::gemm_nt(out.v, V, before, V, s.row_b, K, 1, K, V, false);  // S dv, to be decayed
  for (std::size_t d = 0; d < K; ++d) {
    out.q[d] *= scale;
    out.k[d] = s.row_a[d] - alpha[d] * s.row_b[d];
    out.g[d] = alpha[d] * leave_row(s.dS + d * V, before + d * V, alpha[d], r.k[d], out.v, V);
  }
}

}  // namespace

std::size_t kda_kept_states(std::span<const Segment> segments) {
  return kept_begin(segments).back();
}

template <class F>
void kda_forward_keep(Context& ctx, const KdaArrays<F>& in, std::span<const Segment> segments,
                      std::span<const F* const> starts, View<F, 3> o, View<F, 4> kept) {
  check_shapes<F>(in, segments, o, kept.shape[0]);
  TRIAX_CHECK(starts.empty() || starts.size() == segments.size());
  const std::size_t H = in.q.shape[1], K = in.q.shape[2], V = in.v.shape[2];
  const F scale = 1 / std::sqrt(static_cast<F>(K));
  const std::vector<std::size_t> first = kept_begin(segments);
  const Arena::Scope scope(ctx.arena);
  const std::size_t slice = round_up(K * V + 2 * K + V, 16);
  const std::span<F> scratch = ctx.arena.take<F>(ctx.pool.threads() * slice);
  ctx.count(segments.size() * H * K * V * 2 * sizeof(F), 7 * in.q.shape[0] * H * K * V);
  ctx.pool.parallel_for(segments.size() * H, [&](std::size_t item, std::size_t worker) {
    const std::size_t s = item / H, h = item % H;
    F* S = scratch.data() + worker * slice;
    if (starts.empty()) {
      std::fill_n(S, K * V, F{0});
    } else {
      std::copy_n(starts[s] + h * K * V, K * V, S);
    }
    for (std::size_t i = 0; i < segments[s].rows; ++i) {
      if (i % kKdaKeepRows == 0) {
        std::copy_n(S, K * V, kept[first[s] + i / kKdaKeepRows][h].data);
      }
      const std::size_t t = segments[s].begin + i;
      forward_step(Row<F>(in, t, h), scale, K, V, S, o.data + t * o.stride + h * V, S + K * V);
    }
  });
}

template <class F>
void kda_backward(Context& ctx, const KdaArrays<F>& in, std::span<const Segment> segments,
                  View<const F, 4> kept, View<const F, 3> d_o, std::span<F* const> d_ends,
                  const KdaGradients<F>& out) {
  check_shapes<F>(in, segments, d_o, kept.shape[0]);
  TRIAX_CHECK(out.q.shape == in.q.shape && out.k.shape == in.k.shape && out.g.shape == in.g.shape);
  TRIAX_CHECK(out.v.shape == in.v.shape && out.beta.shape == in.beta.shape);
  TRIAX_CHECK(d_ends.empty() || d_ends.size() == segments.size());
  const std::size_t H = in.q.shape[1], K = in.q.shape[2], V = in.v.shape[2];
  const F scale = 1 / std::sqrt(static_cast<F>(K));
  const std::vector<std::size_t> first = kept_begin(segments);
  const Arena::Scope scope(ctx.arena);
  const std::size_t slice = round_up(Stretch<F>::size(K, V), 16);
  const std::span<F> scratch = ctx.arena.take<F>(ctx.pool.threads() * slice);
  ctx.count(kept.shape[0] * H * K * V * sizeof(F), 20 * in.q.shape[0] * H * K * V);
  ctx.pool.parallel_for(segments.size() * H, [&](std::size_t item, std::size_t worker) {
    const std::size_t s = item / H, h = item % H;
    const Stretch<F> stretch(scratch.data() + worker * slice, K, V);
    if (d_ends.empty()) {
      std::fill_n(stretch.dS, K * V, F{0});
    } else {
      std::copy_n(d_ends[s] + h * K * V, K * V, stretch.dS);
    }
    for (std::size_t c = ceil_div(segments[s].rows, kKdaKeepRows); c-- > 0;) {
      const std::size_t begin = segments[s].begin + c * kKdaKeepRows;
      const std::size_t rows = std::min(kKdaKeepRows, segments[s].rows - c * kKdaKeepRows);
      std::copy_n(kept[first[s] + c][h].data, K * V, stretch.state(0));
      for (std::size_t i = 0; i < rows; ++i) stretch.recompute(i, Row<F>(in, begin + i, h));
      for (std::size_t i = rows; i-- > 0;) {
        const std::size_t t = begin + i;
        backward_step(stretch, i, Row<F>(in, t, h), scale, d_o.data + t * d_o.stride + h * V,
                      RowGradients<F>(out, t, h));
      }
    }
    if (!d_ends.empty()) std::copy_n(stretch.dS, K * V, d_ends[s] + h * K * V);
  });
}

#define TRIAX_INSTANCES(F)                                                                   \
  template void kda_forward_keep<F>(Context&, const KdaArrays<F>&, std::span<const Segment>, \
                                    std::span<const F* const>, View<F, 3>, View<F, 4>);      \
  template void kda_backward<F>(Context&, const KdaArrays<F>&, std::span<const Segment>,     \
                                View<const F, 4>, View<const F, 3>, std::span<F* const>,     \
                                const KdaGradients<F>&)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::ops
