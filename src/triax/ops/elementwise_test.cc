// Norms, activations and gates against golden values, the double-precision reference, and the table
// of pointwise values (acceptance case P03).
#include "triax/ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/golden.h"
#include "support/settings.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

constexpr double kLimit = 1e-5;  // of the largest magnitude: what the golden files ask of float32

const Golden& golden() {
  static const Golden g(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  return g;
}

TEST(Elementwise, GateEqualsGolden) {
  const auto& raw = golden()["gate.raw"];
  std::vector<float> A = golden()["gate.A_log"].f32;
  for (float& a : A) a = std::exp(a);
  for_each_setting(
      Precision::f32,
      [&](Context& ctx) {
        std::vector<float> g(raw.f32.size());
        kda_gate(ctx, as_mat(raw.f32, raw.cols()), A, golden()["gate.dt_bias"].f32, true, -5.0f,
                 as_mat(g, raw.cols()));
        return g;
      },
      [&](const std::vector<float>& g) { EXPECT_TRUE(close(g, golden()["gate.g"].f32, kLimit)); });
}

TEST(Elementwise, UnboundedGateEqualsReference) {
  const std::size_t heads = 3, K = 40, T = 7;
  const auto raw = normal(1, T * heads * K, 4), bias = normal(2, heads * K);
  const std::vector<float> A{0.3f, 1.0f, 4.0f};
  std::vector<double> want;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const std::size_t c = i % (heads * K);
    want.push_back(ref::kda_gate_softplus(raw[i], bias[c], A[c / K]));
  }
  for_each_setting(
      Precision::f32,
      [&](Context& ctx) {
        std::vector<float> g(raw.size());
        kda_gate(ctx, as_mat(raw, heads * K), A, bias, false, 0.0f, as_mat(g, heads * K));
        return g;
      },
      [&](const std::vector<float>& g) { EXPECT_TRUE(close(g, want, 1e-6)); });
}

TEST(Elementwise, SituEqualsGolden) {
  const auto &gate = golden()["situ.gate"], &up = golden()["situ.up"];
  for_each_setting(
      Precision::f32,
      [&](Context& ctx) {
        std::vector<float> y(gate.f32.size());
        activate(ctx, as_mat(gate.f32, gate.cols()), as_mat(up.f32, up.cols()), {},
                 as_mat(y, gate.cols()));
        return y;
      },
      [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, golden()["situ.y"].f32, kLimit)); });
}

TEST(Elementwise, GatedNormEqualsGolden) {
  const auto &o = golden()["o_norm.o"], &gate = golden()["o_norm.gate"];
  for_each_setting(
      Precision::f32,
      [&](Context& ctx) {
        std::vector<float> y(o.f32.size());
        rms_norm_gated(ctx, as_mat(o.f32, o.cols()), golden()["o_norm.w"].f32,
                       as_mat(gate.f32, o.cols()), 1e-5f, as_mat(y, o.cols()));
        return y;
      },
      [&](const std::vector<float>& y) {
        EXPECT_TRUE(close(y, golden()["o_norm.y"].f32, kLimit));
      });
}

TEST(Elementwise, L2NormEqualsGolden) {
  const auto& x = golden()["l2.x"];
  for_each_setting(
      Precision::f32,
      [&](Context& ctx) {
        std::vector<float> y(x.f32.size());
        l2_norm(ctx, as_mat(x.f32, x.cols()), x.cols(), 1e-6f, as_mat(y, x.cols()));
        return y;
      },
      [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, golden()["l2.y"].f32, kLimit)); });
}

// P03. Gate g = -5 sigmoid(e^A (a + dt)), alpha = e^g.
TEST(Elementwise, PointwiseTableOfGateValues) {
  const struct {
    double A, a, dt, g, alpha;
  } table[] = {
      {0, 0, 0, -2.5, 0.08208500},          {0, 10, 0, -4.99977301, 0.00673948},
      {0, -10, 0, -0.00022699, 0.99977304}, {std::log(2.0), 0.5, 0.25, -4.08787238, 0.01677489},
      {-2, 3, -1, -2.83628760, 0.05864297}, {0, 200, 0, -5, 0.00673795}};
  for_each_isa([&] {
    Runner run(1);
    for (const auto& row : table) {
      const std::vector<float> raw{static_cast<float>(row.a)}, bias{static_cast<float>(row.dt)},
          A{static_cast<float>(std::exp(row.A))};
      std::vector<float> g(1), alpha(1);
      kda_gate(run, as_mat(raw, 1), A, bias, true, -5.0f, as_mat(g, 1));
      kernels().exp(g.data(), 1, alpha.data());
      const double exact = ref::kda_gate(row.a, row.dt, std::exp(row.A), -5);
      EXPECT_NEAR(exact, row.g, 6e-9) << "the reference itself";
      EXPECT_NEAR(g[0], exact, 1e-6 * std::abs(exact)) << row.a;
      EXPECT_NEAR(alpha[0], std::exp(exact), 1e-6 * std::exp(exact)) << row.a;
      EXPECT_NEAR(alpha[0], row.alpha, 6e-9 + 1e-6 * row.alpha) << row.a;
    }
  });
}

TEST(Elementwise, PointwiseTableOfSituValues) {
  const struct {
    float gate, up;
    double y;
  } table[] = {{1, 1, 0.71581783},
               {4, 25, 56.95931951},
               {100, 100, 99.93292997},
               {-1, -30, 5.49118062},
               {1e4f, -1e4f, -100}};
  for_each_isa([&] {
    Runner run(1);
    for (const auto& row : table) {
      const std::vector<float> gate{row.gate}, up{row.up};
      std::vector<float> y(1);
      activate(run, as_mat(gate, 1), as_mat(up, 1), {}, as_mat(y, 1));
      const double exact = ref::situ(row.gate, row.up, 4, 25);
      EXPECT_NEAR(exact, row.y, 6e-9 * std::abs(row.y) + 6e-9) << "the reference itself";
      EXPECT_NEAR(y[0], exact, 1e-6 * std::abs(exact)) << row.gate << ", " << row.up;
    }
  });
}

TEST(Elementwise, NoFiniteInputGivesNaN) {
  const std::vector<float> extremes{0.0f,   -0.0f,   1e-38f, -1e-38f, 88.8f,  -88.8f,
                                    104.0f, -104.0f, 1e4f,   -1e4f,   1e30f,  -1e30f,
                                    3e38f,  -3e38f,  1.0f,   -1.0f,   1e-44f, -1e-44f};
  const std::size_t n = extremes.size();
  std::vector<float> gate, up;  // every pair
  for (float a : extremes) {
    for (float b : extremes) gate.push_back(a), up.push_back(b);
  }
  for_each_isa([&] {
    Runner run(2);
    std::vector<float> y(gate.size());
    for (const Activation& a : {Activation{}, Activation{true, 4.0f, 0.0f}}) {
      activate(run, as_mat(gate, n), as_mat(up, n), a, as_mat(y, n));
      for (std::size_t i = 0; i < y.size(); ++i)
        EXPECT_FALSE(std::isnan(y[i])) << gate[i] << ", " << up[i];
    }
    activate(run, as_mat(gate, n), as_mat(up, n), {}, as_mat(y, n));
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_LE(std::abs(y[i]), 100.001f) << gate[i] << ", " << up[i];
    }
    std::vector<float> g(n);
    const std::vector<float> A{1.0f}, no_bias(n, 0.0f);
    kda_gate(run, as_mat(extremes, n), A, no_bias, true, -5.0f, as_mat(g, n));
    for (float v : g) EXPECT_TRUE(v >= -5.0f && v <= 0.0f) << v;
    kda_gate(run, as_mat(extremes, n), A, no_bias, false, 0.0f, as_mat(g, n));
    for (float v : g) EXPECT_TRUE(v <= 0.0f) << v;
    sigmoid(run, as_mat(extremes, n), as_mat(g, n));
    for (float v : g) EXPECT_TRUE(v >= 0.0f && v <= 1.0f) << v;
  });
}

TEST(Elementwise, RmsNormEqualsReferenceForOddSizesAndSmallValues) {
  for (const std::size_t n : {1u, 3u, 16u, 37u, 96u, 1023u}) {
    const std::size_t T = 5;
    auto x = normal(n, T * n);
    for (std::size_t i = 0; i < n; ++i) x[i] *= 1e-3f;  // the epsilon matters in the first row
    const auto w = normal(n + 1, n);
    const auto wide_x = widen(x), wide_w = widen(w);
    std::vector<double> want;
    for (std::size_t t = 0; t < T; ++t) {
      const auto row = ref::rms_norm(as_mat(wide_x, n)[t], wide_w, 1e-5);
      want.insert(want.end(), row.begin(), row.end());
    }
    for_each_setting(
        Precision::f32,
        [&](Context& ctx) {
          std::vector<float> y = x;  // in place
          rms_norm(ctx, as_mat(y, n), w, 1e-5f, as_mat(y, n));
          return y;
        },
        [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, 1e-6)) << n; });
  }
}

TEST(Elementwise, SumsAndGatesEqualReferenceOnWideRows) {
  const std::size_t n = 40000, T = 2;  // several stretches a row
  const auto a = normal(3, T * n), b = normal(4, T * n, 3);
  std::vector<double> sum, gated, sig, swiglu;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    sum.push_back(x + y);
    gated.push_back(x * ref::sigmoid(y));
    sig.push_back(ref::sigmoid(y));
    swiglu.push_back(ref::silu(y) * x);
  }
  const auto run = [&](auto&& op, const std::vector<double>& want) {
    for_each_setting(
        Precision::f32,
        [&](Context& ctx) {
          std::vector<float> y(a.size());
          op(ctx, as_mat(y, n));
          return y;
        },
        [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, 1e-6)); });
  };
  run([&](Context& c, Mat<float> y) { add(c, as_mat(a, n), as_mat(b, n), y); }, sum);
  run([&](Context& c, Mat<float> y) { mul_sigmoid(c, as_mat(a, n), as_mat(b, n), y); }, gated);
  run([&](Context& c, Mat<float> y) { sigmoid(c, as_mat(b, n), y); }, sig);
  run([&](Context& c, Mat<float> y) { activate(c, as_mat(b, n), as_mat(a, n), {false, 0, 0}, y); },
      swiglu);
}

TEST(Elementwise, RoundingFollowsTheNumberMode) {
  const auto x = normal(5, 3 * 700);
  auto rounded = x;
  round_all(rounded);
  for (const Precision mode : {Precision::f32, Precision::bf16}) {
    for_each_setting(
        mode,
        [&](Context& ctx) {
          auto y = x;
          round_in_bf16_mode(ctx, as_mat(y, 700));
          return y;
        },
        [&](const std::vector<float>& y) {
          EXPECT_TRUE(same_bits(y, mode == Precision::f32 ? x : rounded));
        });
  }
}

TEST(Elementwise, WrongShapesAreRefused) {
  Runner run(1);
  std::vector<float> x(12), w(3), y(8);
  EXPECT_THROW(rms_norm(run, as_mat(x, 4), w, 1e-5f, as_mat(x, 4)), LogicError);
  EXPECT_THROW(add(run, as_mat(x, 4), as_mat(x, 4), as_mat(y, 4)), LogicError);
  EXPECT_THROW(l2_norm(run, as_mat(x, 4), 3, 1e-6f, as_mat(x, 4)), LogicError);
}

}  // namespace
}  // namespace triax::ops
