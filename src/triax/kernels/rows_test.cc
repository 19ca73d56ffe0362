// Rows: pointwise functions, norms and reductions against double.
#include <algorithm>
#include <limits>

#include "triax/kernels/kernel_test.h"

namespace triax {
namespace {

class Rows : public EveryIsa {};

constexpr std::size_t kLengths[] = {1,  2,  3,  4,  5,  7,  8,  9,   15,
                                    16, 17, 31, 33, 63, 64, 65, 130, 1001};

// Units in the last place between a float and a double.
double ulps(float found, double expected) {
  const float near = static_cast<float>(expected);
  const double unit = std::max(
      static_cast<double>(std::nextafter(std::fabs(near), INFINITY)) - std::fabs(near), 0x1p-149);
  return std::fabs(found - expected) / unit;
}

// Values that cross every branch of the functions, and a sweep.
std::vector<float> sweep() {
  std::vector<float> x{0.0f,   -0.0f, 1e-30f, -1e-30f, 1e-8f,  -1e-8f,  1e-4f,   0.3f,
                       -0.3f,  0.35f, 0.69f,  1.0f,    -1.0f,  87.3f,   -87.3f,  88.0f,
                       -88.0f, 1e4f,  -1e4f,  1e30f,   -1e30f, 3.4e38f, -3.4e38f};
  for (int i = -3600; i <= 3600; ++i) x.push_back(static_cast<float>(i) * 0.02443f);
  for (int i = -400; i <= 400; ++i) x.push_back(static_cast<float>(i) * 0.0137f);
  return x;
}

TEST_P(Rows, Exp) {
  const auto x = sweep();
  std::vector<float> y(x.size());
  table().exp(x.data(), x.size(), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp(double{x[i]});
    if (want < 0x1p-126) {
      EXPECT_LE(std::fabs(y[i] - want), 0x1p-126) << x[i];
    } else if (want > std::numeric_limits<float>::max()) {
      EXPECT_EQ(y[i], INFINITY) << x[i];
    } else {
      EXPECT_LE(ulps(y[i], want), 1.5) << x[i];
    }
  }
  float nan = NAN;
  table().exp(&nan, 1, &nan);
  EXPECT_TRUE(std::isnan(nan));
  const float edge[3] = {88.0f, -1e30f, -200.0f};
  float out[3];
  table().exp(edge, 3, out);
  EXPECT_TRUE(std::isfinite(out[0]));
  EXPECT_EQ(out[1], 0.0f);
  EXPECT_EQ(out[2], 0.0f);
}

TEST_P(Rows, Sigmoid) {
  const auto x = sweep();
  std::vector<float> y(x.size());
  table().sigmoid(x.data(), x.size(), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = sigmoid_of(x[i]);
    if (want < 0x1p-126) {
      EXPECT_LE(std::fabs(y[i] - want), 0x1p-126) << x[i];
    } else {
      EXPECT_LE(ulps(y[i], want), 2.5) << x[i];
    }
  }
  const float edge[2] = {1e30f, -1e30f};
  float out[2];
  table().sigmoid(edge, 2, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], 0.0f);
}

TEST_P(Rows, ToBf16RoundsAsCore) {
  Rng rng(31);
  for (std::size_t n : kLengths) {
    std::vector<float> x(n);
    for (float& v : x) v = std::bit_cast<float>(static_cast<std::uint32_t>(rng.next()));
    x[0] = std::bit_cast<float>(0x3F808000u);             // a tie, to even
    if (n > 1) x[1] = std::bit_cast<float>(0x7F800001u);  // a NaN whose high half is infinity
    if (n > 2) x[2] = std::bit_cast<float>(0x7F7FFFFFu);  // rounds to infinity
    std::vector<bf16> y(n + 1, bf16{7});
    table().to_bf16(x.data(), n, y.data());
    std::vector<float> back(n + 1, 7.0f);
    table().from_bf16(y.data(), n, back.data());
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(y[i].bits, to_bf16(x[i]).bits) << std::bit_cast<std::uint32_t>(x[i]);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::uint32_t{y[i].bits} << 16);
    }
    EXPECT_EQ(y[n].bits, 7);
    EXPECT_EQ(back[n], 7.0f);
  }
}

TEST_P(Rows, PointwiseArithmeticInPlaceAndUnaligned) {
  Rng rng(32);
  for (std::size_t n : kLengths) {
    const auto a = random_floats(rng, n + 1), b = random_floats(rng, n + 1);
    const float* pa = a.data() + 1;  // not aligned to a vector
    const float* pb = b.data() + 1;
    std::vector<float> y(n + 1, 9.0f);
    table().add(pa, pb, n, y.data());
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], pa[i] + pb[i]);
    table().mul(pa, pb, n, y.data());
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], pa[i] * pb[i]);
    table().scale(0.3f, pa, n, y.data());
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], 0.3f * pa[i]);
    std::copy(pb, pb + n, y.begin());
    table().axpy(0.3f, pa, n, y.data());
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(y[i], 0.3f * pa[i] + pb[i], 1.2e-7);
    std::copy(pa, pa + n, y.begin());
    table().add(y.data(), y.data(), n, y.data());
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], 2.0f * pa[i]);
    EXPECT_EQ(y[n], 9.0f);
  }
}

TEST_P(Rows, Reductions) {
  Rng rng(33);
  for (std::size_t n : kLengths) {
    const auto a = random_floats(rng, n), b = random_floats(rng, n);
    double dot = 0, squares = 0, size = 0, exps = 0;
    for (std::size_t i = 0; i < n; ++i) {
      dot += double{a[i]} * b[i];
      size += std::fabs(double{a[i]} * b[i]);
      squares += double{a[i]} * a[i];
      exps += std::exp(double{a[i]} - 1.0);
    }
    EXPECT_NEAR(table().dot(a.data(), b.data(), n), dot, 5e-7 * size);
    expect_relative(table().sum_squares(a.data(), n), squares, 1e-6);
    EXPECT_EQ(table().max(a.data(), n), *std::max_element(a.begin(), a.end()));
    std::vector<float> negative(n);
    for (std::size_t i = 0; i < n; ++i) negative[i] = a[i] - 5.0f;
    EXPECT_EQ(table().max(negative.data(), n), *std::max_element(negative.begin(), negative.end()));
    std::vector<float> y(n + 1, 9.0f);
    expect_relative(table().exp_sum(a.data(), 1.0f, n, y.data()), exps, 1e-6);
    for (std::size_t i = 0; i < n; ++i) expect_relative(y[i], std::exp(double{a[i]} - 1.0), 3e-7);
    EXPECT_EQ(y[n], 9.0f);
  }
}

TEST_P(Rows, Norms) {
  Rng rng(34);
  for (std::size_t n : kLengths) {
    const auto x = random_floats(rng, n, 3.0), w = random_floats(rng, n),
               gate = random_floats(rng, n, 6.0);
    double squares = 0, score = 0;
    for (std::size_t i = 0; i < n; ++i) {
      squares += double{x[i]} * x[i];
      score += double{x[i]} * w[i];
    }
    const double rms = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    std::vector<float> y(n);
    table().rms_norm(x.data(), w.data(), 1e-5f, n, y.data());
    for (std::size_t i = 0; i < n; ++i) expect_relative(y[i], x[i] * rms * w[i], 1e-6);
    table().rms_norm_gated(x.data(), w.data(), gate.data(), 1e-5f, n, y.data());
    for (std::size_t i = 0; i < n; ++i) {
      expect_relative(y[i], x[i] * rms * w[i] * sigmoid_of(gate[i]), 1e-6);
    }
    table().l2_norm(x.data(), 1e-6f, n, y.data());
    for (std::size_t i = 0; i < n; ++i)
      expect_relative(y[i], x[i] / std::sqrt(squares + 1e-6), 1e-6);
    EXPECT_NEAR(table().mix_score(x.data(), w.data(), 1e-5f, n), score * rms,
                1e-6 * static_cast<double>(n));
    y = x;
    table().rms_norm(y.data(), w.data(), 1e-5f, n, y.data());  // in place
    for (std::size_t i = 0; i < n; ++i) expect_relative(y[i], x[i] * rms * w[i], 1e-6);
  }
}

double situ_of(double g, double u, double beta, double linear_beta) {
  const double up = linear_beta > 0 ? linear_beta * std::tanh(u / linear_beta) : u;
  return beta * std::tanh(g / beta) * sigmoid_of(g) * up;
}

// Acceptance case P03.
TEST_P(Rows, Situ) {
  struct Case {
    float gate, up;
    double want;
  };
  const Case cases[] = {{1, 1, 0.71581783},
                        {4, 25, 56.95931951},
                        {100, 100, 99.93292997},
                        {-1, -30, 5.49118062},
                        {1e4f, -1e4f, -100.0}};
  for (const Case& c : cases) {
    float y;
    table().situ(&c.gate, &c.up, 4.0f, 25.0f, 1, &y);
    expect_relative(y, situ_of(c.gate, c.up, 4, 25), 1e-6);
    expect_relative(y, c.want, 1e-6);
  }
  const auto x = sweep();
  const std::size_t n = x.size();
  std::vector<float> up(n), y(n);
  for (std::size_t shift : {0, 3, 11, 700}) {
    for (std::size_t i = 0; i < n; ++i) up[i] = x[(i + shift) % n];
    table().situ(x.data(), up.data(), 4.0f, 25.0f, n, y.data());
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(std::isfinite(y[i])) << x[i] << ' ' << up[i];
      expect_relative(y[i], situ_of(x[i], up[i], 4, 25), 1e-6, 1e-37);
    }
    table().situ(x.data(), up.data(), 4.0f, 0.0f, n, y.data());  // the up branch not capped
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(std::isfinite(y[i])) << x[i] << ' ' << up[i];
      const double want = situ_of(x[i], up[i], 4, 0);
      // where sigmoid underflows, a huge up value shows it
      if (std::fabs(want) < 1e38 && x[i] > -87.0f) expect_relative(y[i], want, 1e-6, 1e-37);
    }
  }
}

TEST_P(Rows, SwigluAndMulSigmoid) {
  Rng rng(35);
  for (std::size_t n : kLengths) {
    const auto g = random_floats(rng, n, 8.0), u = random_floats(rng, n, 3.0);
    std::vector<float> y(n);
    table().swiglu(g.data(), u.data(), n, y.data());
    for (std::size_t i = 0; i < n; ++i) expect_relative(y[i], g[i] * sigmoid_of(g[i]) * u[i], 1e-6);
    table().mul_sigmoid(u.data(), g.data(), n, y.data());
    for (std::size_t i = 0; i < n; ++i) expect_relative(y[i], u[i] * sigmoid_of(g[i]), 1e-6);
  }
}

TEST_P(Rows, ConvSilu) {
  Rng rng(36);
  for (std::size_t taps : {1, 4, 8}) {
    for (std::size_t n : {1, 7, 16, 37, 130}) {
      const std::size_t ldw = n + 2;
      const auto w = random_floats(rng, taps * ldw), data = random_floats(rng, taps * n);
      const float* rows[8];
      for (std::size_t j = 0; j < taps; ++j) rows[j] = data.data() + (taps - 1 - j) * n;
      std::vector<float> y(n);
      table().conv_silu(rows, w.data(), ldw, taps, n, y.data());
      for (std::size_t c = 0; c < n; ++c) {
        double z = 0;
        for (std::size_t j = 0; j < taps; ++j) z += double{w[j * ldw + c]} * rows[j][c];
        EXPECT_NEAR(y[c], z * sigmoid_of(z), 1e-6);
      }
    }
  }
}

// Acceptance case P03.
TEST_P(Rows, KdaGate) {
  struct Case {
    double A;
    float raw, dt;
    double g, alpha;
  };
  const Case cases[] = {
      {0, 0, 0, -2.5, 0.08208500},          {0, 10, 0, -4.99977301, 0.00673948},
      {0, -10, 0, -0.00022699, 0.99977304}, {std::log(2.0), 0.5f, 0.25f, -4.08787238, 0.01677489},
      {-2, 3, -1, -2.83628760, 0.05864297}, {0, 200, 0, -5, 0.00673795}};
  for (const Case& c : cases) {
    float g, alpha;
    table().kda_gate(&c.raw, &c.dt, static_cast<float>(std::exp(c.A)), -5.0f, 1, &g);
    table().exp(&g, 1, &alpha);
    expect_relative(g, -5.0 * sigmoid_of(std::exp(c.A) * (double{c.raw} + c.dt)), 1e-6);
    expect_relative(g, c.g, 1e-6, 6e-9);
    expect_relative(alpha, c.alpha, 2e-6, 6e-9);
  }
}

TEST_P(Rows, KdaGateSoftplus) {
  const auto x = sweep();
  std::vector<float> none(x.size(), 0.0f), g(x.size());
  table().kda_gate_softplus(x.data(), none.data(), 1.5f, x.size(), g.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double soft =
        std::max(double{x[i]}, 0.0) + std::log1p(std::exp(-std::fabs(double{x[i]})));
    if (std::fabs(x[i]) < 1e38f) expect_relative(g[i], -1.5 * soft, 1e-6, 1e-37);
    ASSERT_FALSE(std::isnan(g[i]));
  }
}

TEST_P(Rows, WeightedSumMayOverwriteASource) {
  Rng rng(37);
  for (std::size_t n : kLengths) {
    for (std::size_t count : {1, 2, 9}) {
      auto data = random_floats(rng, count * n);
      const auto before = data, p = random_floats(rng, count);
      std::vector<const float*> sources(count);
      for (std::size_t s = 0; s < count; ++s) sources[s] = data.data() + s * n;
      float* y = data.data() + (count - 1) * n;
      table().weighted_sum(sources.data(), p.data(), count, n, y);
      for (std::size_t i = 0; i < n; ++i) {
        double want = 0;
        for (std::size_t s = 0; s < count; ++s) want += double{p[s]} * before[s * n + i];
        EXPECT_NEAR(y[i], want, 1e-6);
      }
    }
  }
}

// A place's value does not depend on where in its row, or in which row length, it lies.
TEST_P(Rows, PlaceDoesNotMatter) {
  const auto x = sweep();
  std::vector<float> whole(x.size()), part(x.size());
  using Map = void (*)(const float*, std::size_t, float*);
  for (Map f : {table().exp, table().sigmoid}) {
    f(x.data(), x.size(), whole.data());
    for (std::size_t begin : {1, 2, 5, 13}) {
      for (std::size_t n : {1, 3, 9, 21, 40}) {
        f(x.data() + begin, n, part.data());
        for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(part[i], whole[begin + i]) << x[begin + i];
      }
    }
  }
}

TRIAX_EVERY_ISA(Rows);

}  // namespace
}  // namespace triax
