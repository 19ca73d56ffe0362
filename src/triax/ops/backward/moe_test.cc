// Gradients of router and routed experts: golden values, central differences, empty experts.
#include "triax/ops/backward/moe.h"

#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/gradient.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

TEST(RouteBackward, EqualsGolden) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  const auto &logits = golden["router.logits"], &ids = golden["router.ids"];
  const std::size_t E = logits.cols(), k = ids.cols();
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    const auto L = cast<F>(logits.f32), D = cast<F>(golden["router.dweights"].f32);
    std::vector<F> out(L.size(), F{7});
    route_backward<F>(ctx, as_mat(L, E), as_mat(ids.i32, k), {k, true, 1.5f}, as_mat(D, k),
                      as_mat(out, E));
    return Arrays<F>{out};
  });
  const std::vector<float> rounded(got[0].begin(), got[0].end());
  EXPECT_TRUE(close(rounded, golden["router.dlogits"].f32, 1e-6));
}

TEST(RouteBackward, EqualsCentralDifferencesAndLearnsOnlyRelativeWeights) {
  const std::size_t T = 7, E = 10, k = 3;
  for (const bool renormalize : {true, false}) {
    const RouterRule rule{k, renormalize, 1.5f};
    auto logits = widen(normal(1, T * E));
    const std::vector<double> bias = widen(normal(2, E, 0.2));
    const auto dw = widen(normal(3, T * k));
    std::vector<std::int32_t> ids;
    const auto loss = [&] {
      long double sum = 0;
      ids.clear();
      for (std::size_t t = 0; t < T; ++t) {
        const auto r = ref::route(as_mat<double>(logits, E)[t], bias, k, renormalize, 1.5);
        ids.insert(ids.end(), r.ids.begin(), r.ids.end());
        sum += weighted(r.weights, std::span(dw).subspan(t * k, k));
      }
      return sum;
    };
    loss();
    std::vector<double> got(T * E);
    Runner runner(2);
    const std::vector<std::int32_t> chosen = ids;
    route_backward<double>(runner, as_mat<double>(logits, E), as_mat<std::int32_t>(chosen, k), rule,
                           as_mat(dw, k), as_mat(got, E));
    check_gradient("logits", logits, got, loss);
    if (!renormalize) continue;
    for (std::size_t t = 0; t < T; ++t) {  // sum of s ds = 0
      double sum = 0;
      for (std::size_t e = 0; e < E; ++e)
        sum += got[t * E + e] / (1 - ref::sigmoid(logits[t * E + e]));
      EXPECT_NEAR(sum, 0, 1e-12);
    }
  }
}

// E experts of which the last gets no token.
struct Case {
  std::size_t T = 200, L = 20, W = 36, E = 6, k = 2;
  std::vector<float> z = normal(1, T* L), dy = normal(2, T* L), weights = uniform(3, T* k, 0, 1);
  std::vector<float> w1 = normal(4, E* W* L, 0.5), w2 = normal(5, E* W* L, 0.5),
                     w3 = normal(6, E* W* L, 2);
  std::vector<std::int32_t> ids;
  Activation act{true, 4.0f, 25.0f};

  Case() {
    for (std::size_t t = 0; t < T; ++t) {  // expert 0 gets most tokens: several blocks
      const auto second = static_cast<std::int32_t>(1 + t % 4);
      ids.insert(ids.end(), {t % 5 == 0 && second < 4 ? second : 0,
                             t % 5 == 0 && second < 4 ? second + 1 : second});
    }
  }
  template <class F, class V>
  std::vector<ExpertMatrices<F>> matrices(V& a, V& b, V& c) const {
    std::vector<ExpertMatrices<F>> out;
    for (std::size_t e = 0; e < E; ++e) {
      const std::size_t at = e * W * L;
      out.push_back({Mat<F>(a.data() + at, {W, L}), Mat<F>(b.data() + at, {L, W}),
                     Mat<F>(c.data() + at, {W, L})});
    }
    return out;
  }
  // dz, dweights, dw1, dw2, dw3, aggregate
  template <class F>
  Arrays<F> run(Context& ctx) const {
    const auto Z = cast<F>(z), P = cast<F>(weights), D = cast<F>(dy);
    const auto A = cast<F>(w1), B = cast<F>(w2), C = cast<F>(w3);
    Arrays<F> out{std::vector<F>(T * L),    std::vector<F>(T * k),    std::vector<F>(A.size()),
                  std::vector<F>(A.size()), std::vector<F>(A.size()), std::vector<F>(T * L)};
    const Arena::Scope scope(ctx.arena);
    const ExpertPairs pairs = group_pairs(ctx, as_mat(ids, k), E);
    const Mat<F> gate = ctx.arena.take_mat<F>(T * k, W), up = ctx.arena.take_mat<F>(T * k, W);
    const auto experts = matrices<const F>(A, B, C);
    const auto grads = matrices<F>(out[2], out[3], out[4]);
    experts_forward_keep<F>(ctx, as_mat(Z, L), pairs, as_mat(P, k), experts, act, gate, up,
                            as_mat(out[5], L));
    experts_backward<F>(ctx, as_mat(Z, L), pairs, as_mat(P, k), experts, act, gate, up,
                        as_mat(D, L), as_mat(out[0], L), as_mat(out[1], k), grads);
    return out;
  }
};

TEST(ExpertsBackward, EqualsCentralDifferences) {
  const Case c;
  const auto got = check_both_types([&]<class F>(Context& ctx) { return c.run<F>(ctx); });
  auto Z = widen(c.z), P = widen(c.weights), A = widen(c.w1), B = widen(c.w2), C = widen(c.w3);
  const auto forward = [&] {
    std::vector<double> y(c.T * c.L, 0.0);
    for (std::size_t t = 0; t < c.T; ++t) {
      for (std::size_t i = 0; i < c.k; ++i) {
        const std::size_t at = static_cast<std::size_t>(c.ids[t * c.k + i]) * c.W * c.L;
        std::vector<double> h(c.W);
        for (std::size_t w = 0; w < c.W; ++w) {
          double g = 0, u = 0;
          for (std::size_t l = 0; l < c.L; ++l) {
            g += A[at + w * c.L + l] * Z[t * c.L + l];
            u += C[at + w * c.L + l] * Z[t * c.L + l];
          }
          h[w] = ref::situ(g, u, 4, 25);
        }
        for (std::size_t l = 0; l < c.L; ++l) {
          for (std::size_t w = 0; w < c.W; ++w) {
            y[t * c.L + l] += P[t * c.k + i] * B[at + l * c.W + w] * h[w];
          }
        }
      }
    }
    return y;
  };
  const auto dy = widen(c.dy);
  const auto loss = [&] { return weighted(forward(), dy); };
  check_gradient("z", Z, got[0], loss);
  check_gradient("weights", P, got[1], loss);
  check_gradient("w1", A, got[2], loss);
  check_gradient("w2", B, got[3], loss);
  check_gradient("w3", C, got[4], loss);
  const auto y = forward();
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(got[5][i], y[i], 1e-12 * 1000);
}

TEST(ExpertsBackward, AnExpertWithoutTokensGetsExactZeros) {
  const Case c;
  Runner runner(2);
  const auto got = c.run<float>(runner);
  const std::size_t size = c.W * c.L;
  for (std::size_t a = 2; a < 5; ++a) {
    for (std::size_t e = 0; e < c.E; ++e) {
      const bool empty = e == c.E - 1;
      const auto own = std::span(got[a]).subspan(e * size, size);
      EXPECT_EQ(std::all_of(own.begin(), own.end(), [](float x) { return x == 0.0f; }), empty);
    }
  }
}

}  // namespace
}  // namespace triax::ops
