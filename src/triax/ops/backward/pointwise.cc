// Gradients of norms, gates and activations, row by row.
#include "triax/ops/backward/pointwise.h"

#include "triax/ops/backward/kernels.h"
#include "triax/ops/backward/loops.h"

namespace triax::ops {
namespace {

constexpr std::size_t kPiece = 256;  // elements whose intermediate values lie on the stack

// f(begin, count) over pieces of n elements.
template <class Work>
void for_pieces_of(std::size_t n, Work&& f) {
  for (std::size_t i = 0; i < n; i += kPiece) f(i, std::min(kPiece, n - i));
}

}  // namespace

template <class F>
void rms_norm_backward(Context& ctx, Mat<const F> x, Vec<const F> w, F eps, Mat<const F> dy,
                       Mat<F> dx, bool accumulate, Vec<F> dw) {
  const std::size_t N = x.shape[1];
  TRIAX_CHECK(dy.shape == x.shape && dx.shape == x.shape && w.size() == N && dw.size() == N);
  loops::sum_over_rows(ctx, x.shape[0], N, N, dw.data,
                       [&](std::size_t begin, std::size_t end, F* partial) {
                         for (std::size_t t = begin; t < end; ++t) {
                           if constexpr (std::is_same_v<F, float>) {
                             training_kernels().rms_norm_back(x[t].data, w.data, eps, dy[t].data, N,
                                                              accumulate, dx[t].data, partial);
                             continue;
                           }
                           const F *in = x[t].data, *d = dy[t].data;
                           F* out = dx[t].data;
                           const F r = loops::inverse_rms(in, eps, N);
                           F sum = 0;
                           for_pieces_of(N, [&](std::size_t c, std::size_t n) {
                             F h[kPiece];
                             for (std::size_t i = 0; i < n; ++i) h[i] = d[c + i] * w[c + i];
                             sum += loops::dot(h, in + c, n);
                           });
                           const F back = r * r * r * sum / static_cast<F>(N);
                           for (std::size_t i = 0; i < N; ++i) {
                             const F given = d[i];
                             const F value = r * given * w[i] - in[i] * back;
                             partial[i] += given * in[i] * r;
                             out[i] = accumulate ? out[i] + value : value;
                           }
                         }
                       });
}

template <class F>
void rms_norm_gated_backward(Context& ctx, Mat<const F> o, Vec<const F> w, Mat<const F> gate, F eps,
                             Mat<const F> dy, Mat<F> d_o, Mat<F> dgate, Vec<F> dw) {
  const std::size_t D = w.size(), N = o.shape[1];
  TRIAX_CHECK(gate.shape == o.shape && dy.shape == o.shape && d_o.shape == o.shape);
  TRIAX_CHECK(dgate.shape == o.shape && dw.size() == D && D != 0 && N % D == 0);
  const auto row = [&](std::size_t t, std::size_t c, F* s, F* partial) {
    const F *in = o[t].data + c, *d = dy[t].data + c;
    F *to_o = d_o[t].data + c, *to_gate = dgate[t].data + c, *h = s + D;
    if constexpr (std::is_same_v<F, float>) {
      training_kernels().rms_norm_gated_back(in, w.data, gate[t].data + c, eps, d, D, to_o, to_gate,
                                             partial);
      return;
    }
    loops::sigmoid(gate[t].data + c, D, s);
    for (std::size_t i = 0; i < D; ++i) h[i] = d[i] * s[i] * w[i];
    const F r = loops::inverse_rms(in, eps, D);
    const F back = r * r * r * loops::dot<F>(h, in, D) / static_cast<F>(D);
    for (std::size_t i = 0; i < D; ++i) {
      const F given = d[i], x = in[i];
      partial[i] += given * s[i] * x * r;
      to_gate[i] = given * w[i] * x * r * s[i] * (1 - s[i]);
      to_o[i] = r * h[i] - x * back;
    }
  };
  loops::sum_over_rows(
      ctx, o.shape[0], N, D, dw.data,
      [&](std::size_t begin, std::size_t end, F* partial) {
        for (std::size_t t = begin; t < end; ++t) {
          for (std::size_t c = 0; c < N; c += D) row(t, c, partial + D, partial);
        }
      },
      2 * D);
}

template <class F>
void l2_norm_backward(Context& ctx, Mat<const F> x, std::size_t D, F eps, Mat<const F> dy,
                      Mat<F> dx) {
  const std::size_t N = x.shape[1];
  TRIAX_CHECK(dy.shape == x.shape && dx.shape == x.shape && D != 0 && N % D == 0);
  for_row_blocks(ctx, x.shape[0], N, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t c = 0; c < N; c += D) {
        const F *in = x[t].data + c, *d = dy[t].data + c;
        F* out = dx[t].data + c;
        if constexpr (std::is_same_v<F, float>) {
          training_kernels().l2_norm_back(in, eps, d, D, out);
          continue;
        }
        const F r = 1 / std::sqrt(loops::dot(in, in, D) + eps);
        const F back = r * r * r * loops::dot(in, d, D);
        for (std::size_t i = 0; i < D; ++i) out[i] = r * d[i] - in[i] * back;
      }
    }
  });
}

template <class F>
void sigmoid_backward(Context& ctx, Mat<const F> y, Mat<const F> dy, Mat<F> dx) {
  TRIAX_CHECK(dy.shape == y.shape && dx.shape == y.shape);
  for_row_stretches(ctx, y.shape[0], y.shape[1],
                    [&](std::size_t t, std::size_t begin, std::size_t end) {
                      for (std::size_t i = begin; i < end; ++i)
                        dx[t][i] = dy[t][i] * y[t][i] * (1 - y[t][i]);
                    });
}

template <class F>
void mul_sigmoid_backward(Context& ctx, Mat<const F> x, Mat<const F> gate, Mat<const F> dy,
                          Mat<F> dx, Mat<F> dgate) {
  TRIAX_CHECK(gate.shape == x.shape && dy.shape == x.shape);
  TRIAX_CHECK(dx.shape == x.shape && dgate.shape == x.shape);
  for_row_stretches(
      ctx, x.shape[0], x.shape[1], [&](std::size_t t, std::size_t begin, std::size_t end) {
        if constexpr (std::is_same_v<F, float>) {
          training_kernels().mul_sigmoid_back(x[t].data + begin, gate[t].data + begin,
                                              dy[t].data + begin, end - begin, dx[t].data + begin,
                                              dgate[t].data + begin);
          return;
        }
        for_pieces_of(end - begin, [&](std::size_t at, std::size_t n) {
          const std::size_t c = begin + at;
          F s[kPiece];
          loops::sigmoid(gate[t].data + c, n, s);
          for (std::size_t i = 0; i < n; ++i) {
            const F given = dy[t][c + i], value = x[t][c + i];
            dx[t][c + i] = given * s[i];
            dgate[t][c + i] = given * value * s[i] * (1 - s[i]);
          }
        });
      });
}

template <class F>
void activate_forward_row(const Activation& a, const F* gate, const F* up, std::size_t n, F* y) {
  if constexpr (std::is_same_v<F, float>) {
    activate_row(a, gate, up, n, y);
  } else {
    const F beta = a.beta, linear = a.linear_beta;
    for (std::size_t i = 0; i < n; ++i) {
      const F s = 1 / (1 + std::exp(-gate[i]));
      const F cap = linear > 0 ? linear * std::tanh(up[i] / linear) : up[i];
      y[i] = a.situ ? beta * std::tanh(gate[i] / beta) * s * cap : gate[i] * s * up[i];
    }
  }
}

template <class F>
void activate_backward_row(const Activation& a, const F* gate, const F* up, const F* dy,
                           std::size_t n_all, F* dgate, F* dup) {
  if constexpr (std::is_same_v<F, float>) {
    activate_backward_weighted<F>(a, gate, up, dy, 1, n_all, dgate, dup, nullptr);
    return;
  }
  const F beta = a.beta, linear = a.linear_beta;
  for_pieces_of(n_all, [&](std::size_t c, std::size_t n) {
    F s[kPiece], ta[kPiece], tb[kPiece];
    loops::sigmoid(gate + c, n, s);
    if (!a.situ) {  // y = gate s up
      for (std::size_t i = 0; i < n; ++i) {
        const F given = dy[c + i], g = gate[c + i], u = up[c + i];
        dgate[c + i] = given * u * s[i] * (1 + g * (1 - s[i]));
        dup[c + i] = given * g * s[i];
      }
      return;
    }
    loops::tanh_over(gate + c, beta, n, ta);
    const bool capped = linear > 0;
    if (capped) loops::tanh_over(up + c, linear, n, tb);
    for (std::size_t i = 0; i < n; ++i) {
      const F given = dy[c + i];
      const F branch = capped ? linear * tb[i] : up[c + i];
      const F branch_slope = capped ? 1 - tb[i] * tb[i] : F{1};
      const F gated = beta * ta[i] * s[i];
      dgate[c + i] = given * branch * ((1 - ta[i] * ta[i]) * s[i] + gated * (1 - s[i]));
      dup[c + i] = given * gated * branch_slope;
    }
  });
}

template <class F>
F activate_backward_weighted(const Activation& a, const F* gate, const F* up, const F* dy, F weight,
                             std::size_t n, F* dgate, F* dup, F* y) {
  if constexpr (std::is_same_v<F, float>) {
    const TrainingKernels& k = training_kernels();
    return a.situ ? k.situ_back(gate, up, a.beta, a.linear_beta, dy, weight, n, dgate, dup, y)
                  : k.swiglu_back(gate, up, dy, weight, n, dgate, dup, y);
  } else {
    F along = 0;
    for_pieces_of(n, [&](std::size_t c, std::size_t count) {
      F h[kPiece], given[kPiece];
      activate_forward_row(a, gate + c, up + c, count, h);
      along += loops::dot(h, dy + c, count);
      for (std::size_t i = 0; i < count; ++i) {
        given[i] = weight * dy[c + i];
        if (y != nullptr) y[c + i] = weight * h[i];
      }
      activate_backward_row<F>(a, gate + c, up + c, given, count, dgate + c, dup + c);
    });
    return along;
  }
}

template <class F>
void activate_backward(Context& ctx, Mat<const F> gate, Mat<const F> up, const Activation& a,
                       Mat<const F> dy, Mat<F> dgate, Mat<F> dup) {
  TRIAX_CHECK(up.shape == gate.shape && dy.shape == gate.shape);
  TRIAX_CHECK(dgate.shape == gate.shape && dup.shape == gate.shape);
  for_row_stretches(
      ctx, gate.shape[0], gate.shape[1], [&](std::size_t t, std::size_t begin, std::size_t end) {
        activate_backward_row(a, gate[t].data + begin, up[t].data + begin, dy[t].data + begin,
                              end - begin, dgate[t].data + begin, dup[t].data + begin);
      });
}

template <class F>
void kda_gate_backward(Context& ctx, Mat<const F> raw, Vec<const F> A, Vec<const F> dt_bias,
                       bool bounded, F lower_bound, Mat<const F> dg, Mat<F> draw, Vec<F> dA_log,
                       Vec<F> ddt_bias) {
  const std::size_t N = raw.shape[1], H = A.size();
  TRIAX_CHECK(dg.shape == raw.shape && draw.shape == raw.shape && H != 0 && N % H == 0);
  TRIAX_CHECK(dt_bias.size() == N && ddt_bias.size() == N && dA_log.size() >= H);
  const std::size_t K = N / H;
  const Arena::Scope scope(ctx.arena);
  const std::span<F> sums = ctx.arena.take<F>(N + H);
  std::fill(sums.begin(), sums.end(), F{0});
  const auto head = [&](std::size_t t, std::size_t h, F* partial) {
    if constexpr (std::is_same_v<F, float>) {
      if (bounded) {
        partial[N + h] += training_kernels().kda_gate_back(
            raw[t].data + h * K, dt_bias.data + h * K, A[h], lower_bound, dg[t].data + h * K, K,
            draw[t].data + h * K, partial + h * K);
        return;
      }
    }
    for_pieces_of(K, [&](std::size_t at, std::size_t n) {
      const std::size_t c = h * K + at;
      F z[kPiece], p[kPiece], e[kPiece];
      for (std::size_t i = 0; i < n; ++i) z[i] = raw[t][c + i] + dt_bias[c + i];
      for (std::size_t i = 0; i < n; ++i) e[i] = bounded ? A[h] * z[i] : z[i];
      loops::sigmoid(e, n, p);
      F scale_sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const F given = dg[t][c + i];
        const F slope = bounded ? lower_bound * p[i] * (1 - p[i]) : -p[i];  // of g / A in z
        draw[t][c + i] = given * slope * A[h];
        partial[c + i] += given * slope * A[h];
        if (bounded) {
          scale_sum += given * slope * A[h] * z[i];
        } else {  // g itself: -A softplus(z)
          scale_sum -=
              given * A[h] * (std::log1p(std::exp(-std::abs(z[i]))) + std::max(z[i], F{0}));
        }
      }
      partial[N + h] += scale_sum;
    });
  };
  loops::sum_over_rows(ctx, raw.shape[0], N, N + H, sums.data(),
                       [&](std::size_t begin, std::size_t end, F* partial) {
                         for (std::size_t t = begin; t < end; ++t) {
                           for (std::size_t h = 0; h < H; ++h) head(t, h, partial);
                         }
                       });
  for (std::size_t i = 0; i < N; ++i) ddt_bias[i] += sums[i];
  for (std::size_t h = 0; h < H; ++h) dA_log[h] += sums[N + h];
}

#define TRIAX_INSTANCES(F)                                                                         \
  template void rms_norm_backward<F>(Context&, Mat<const F>, Vec<const F>, F, Mat<const F>,        \
                                     Mat<F>, bool, Vec<F>);                                        \
  template void rms_norm_gated_backward<F>(Context&, Mat<const F>, Vec<const F>, Mat<const F>, F,  \
                                           Mat<const F>, Mat<F>, Mat<F>, Vec<F>);                  \
  template void l2_norm_backward<F>(Context&, Mat<const F>, std::size_t, F, Mat<const F>, Mat<F>); \
  template void sigmoid_backward<F>(Context&, Mat<const F>, Mat<const F>, Mat<F>);                 \
  template void mul_sigmoid_backward<F>(Context&, Mat<const F>, Mat<const F>, Mat<const F>,        \
                                        Mat<F>, Mat<F>);                                           \
  template void activate_backward_row<F>(const Activation&, const F*, const F*, const F*,          \
                                         std::size_t, F*, F*);                                     \
  template F activate_backward_weighted<F>(const Activation&, const F*, const F*, const F*, F,     \
                                           std::size_t, F*, F*, F*);                               \
  template void activate_forward_row<F>(const Activation&, const F*, const F*, std::size_t, F*);   \
  template void activate_backward<F>(Context&, Mat<const F>, Mat<const F>, const Activation&,      \
                                     Mat<const F>, Mat<F>, Mat<F>);                                \
  template void kda_gate_backward<F>(Context&, Mat<const F>, Vec<const F>, Vec<const F>, bool, F,  \
                                     Mat<const F>, Mat<F>, Vec<F>, Vec<F>)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::ops
