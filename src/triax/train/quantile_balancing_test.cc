// Quantile Balancing: the simulation of K3's routing, the histogram against the exact quantile, and
// the rules about what is counted.
#include "triax/train/quantile_balancing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "support/settings.h"
#include "triax/ops/linear.h"
#include "triax/ops/moe.h"

namespace triax::train {
namespace {

using namespace triax::test;  // NOLINT

// A router W [896, 64] ~ N(0, 1/64) over inputs with a fixed mean mu ~ N(0, 1.5^2): a popularity
// skew of 1.5 logits that no step changes. x = mu + N(0, I), 4096 tokens a step, top 16.
struct Simulation {
  std::size_t E = 896, D = 64, T = 4096, k = 16;
  std::vector<float> W = normal(11, 896 * 64, 1.0 / 8), mu = normal(22, D, 1.5);
  std::vector<float> scores = std::vector<float>(T * E), bias = std::vector<float>(E);
  Runner runner{2};

  // Scores of a step's fresh tokens, and the load that the present bias gives.
  ExpertLoad step(std::size_t number) {
    std::vector<float> x = normal(100 + number, T * D);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += mu[i % D];
    std::vector<float> logits(T * E), weights(T * k);
    std::vector<std::int32_t> ids(T * k);
    ops::linear_f32(runner, as_mat<float>(x, D), {W.data(), DType::F32, E, D}, as_mat(logits, E));
    ops::route(runner, as_mat<float>(logits, E), bias, {k, true, 1.0f}, as_mat(scores, E),
               as_mat(ids, k), as_mat(weights, k));
    ExpertLoad load(E);
    load.count(as_mat<std::int32_t>(ids, k));
    return load;
  }

  // The rule by sorting. `mistaken`: required bias from the biased score (a known slip).
  std::vector<float> exact(bool mistaken) const {
    std::vector<double> next(E);
    std::vector<float> cutoff(T), row(E), required(T);
    for (std::size_t t = 0; t < T; ++t) {
      for (std::size_t e = 0; e < E; ++e) row[e] = scores[t * E + e] + bias[e];
      std::nth_element(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(k), row.end(),
                       std::greater<>());
      cutoff[t] = row[k];
    }
    const std::size_t q = (T * k + E - 1) / E;
    double mean = 0;
    for (std::size_t e = 0; e < E; ++e) {
      for (std::size_t t = 0; t < T; ++t) {
        required[t] = cutoff[t] - scores[t * E + e] - (mistaken ? bias[e] : 0);
      }
      const auto at = required.begin() + static_cast<std::ptrdiff_t>(q);
      std::nth_element(required.begin(), at, required.end());
      next[e] = *at;
      mean += next[e] / static_cast<double>(E);
    }
    std::vector<float> out;
    for (double b : next) out.push_back(static_cast<float>(b - mean));
    return out;
  }
};

TEST(QuantileBalancing, BalancesASkewedRouterInThreeSteps) {
  Simulation s;
  QuantileBalancer balancer(s.E, s.k);
  for (std::size_t n = 0; n <= 6; ++n) {
    const ExpertLoad load = s.step(n);
    RecordProperty("max_over_mean_" + std::to_string(n), std::to_string(load.max_over_mean()));
    if (n == 0) {
      EXPECT_GT(load.max_over_mean(), 30);
      EXPECT_GT(load.dead_fraction(), 0.1);
    }
    if (n >= 3) {
      // Counts of 73 tokens an expert are noisy, and so is the bias: about one step in thirty of
      // this simulation passes 1.75 with other seeds.
      EXPECT_LT(load.max_over_mean(), n == 3 ? 1.75 : 2.0) << "step " << n;
      EXPECT_EQ(load.dead_fraction(), 0.0) << "step " << n;
    }
    balancer.begin_step(s.bias);
    // two micro-batches: the rule looks at the whole step
    balancer.count(s.runner, as_mat<float>(s.scores, s.E).slice(0, 1000));
    balancer.count(s.runner, as_mat<float>(s.scores, s.E).slice(1000, s.T));
    const std::vector<float> want = s.exact(false);
    balancer.end_step(s.bias);
    double sum = 0, off = 0;
    for (std::size_t e = 0; e < s.E; ++e) {
      sum += static_cast<double>(s.bias[e]);
      off += std::abs(static_cast<double>(s.bias[e] - want[e])) / static_cast<double>(s.E);
    }
    EXPECT_NEAR(sum, 0, 1e-3) << "step " << n;
    EXPECT_LT(off, balancer.bin_width()) << "step " << n;
  }
}

// The test above would not pass with the slip that spec and report warn of.
TEST(QuantileBalancing, TheBiasedScoreMistakeOscillates) {
  Simulation s;
  double worst = 0;
  for (std::size_t n = 0; n <= 6; ++n) {
    const ExpertLoad load = s.step(n);
    if (n >= 2) worst = std::max(worst, load.max_over_mean());
    s.bias = s.exact(true);
  }
  EXPECT_GT(worst, 5);
}

TEST(QuantileBalancing, CountsAreTheSameForAnyNumberOfThreadsAndMicroBatches) {
  const std::size_t E = 37, T = 500;
  const auto scores = uniform(1, T * E, 0, 1), bias = uniform(2, E, -0.3, 0.3);
  std::vector<std::uint32_t> want;
  for (const std::size_t threads : {1u, 2u, 5u}) {
    for (const std::size_t cut : {0u, 1u, 333u}) {
      Runner runner(threads);
      QuantileBalancer b(E, 4);
      b.begin_step(bias);
      b.count(runner, as_mat(scores, E).slice(0, cut));
      b.count(runner, as_mat(scores, E).slice(cut, T));
      EXPECT_EQ(b.tokens(), T);
      const std::vector<std::uint32_t> got(b.counts().begin(), b.counts().end());
      EXPECT_EQ(std::accumulate(got.begin(), got.end(), std::size_t{0}), T * E);
      if (want.empty()) want = got;
      EXPECT_EQ(got, want);
    }
  }
}

TEST(QuantileBalancing, AddedCountsOfTwoRanksGiveTheBiasOfTheWholeBatch) {
  const std::size_t E = 12, T = 300;
  const auto scores = uniform(3, T * E, 0, 1);
  const std::vector<float> zero(E);
  Runner runner(2);
  const auto half = [&](std::size_t begin, std::size_t end) {
    QuantileBalancer b(E, 3);
    b.begin_step(zero);
    b.count(runner, as_mat(scores, E).slice(begin, end));
    return b;
  };
  const QuantileBalancer whole = half(0, T);
  QuantileBalancer first = half(0, 100), second = half(100, T);
  for (std::size_t i = 0; i < first.counts().size(); ++i) first.counts()[i] += second.counts()[i];
  first.set_tokens(first.tokens() + second.tokens());
  std::vector<float> a(E), b(E);
  whole.end_step(a);
  first.end_step(b);
  EXPECT_TRUE(same_bits(a, b));
}

TEST(QuantileBalancing, KeepsTheBiasWithoutTokensAndInPartWhenAsked) {
  const std::size_t E = 8;
  const std::vector<float> before{0.1f, -0.1f, 0, 0, 0.2f, -0.2f, 0, 0};
  Runner runner(1);
  QuantileBalancer b(E, 2);
  b.begin_step(before);
  std::vector<float> bias = before;
  b.end_step(bias);
  EXPECT_EQ(bias, before);
  b.count(runner, as_mat(uniform(4, 50 * E, 0, 1), E));
  std::vector<float> full(E), mixed(E);
  b.end_step(full);
  b.end_step(mixed, 0.75);
  for (std::size_t e = 0; e < E; ++e) {
    EXPECT_NEAR(mixed[e], 0.75f * before[e] + 0.25f * full[e], 1e-7f);
  }
}

TEST(QuantileBalancing, RefusesARouterThatTakesEveryExpert) {
  EXPECT_THROW(QuantileBalancer(4, 4), Error);
}

TEST(ExpertLoad, SaysHowEvenTokensFell) {
  ExpertLoad load(4);
  EXPECT_EQ(load.max_over_mean(), 0.0);
  const std::vector<std::int32_t> ids{0, 1, 0, 1, 0, 2, 0, 1};
  load.count(as_mat(ids, 2));
  EXPECT_EQ(load.max_over_mean(), 2.0);
  EXPECT_EQ(load.dead_fraction(), 0.25);
}

TEST(SignRule, MovesEveryBiasOneStepTowardsTheMeanLoad) {
  ExpertLoad load(4);
  load.tokens = {10, 2, 6, 6};  // mean 6
  std::vector<float> bias = {0.5f, -0.5f, 0.25f, 0.0f};
  sign_rule(load, 0.125, bias);
  EXPECT_EQ(bias, (std::vector<float>{0.375f, -0.375f, 0.25f, 0.0f}));
}

}  // namespace
}  // namespace triax::train
