// float64: the plain reference, a row or a head at a time.
#include <algorithm>
#include <vector>

#include "triax/ops/ref/ref.h"
#include "triax/train/forward_ops.h"

namespace triax::train {
namespace {

namespace ref = ops::ref;

// f(row) for every row, in parallel
template <class Work>
void rows(Context& ctx, std::size_t n, Work&& f) {
  ctx.pool.parallel_for(n, [&](std::size_t t, std::size_t) { f(t); });
}

void put(const std::vector<double>& from, double* to) {
  std::copy(from.begin(), from.end(), to);
}

// f(t, i) for every element
template <class Element>
void elements(Context& ctx, Mat<double> y, Element&& f) {
  rows(ctx, y.shape[0], [&](std::size_t t) {
    for (std::size_t i = 0; i < y.shape[1]; ++i) y[t][i] = f(t, i);
  });
}

}  // namespace

template <>
void Forward<double>::embed(Context& ctx, Mat<const double> table, Vec<const std::int32_t> ids,
                            Mat<double> y) {
  elements(ctx, y, [&](std::size_t t, std::size_t i) {
    return table[static_cast<std::size_t>(ids[t])][i];
  });
}

template <>
void Forward<double>::linear(Context& ctx, Mat<const double> x, Mat<const double> w,
                             Mat<double> y) {
  const std::size_t K = w.shape[1];
  elements(ctx, y, [&](std::size_t t, std::size_t n) {
    const double *a = x[t].data, *b = w[n].data;
    double sum[4] = {};
    std::size_t k = 0;
    for (; k + 4 <= K; k += 4) {
      for (std::size_t j = 0; j < 4; ++j) sum[j] += a[k + j] * b[k + j];
    }
    for (; k < K; ++k) sum[0] += a[k] * b[k];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  });
}

template <>
void Forward<double>::rms_norm(Context& ctx, Mat<const double> x, Vec<const double> w, float eps,
                               Mat<double> y) {
  rows(ctx, x.shape[0], [&](std::size_t t) { put(ref::rms_norm(x[t], w, eps), y[t].data); });
}

template <>
void Forward<double>::rms_norm_gated(Context& ctx, Mat<const double> o, Vec<const double> w,
                                     Mat<const double> gate, float eps, Mat<double> y) {
  const std::size_t D = w.size();
  rows(ctx, o.shape[0], [&](std::size_t t) {
    for (std::size_t c = 0; c < o.shape[1]; c += D) {
      const auto normed = ref::rms_norm(Vec<const double>(o[t].data + c, {D}), w, eps);
      for (std::size_t i = 0; i < D; ++i) y[t][c + i] = normed[i] * ref::sigmoid(gate[t][c + i]);
    }
  });
}

template <>
void Forward<double>::l2_norm(Context& ctx, Mat<const double> x, std::size_t D, float eps,
                              Mat<double> y) {
  rows(ctx, x.shape[0], [&](std::size_t t) {
    for (std::size_t c = 0; c < x.shape[1]; c += D) {
      put(ref::l2_norm(Vec<const double>(x[t].data + c, {D}), eps), y[t].data + c);
    }
  });
}

template <>
void Forward<double>::add(Context& ctx, Mat<const double> a, Mat<const double> b, Mat<double> y) {
  elements(ctx, y, [&](std::size_t t, std::size_t i) { return a[t][i] + b[t][i]; });
}

template <>
void Forward<double>::sigmoid(Context& ctx, Mat<const double> x, Mat<double> y) {
  elements(ctx, y, [&](std::size_t t, std::size_t i) { return ref::sigmoid(x[t][i]); });
}

template <>
void Forward<double>::mul_sigmoid(Context& ctx, Mat<const double> x, Mat<const double> gate,
                                  Mat<double> y) {
  elements(ctx, y,
           [&](std::size_t t, std::size_t i) { return x[t][i] * ref::sigmoid(gate[t][i]); });
}

template <>
void Forward<double>::activate(Context& ctx, Mat<const double> gate, Mat<const double> up,
                               const ops::Activation& a, Mat<double> y) {
  elements(ctx, y, [&](std::size_t t, std::size_t i) {
    const double g = gate[t][i], u = up[t][i];
    return a.situ ? ref::situ(g, u, a.beta, a.linear_beta) : ref::silu(g) * u;
  });
}

template <>
void Forward<double>::kda_gate(Context& ctx, Mat<const double> raw, Vec<const double> A,
                               Vec<const double> dt_bias, bool bounded, float lower_bound,
                               Mat<double> g) {
  const std::size_t K = raw.shape[1] / A.size();
  elements(ctx, g, [&](std::size_t t, std::size_t i) {
    return bounded ? ref::kda_gate(raw[t][i], dt_bias[i], A[i / K], lower_bound)
                   : ref::kda_gate_softplus(raw[t][i], dt_bias[i], A[i / K]);
  });
}

template <>
void Forward<double>::short_conv(Context& ctx, Mat<const double> x, Mat<const double> w,
                                 std::span<const Segment> segments, Mat<double> y) {
  const std::size_t taps = w.shape[0];
  for (const Segment& s : segments) {
    rows(ctx, s.rows, [&](std::size_t r) {
      std::vector<double> tap(taps), seen(taps);
      for (std::size_t c = 0; c < x.shape[1]; ++c) {
        for (std::size_t j = 0; j < taps; ++j) {
          tap[j] = w[j][c];
          seen[j] = r + j + 1 < taps ? 0 : x[s.begin + r + j + 1 - taps][c];
        }
        y[s.begin + r][c] = ref::short_conv(tap, seen);
      }
    });
  }
}

template <>
void Forward<double>::mla(Context& ctx, const ops::MlaShape& shape, Mat<const double> q,
                          Mat<const double> latent, Mat<const double> kv_b,
                          std::span<const Segment> segments, Mat<double> attended) {
  const std::size_t head = shape.nope + shape.rope, both = shape.nope + shape.value;
  rows(ctx, segments.size() * shape.heads, [&](std::size_t item) {
    const Segment& s = segments[item / shape.heads];
    const std::size_t h = item % shape.heads;
    if (s.rows == 0) return;
    const Mat<const double> own(q.data + s.begin * q.stride + h * head, {s.rows, head}, q.stride);
    const auto y = ref::mla(own, latent.slice(s.begin, s.begin + s.rows),
                            kv_b.slice(h * both, (h + 1) * both), shape.nope);
    for (std::size_t t = 0; t < s.rows; ++t) {
      std::copy_n(y.begin() + static_cast<std::ptrdiff_t>(t * shape.value), shape.value,
                  attended[s.begin + t].data + h * shape.value);
    }
  });
}

template <>
void Forward<double>::depth_mix(Context& ctx, std::span<const Mat<const double>> sources,
                                Vec<const double> w, float eps, Mat<double> y) {
  const std::size_t N = y.shape[1];
  rows(ctx, y.shape[0], [&](std::size_t t) {
    std::vector<double> at;
    for (const Mat<const double>& v : sources) at.insert(at.end(), v[t].data, v[t].data + N);
    put(ref::depth_mix(Mat<const double>(at.data(), {sources.size(), N}), w, eps).y, y[t].data);
  });
}

template <>
void Forward<double>::route(Context& ctx, Mat<const double> logits, Vec<const double> bias,
                            const ops::RouterRule& rule, Mat<double> scores, Mat<std::int32_t> ids,
                            Mat<double> weights) {
  rows(ctx, logits.shape[0], [&](std::size_t t) {
    const ref::Route r = ref::route(logits[t], bias, rule.top_k, rule.renormalize, rule.factor);
    std::copy(r.ids.begin(), r.ids.end(), ids[t].data);
    std::copy(r.weights.begin(), r.weights.end(), weights[t].data);
    for (std::size_t e = 0; e < logits.shape[1]; ++e) scores[t][e] = ref::sigmoid(logits[t][e]);
  });
}

}  // namespace triax::train
