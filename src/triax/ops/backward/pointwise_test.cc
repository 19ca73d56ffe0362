// Gradients of norms, gates and activations against golden gradients and central differences of the
// double-precision reference.
#include "triax/ops/backward/pointwise.h"

#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/gradient.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

const Golden& golden() {
  static const Golden g(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  return g;
}

void expect_golden(const std::vector<double>& got, const std::string& name, double limit = 1e-6) {
  const std::vector<float> rounded(got.begin(), got.end());
  EXPECT_TRUE(close(rounded, golden()[name].f32, limit)) << name;
}

TEST(RmsNormBackward, EqualsCentralDifferences) {
  const std::size_t T = 90, N = 300;  // several blocks of rows
  const auto x = normal(1, T * N, 2), w = normal(2, N), dy = normal(3, T * N);
  const double eps = 1e-2;
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    const auto X = cast<F>(x), W = cast<F>(w), D = cast<F>(dy);
    std::vector<F> dx(T * N), twice(T * N), dw(N);
    rms_norm_backward<F>(ctx, as_mat(X, N), W, static_cast<F>(eps), as_mat(D, N), as_mat(dx, N),
                         false, dw);
    twice = dx;
    std::vector<F> unused(N);
    rms_norm_backward<F>(ctx, as_mat(X, N), W, static_cast<F>(eps), as_mat(D, N), as_mat(twice, N),
                         true, unused);
    return Arrays<F>{dx, dw, twice};
  });
  for (std::size_t i = 0; i < T * N; ++i) EXPECT_EQ(got[2][i], 2 * got[0][i]);
  auto X = widen(x), W = widen(w);
  const auto loss = [&] {
    double sum = 0;
    for (std::size_t t = 0; t < T; ++t) {
      const auto y = ref::rms_norm(as_mat<double>(X, N)[t], W, eps);
      for (std::size_t i = 0; i < N; ++i) sum += y[i] * static_cast<double>(dy[t * N + i]);
    }
    return sum;
  };
  check_gradient("x", X, got[0], loss);
  check_gradient("w", W, got[1], loss);
}

TEST(RmsNormGatedBackward, EqualsGoldenAndCentralDifferences) {
  const auto &o = golden()["o_norm.o"], &gate = golden()["o_norm.gate"],
             &dy = golden()["o_norm.dy"];
  const auto& w = golden()["o_norm.w"];
  const std::size_t N = o.cols(), D = w.f32.size();
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    const auto O = cast<F>(o.f32), W = cast<F>(w.f32), G = cast<F>(gate.f32), Y = cast<F>(dy.f32);
    std::vector<F> d_o(O.size()), dgate(O.size()), dw(D);
    rms_norm_gated_backward<F>(ctx, as_mat(O, N), W, as_mat(G, N), static_cast<F>(1e-5),
                               as_mat(Y, N), as_mat(d_o, N), as_mat(dgate, N), dw);
    return Arrays<F>{d_o, dgate, dw};
  });
  expect_golden(got[0], "o_norm.do");
  expect_golden(got[1], "o_norm.dgate");
  expect_golden(got[2], "o_norm.dw");
  auto O = widen(o.f32), G = widen(gate.f32), W = widen(w.f32);
  const auto loss = [&] {
    double sum = 0;
    for (std::size_t i = 0; i < O.size(); i += D) {
      const auto y = ref::rms_norm(Vec<const double>(std::span(O).subspan(i, D)), W, 1e-5);
      for (std::size_t d = 0; d < D; ++d) {
        sum += y[d] * ref::sigmoid(G[i + d]) * static_cast<double>(dy.f32[i + d]);
      }
    }
    return sum;
  };
  check_gradient("o", O, got[0], loss);
  check_gradient("gate", G, got[1], loss);
  check_gradient("w", W, got[2], loss);
}

TEST(L2NormBackward, EqualsGoldenAndCentralDifferences) {
  const auto &x = golden()["l2.x"], &dy = golden()["l2.dy"];
  const std::size_t D = x.cols();
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    const auto X = cast<F>(x.f32), Y = cast<F>(dy.f32);
    std::vector<F> dx(X.size());
    l2_norm_backward<F>(ctx, as_mat(X, D), D, static_cast<F>(1e-6), as_mat(Y, D), as_mat(dx, D));
    return Arrays<F>{dx};
  });
  expect_golden(got[0], "l2.dx");
  const std::size_t T = 5, H = 3, N = 24;
  auto X = widen(normal(4, T * H * N));
  const auto D2 = widen(normal(5, T * H * N));
  std::vector<double> dx(X.size());
  Runner runner(2);
  l2_norm_backward<double>(runner, as_mat<double>(X, H * N), N, 1e-6, as_mat(D2, H * N),
                           as_mat(dx, H * N));
  check_gradient("x", X, dx, [&] {
    long double sum = 0;
    for (std::size_t i = 0; i < X.size(); i += N) {
      const auto y = ref::l2_norm(Vec<const double>(std::span(X).subspan(i, N)), 1e-6);
      sum += weighted(y, std::span(D2).subspan(i, N));
    }
    return sum;
  });
}

TEST(SigmoidBackward, EqualsCentralDifferences) {
  const std::size_t T = 3, N = 700;
  const auto x = normal(6, T * N, 2), gate = normal(7, T * N, 2), dy = normal(8, T * N);
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    const auto X = cast<F>(x), G = cast<F>(gate), D = cast<F>(dy);
    std::vector<F> s(T * N), dx(T * N), dm(T * N), dgate(T * N);
    for (std::size_t i = 0; i < s.size(); ++i) s[i] = 1 / (1 + std::exp(-X[i]));
    sigmoid_backward<F>(ctx, as_mat<F>(s, N), as_mat(D, N), as_mat(dx, N));
    mul_sigmoid_backward<F>(ctx, as_mat(X, N), as_mat(G, N), as_mat(D, N), as_mat(dm, N),
                            as_mat(dgate, N));
    return Arrays<F>{dx, dm, dgate};
  });
  auto X = widen(x), G = widen(gate);
  const auto loss = [&](bool product) {
    double sum = 0;
    for (std::size_t i = 0; i < X.size(); ++i) {
      const double y = product ? X[i] * ref::sigmoid(G[i]) : ref::sigmoid(X[i]);
      sum += y * static_cast<double>(dy[i]);
    }
    return sum;
  };
  check_gradient("sigmoid x", X, got[0], [&] { return loss(false); });
  check_gradient("product x", X, got[1], [&] { return loss(true); });
  check_gradient("product gate", G, got[2], [&] { return loss(true); });
}

// The golden case is SiTU with the released constants; all three forms against differences.
TEST(ActivateBackward, EqualsGoldenAndCentralDifferences) {
  const auto &gate = golden()["situ.gate"], &up = golden()["situ.up"], &dy = golden()["situ.dy"];
  const std::size_t N = gate.cols();
  for (const Activation a : {Activation{}, Activation{true, 4.0f, 0.0f}, Activation{false, 0, 0}}) {
    const auto got = check_both_types([&]<class F>(Context& ctx) {
      auto G = cast<F>(gate.f32), U = cast<F>(up.f32);
      const auto Y = cast<F>(dy.f32);
      activate_backward<F>(ctx, as_mat<F>(G, N), as_mat<F>(U, N), a, as_mat(Y, N), as_mat(G, N),
                           as_mat(U, N));  // in place
      return Arrays<F>{G, U};
    });
    if (a.situ && a.linear_beta > 0) {
      expect_golden(got[0], "situ.dgate");
      expect_golden(got[1], "situ.dup");
    }
    auto G = widen(gate.f32), U = widen(up.f32);
    const auto loss = [&] {
      double sum = 0;
      for (std::size_t i = 0; i < G.size(); ++i) {
        const double y =
            a.situ ? ref::situ(G[i], U[i], a.beta, a.linear_beta) : ref::silu(G[i]) * U[i];
        sum += y * static_cast<double>(dy.f32[i]);
      }
      return sum;
    };
    check_gradient("gate", G, got[0], loss);
    check_gradient("up", U, got[1], loss);
  }
}

TEST(ActivateForwardRow, EqualsReference) {
  const std::size_t n = 20;
  const auto gate = widen(normal(1, n, 3)), up = widen(normal(2, n, 30));
  std::vector<double> y(n);
  for (const Activation a : {Activation{}, Activation{true, 4.0f, 0.0f}, Activation{false, 0, 0}}) {
    activate_forward_row(a, gate.data(), up.data(), n, y.data());
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_DOUBLE_EQ(y[i], a.situ ? ref::situ(gate[i], up[i], a.beta, a.linear_beta)
                                    : ref::silu(gate[i]) * up[i]);
    }
  }
}

TEST(KdaGateBackward, EqualsGolden) {
  const auto &raw = golden()["gate.raw"], &bias = golden()["gate.dt_bias"];
  const auto &A_log = golden()["gate.A_log"], &dg = golden()["gate.dg"];
  const std::size_t N = raw.cols(), H = A_log.f32.size();
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    const auto R = cast<F>(raw.f32), B = cast<F>(bias.f32), D = cast<F>(dg.f32);
    std::vector<F> A = cast<F>(A_log.f32), draw(R.size()), dA(H), db(N);
    for (F& a : A) a = std::exp(a);
    kda_gate_backward<F>(ctx, as_mat(R, N), A, B, true, F{-5}, as_mat(D, N), as_mat(draw, N), dA,
                         db);
    return Arrays<F>{draw, dA, db};
  });
  expect_golden(got[0], "gate.draw");
  expect_golden(got[1], "gate.dA_log");
  expect_golden(got[2], "gate.ddt_bias");
}

TEST(KdaGateBackward, EqualsCentralDifferences) {
  const std::size_t T = 40, H = 3, K = 300, N = H * K;
  auto raw = widen(normal(1, T * N, 2)), bias = widen(normal(2, N)), A_log = widen(normal(3, H));
  const auto dg = widen(normal(4, T * N));
  for (const bool bounded : {true, false}) {
    std::vector<double> A(H), draw(T * N), dA(H), db(N);
    for (std::size_t h = 0; h < H; ++h) A[h] = std::exp(A_log[h]);
    Runner runner(2);
    kda_gate_backward<double>(runner, as_mat<double>(raw, N), A, bias, bounded, -5.0, as_mat(dg, N),
                              as_mat(draw, N), dA, db);
    const auto loss = [&] {
      double sum = 0;
      for (std::size_t i = 0; i < raw.size(); ++i) {
        const double a = std::exp(A_log[i % N / K]);
        sum += dg[i] * (bounded ? ref::kda_gate(raw[i], bias[i % N], a, -5)
                                : ref::kda_gate_softplus(raw[i], bias[i % N], a));
      }
      return sum;
    };
    check_gradient("raw", raw, draw, loss);
    check_gradient("dt_bias", bias, db, loss);
    check_gradient("A_log", A_log, dA, loss);
  }
}

}  // namespace
}  // namespace triax::ops
