// Gradients of weight products, embedding and cross-entropy against central differences.
#include "triax/ops/backward/linear.h"

#include <gtest/gtest.h>

#include <array>

#include "support/gradient.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

TEST(LinearBackward, EqualsCentralDifferences) {
  // tiles and blocks of every kind, whole and not
  const std::array<std::size_t, 3> cases[] = {
      {1, 70, 150}, {5, 70, 150}, {300, 20, 40}, {3, 600, 9}};
  for (const auto& [T, N, K] : cases) {
    const auto x = normal(1, T * K), w = normal(2, N * K, 0.1), dy = normal(3, T * N);
    const auto run = [&]<class F>(Context& ctx) {
      const auto X = cast<F>(x), W = cast<F>(w), D = cast<F>(dy);
      std::vector<F> dx(T * K, F{1}), dw(N * K, F{2});
      linear_input_gradient<F>(ctx, as_mat(D, N), as_mat(W, K), as_mat(dx, K), true);
      linear_input_gradient<F>(ctx, as_mat(D, N), as_mat(W, K), as_mat(dx, K), false);
      linear_weight_gradient<F>(ctx, as_mat(X, K), as_mat(D, N), as_mat(dw, K));
      return Arrays<F>{dx, dw};
    };
    Arrays<double> got = check_both_types(run);
    for (double& g : got[1]) g -= 2;  // it was added to what was there
    auto X = widen(x), W = widen(w);
    const auto loss = [&] {
      long double sum = 0;
      for (std::size_t t = 0; t < T; ++t) {
        for (std::size_t n = 0; n < N; ++n) {
          double y = 0;
          for (std::size_t k = 0; k < K; ++k) y += X[t * K + k] * W[n * K + k];
          sum += y * static_cast<double>(dy[t * N + n]);
        }
      }
      return sum;
    };
    check_gradient("x", X, got[0], loss);
    check_gradient("w", W, got[1], loss);
  }
}

TEST(LinearBackward, AddsToTheInputGradientWhenAsked) {
  const std::vector<double> dy{1, 2}, w{3, 4};  // [1, 2], [2, 1]
  std::vector<double> dx{10};
  Runner runner(1);
  linear_input_gradient<double>(runner, as_mat(dy, 2), as_mat(w, 1), as_mat(dx, 1), true);
  EXPECT_EQ(dx[0], 10 + 3 + 8);
}

TEST(EmbedBackward, AddsEveryRowOfAnIdInOrder) {
  const std::vector<std::int32_t> ids{3, 0, 3, 3};
  const std::size_t N = 40;
  const auto dy = normal(5, ids.size() * N);
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    const auto D = cast<F>(dy);
    std::vector<F> table(5 * N);
    embed_backward<F>(ctx, ids, as_mat(D, N), as_mat(table, N));
    return Arrays<F>{table};
  });
  for (std::size_t i = 0; i < N; ++i) {
    const auto at = [&](std::size_t t) { return static_cast<double>(dy[t * N + i]); };
    EXPECT_EQ(got[0][3 * N + i], at(0) + at(2) + at(3));
    EXPECT_EQ(got[0][i], at(1));
    for (const std::size_t untouched : {1u, 2u, 4u}) EXPECT_EQ(got[0][untouched * N + i], 0.0);
  }
}

TEST(CrossEntropy, EqualsCentralDifferences) {
  const std::size_t T = 6, V = 300;
  const std::vector<std::int32_t> targets{0, 299, kNoTarget, 17, 17, 200};
  auto logits = normal(7, T * V, 3);
  for (std::size_t v = 0; v < V; ++v) logits[3 * V + v] += 500;  // no overflow
  const double scale = 0.25;
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    auto rows = cast<F>(logits);
    std::vector<F> losses(T);
    cross_entropy<F>(ctx, as_mat(rows, V), targets, static_cast<F>(scale), losses);
    return Arrays<F>{rows, losses};
  });
  auto x = widen(logits);
  const auto loss = [&] {
    double sum = 0;
    for (std::size_t t = 0; t < T; ++t) {
      if (targets[t] == kNoTarget) continue;
      const double wanted = x[t * V + static_cast<std::size_t>(targets[t])];
      double exps = 0;
      for (std::size_t v = 0; v < V; ++v) exps += std::exp(x[t * V + v] - wanted);
      sum += std::log(exps);
    }
    return sum;
  };
  double total = 0;
  for (double l : got[1]) total += l;
  EXPECT_NEAR(total, loss(), 1e-10 * total);
  check_gradient("logits", x, got[0], [&] { return scale * loss(); });
  EXPECT_EQ(got[1][2], 0.0);
  for (std::size_t v = 0; v < V; ++v) EXPECT_EQ(got[0][2 * V + v], 0.0);
}

}  // namespace
}  // namespace triax::ops
