// One KDA step on one head.
#include "triax/kernels/kernel_test.h"

namespace triax {
namespace {

class KdaStep : public EveryIsa {};

// Acceptance case P04: three steps by hand, K = V = 2; q is scaled by 1/sqrt(2) before the kernel.
TEST_P(KdaStep, ThreeStepsByHand) {
  const float root = 1.0f / std::sqrt(2.0f);
  float S[4] = {0, 0, 0, 0}, o[2], scratch[4];
  struct Step {
    float q[2], k[2], v[2], alpha[2], beta, S[4], o[2];
  };
  const Step steps[] = {
      {{1, 0}, {1, 0}, {2, 3}, {1, 1}, 1, {2, 3, 0, 0}, {1.414214f, 2.121320f}},
      {{0.6f, 0.8f},
       {0.6f, 0.8f},
       {1, -1},
       {0.5f, 0.25f},
       0.5f,
       {1.12f, 0.93f, 0.16f, -0.76f},
       {0.565685f, -0.035355f}},
      {{0, 1}, {1, 0}, {0, 0}, {1, 0.5f}, 1, {0, 0, 0.08f, -0.38f}, {0.056569f, -0.268701f}}};
  for (const Step& s : steps) {
    const float q[2] = {s.q[0] * root, s.q[1] * root};
    const float g[2] = {std::log(s.alpha[0]), std::log(s.alpha[1])};
    table().kda_step(S, q, s.k, s.v, g, s.beta, 2, 2, o, scratch);
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(S[i], s.S[i], 1e-6);
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(o[i], s.o[i], 1e-6);
  }
}

TEST_P(KdaStep, AgreesWithDoubleOverManySteps) {
  Rng rng(21);
  struct Shape {
    std::size_t K, V;
  };
  for (auto [K, V] : {Shape{128, 128}, Shape{3, 5}, Shape{17, 70}, Shape{64, 37}, Shape{1, 1}}) {
    std::vector<float> S(K * V, 0.0f), o(V), scratch(K + V);
    std::vector<double> D(K * V, 0.0);
    for (int t = 0; t < 20; ++t) {
      const auto q = random_floats(rng, K), k = random_floats(rng, K, 0.1),
                 v = random_floats(rng, V);
      auto g = random_floats(rng, K, 2.5);
      for (float& x : g) x -= 2.5f;  // (-5, 0)
      const float beta = static_cast<float>(rng.uniform());
      table().kda_step(S.data(), q.data(), k.data(), v.data(), g.data(), beta, K, V, o.data(),
                       scratch.data());
      for (std::size_t c = 0; c < V; ++c) {
        double read = 0, out = 0;
        for (std::size_t i = 0; i < K; ++i) {
          D[i * V + c] *= std::exp(double{g[i]});
          read += D[i * V + c] * k[i];
        }
        const double u = double{beta} * (double{v[c]} - read);
        for (std::size_t i = 0; i < K; ++i) {
          D[i * V + c] += double{k[i]} * u;
          out += D[i * V + c] * q[i];
        }
        ASSERT_NEAR(o[c], out, 2e-6) << K << 'x' << V << " step " << t;
      }
    }
    for (std::size_t i = 0; i < K * V; ++i) ASSERT_NEAR(S[i], D[i], 1e-6);
  }
}

TRIAX_EVERY_ISA(KdaStep);

}  // namespace
}  // namespace triax
