// The router: golden values, the example by hand (acceptance case P07), ties, odd sizes.
#include <gtest/gtest.h>

#include <numeric>

#include "support/golden.h"
#include "support/settings.h"
#include "triax/ops/moe.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

struct Routed {
  std::vector<std::int32_t> ids;
  std::vector<float> weights, scores;
};

Routed run_route(Context& ctx, const std::vector<float>& logits, const std::vector<float>& bias,
                 const RouterRule& rule) {
  const std::size_t E = bias.size(), T = logits.size() / E;
  Routed r{std::vector<std::int32_t>(T * rule.top_k), std::vector<float>(T * rule.top_k),
           std::vector<float>(T * E)};
  route(ctx, as_mat(logits, E), bias, rule, as_mat(r.scores, E), as_mat(r.ids, rule.top_k),
        as_mat(r.weights, rule.top_k));
  return r;
}

TEST(Route, EqualsGolden) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  for_each_setting(
      Precision::bf16,
      [&](Context& ctx) {
        const Routed r =
            run_route(ctx, golden["router.logits"].f32, golden["router.bias"].f32, {3, true, 1.5f});
        EXPECT_EQ(r.ids, golden["router.ids"].i32);
        return r.weights;
      },
      [&](const std::vector<float>& w) {
        EXPECT_TRUE(close(w, golden["router.weights"].f32, 1e-5));
      });
}

TEST(Route, SixExpertsByHand) {
  const std::vector<float> logits{2, 1, 0, -1, 0.5f, -3};
  const std::vector<float> bias{0, -0.9f, 0.3f, 0.6f, 0, 1.1f};
  const std::vector<float> low{-3, -3, -3, -3, -3, -3.5f};
  const double chosen[] = {0.735736, 0.224649, 0.039615};  // experts 0, 3, 5
  for_each_isa([&] {
    Runner run(1);
    for (const bool renormalize : {true, false}) {
      for (const float factor : {1.0f, 2.5f}) {
        const Routed r = run_route(run, logits, bias, {3, renormalize, factor});
        EXPECT_EQ(r.ids, (std::vector<std::int32_t>{0, 3, 5}));
        for (std::size_t i = 0; i < 3; ++i) {
          const double score = ref::sigmoid(logits[static_cast<std::size_t>(r.ids[i])]);
          const double want = renormalize ? chosen[i] : score;
          EXPECT_NEAR(r.weights[i], want * static_cast<double>(factor), 2e-6)
              << renormalize << factor;
        }
      }
    }
    EXPECT_EQ(run_route(run, logits, low, {3, true, 1.0f}).ids,
              (std::vector<std::int32_t>{0, 1, 4}));
  });
}

TEST(Route, EqualScoresGoToTheLowerId) {
  const std::size_t E = 70;
  for_each_isa([&] {
    Runner run(2);
    for (const std::size_t k : {std::size_t{1}, std::size_t{7}, E}) {
      std::vector<std::int32_t> first(k);
      std::iota(first.begin(), first.end(), 0);
      const std::vector<float> same(E, 0.7f), bias(E, 0.1f);
      EXPECT_EQ(run_route(run, same, bias, {k, true, 1.0f}).ids, first);
    }
    std::vector<float> logits(E, -1.0f);
    for (const std::size_t e : {9u, 20u, 31u, 66u}) logits[e] = 1.0f;
    const Routed r = run_route(run, logits, std::vector<float>(E, 0.0f), {3, true, 1.0f});
    EXPECT_EQ(r.ids, (std::vector<std::int32_t>{9, 20, 31}));
    // A better one that comes later displaces the highest of the equal ids.
    logits[67] = 2.0f;
    EXPECT_EQ(run_route(run, logits, std::vector<float>(E, 0.0f), {3, true, 1.0f}).ids,
              (std::vector<std::int32_t>{9, 20, 67}));
  });
}

TEST(Route, EqualsReferenceForManyExperts) {
  const std::size_t E = 896, T = 40;
  const auto logits = normal(1, T * E), bias = normal(2, E, 0.2);
  const auto wide = widen(logits), wide_bias = widen(bias);
  for (const std::size_t k : {std::size_t{1}, std::size_t{16}}) {
    std::vector<double> want;
    std::vector<std::int32_t> ids;
    for (std::size_t t = 0; t < T; ++t) {
      const auto r = ref::route(as_mat(wide, E)[t], wide_bias, k, true, 1.5);
      want.insert(want.end(), r.weights.begin(), r.weights.end());
      ids.insert(ids.end(), r.ids.begin(), r.ids.end());
    }
    for_each_setting(
        Precision::f32,
        [&](Context& ctx) {
          const Routed r = run_route(ctx, logits, bias, {k, true, 1.5f});
          EXPECT_EQ(r.ids, ids);
          return r.weights;
        },
        [&](const std::vector<float>& w) { EXPECT_TRUE(close(w, want, 1e-6)); });
  }
}

TEST(Route, InUseIsSortedAndDistinct) {
  const std::vector<std::int32_t> ids{1, 5, 9, 0, 5, 8};
  EXPECT_EQ(experts_in_use(as_mat(ids, 3)), (std::vector<std::int32_t>{0, 1, 5, 8, 9}));
}

}  // namespace
}  // namespace triax::ops
