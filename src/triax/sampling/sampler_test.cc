#include "triax/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "triax/core/error.h"

namespace triax {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Argmax, LowestIdAmongEqualsAndNeverNan) {
  const std::vector<float> logits{kNan, 1, 3, 3, 2};
  EXPECT_EQ(argmax(logits), 2);
}

TEST(Sampler, TemperatureZeroIsGreedyWhateverTheSeed) {
  const std::vector<float> logits{0.1f, 0.3f, 0.2f};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Sampler s({.temperature = 0, .seed = seed});
    EXPECT_EQ(s.sample(logits), 1);
  }
}

TEST(Sampler, SameSeedSameTokensOtherSeedOthers) {
  std::vector<float> logits(100);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(static_cast<float>(i));
  const auto draw = [&](std::uint64_t seed) {
    Sampler s({.seed = seed});
    std::vector<std::int32_t> out;
    for (int i = 0; i < 50; ++i) out.push_back(s.sample(logits));
    return out;
  };
  EXPECT_EQ(draw(7), draw(7));
  EXPECT_NE(draw(7), draw(8));
}

std::map<std::int32_t, int> histogram(const SamplingParams& p, const std::vector<float>& logits) {
  Sampler s(p);
  std::map<std::int32_t, int> out;
  for (int i = 0; i < 20000; ++i) ++out[s.sample(logits)];
  return out;
}

// logits = ln(p): p = 0.5, 0.3, 0.15, 0.05
const std::vector<float> kKnown{std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  auto h = histogram({.seed = 1}, kKnown);
  EXPECT_NEAR(h[1], 10000, 350);
  EXPECT_NEAR(h[3], 6000, 350);
  EXPECT_NEAR(h[0], 3000, 300);
  EXPECT_NEAR(h[2], 1000, 200);
}

TEST(Sampler, TemperatureSharpens) {  // p^2: .25, .09, .0225, .0025 of .365
  auto h = histogram({.temperature = 0.5f, .seed = 2}, kKnown);
  EXPECT_NEAR(h[1], 20000 * 0.25 / 0.365, 350);
}

TEST(Sampler, TopKKeepsTheLargest) {
  auto h = histogram({.top_k = 2, .seed = 3}, kKnown);
  EXPECT_EQ(h.size(), 2u);
  EXPECT_NEAR(h[1], 20000 * 0.5 / 0.8, 350);
  EXPECT_EQ(histogram({.top_k = 1, .seed = 3}, kKnown)[1], 20000);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  EXPECT_EQ(histogram({.top_p = 0.4f, .seed = 4}, kKnown)[1], 20000);
  EXPECT_EQ(histogram({.top_p = 0.7f, .seed = 4}, kKnown).size(), 2u);
  EXPECT_EQ(histogram({.top_p = 0.9f, .seed = 4}, kKnown).size(), 3u);
}

TEST(Sampler, MinPIsRelativeToTheLargest) {
  EXPECT_EQ(histogram({.min_p = 0.5f, .seed = 5}, kKnown).size(), 2u);  // 0.25 of 1
  EXPECT_EQ(histogram({.min_p = 0.2f, .seed = 5}, kKnown).size(), 3u);
}

// The likeliest are found without sorting all: the same set as by sorting.
TEST(Sampler, TopPOverManyTokensIsExact) {
  std::vector<float> logits(5000);
  Rng rng(3);
  for (float& x : logits) x = static_cast<float>(3 * rng.uniform());
  std::vector<double> p;
  double sum = 0;
  for (const float x : logits) sum += p.emplace_back(std::exp(static_cast<double>(x)));
  std::sort(p.rbegin(), p.rend());
  double reached = 0;
  std::size_t keep = 0;
  while (reached < 0.7 * sum) reached += p[keep++];
  const double least = std::log(p[keep - 1]);
  Sampler s({.top_p = 0.7f, .seed = 9});
  for (int i = 0; i < 3000; ++i) {
    EXPECT_GE(logits[static_cast<std::size_t>(s.sample(logits))], least - 1e-5);
  }
}

TEST(Sampler, PenaltiesFollowWhatWasThere) {
  const std::vector<float> logits{1.0f, 1.9f, 0.5f};
  Sampler presence({.temperature = 0, .presence_penalty = 1});
  EXPECT_EQ(presence.sample(logits), 1);
  EXPECT_EQ(presence.sample(logits), 0);  // 1 against 0.9
  EXPECT_EQ(presence.sample(logits), 1);  // 0.9 against 0
  EXPECT_EQ(presence.sample(logits), 1);  // once, whatever the count
  Sampler frequency({.temperature = 0, .frequency_penalty = 0.5f});
  EXPECT_EQ(frequency.sample(logits), 1);
  EXPECT_EQ(frequency.sample(logits), 1);  // 1.4
  EXPECT_EQ(frequency.sample(logits), 0);  // 0.9
  const std::vector<std::int32_t> prompt{1};
  Sampler repetition({.temperature = 0, .repetition_penalty = 2}, prompt);
  EXPECT_EQ(repetition.sample(logits), 0);  // 0.95 against 1
  EXPECT_EQ(repetition.sample(logits), 1);  // 0.95 against 0.5
  const std::vector<float> negative{-1.0f, -1.5f};
  Sampler down({.temperature = 0, .repetition_penalty = 2}, std::vector<std::int32_t>{0});
  EXPECT_EQ(down.sample(negative), 1);  // -2 against -1.5
}

TEST(Sampler, BiasMovesALogit) {
  Sampler s({.temperature = 0}, {}, {{2, 5}, {1, -100}, {99, 3}});
  EXPECT_EQ(s.sample(std::vector<float>{0, 1, 0}), 2);
}

TEST(Sampler, LimitsLeaveOnlyWhatTheyAllow) {
  std::vector<float> logits(130, 1.0f);
  logits[3] = 9;
  logits[128] = kNan;
  const std::vector<std::uint64_t> mask{0, 2, 3};  // 65, 128, 129
  const std::vector<std::int32_t> banned{65};
  for (const float temperature : {0.0f, 1.0f}) {
    Sampler s({.temperature = temperature, .seed = 4});
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(s.sample(logits, {.mask = mask, .banned = banned}), 129);
      const std::int32_t id = s.sample(logits, {.mask = mask});
      EXPECT_TRUE(id == 65 || id == 129);
    }
    const std::vector<std::uint64_t> none(3, 0);
    EXPECT_EQ(s.sample(logits, {.mask = none}), -1);
  }
}

TEST(Sampler, OutOfRangeParametersAreNamed) {
  for (const SamplingParams& p :
       {SamplingParams{.temperature = -1}, SamplingParams{.temperature = kNan},
        SamplingParams{.top_p = 0}, SamplingParams{.top_p = 1.5f}, SamplingParams{.min_p = 1},
        SamplingParams{.min_p = -0.1f}, SamplingParams{.presence_penalty = 2.5f},
        SamplingParams{.frequency_penalty = kNan}, SamplingParams{.repetition_penalty = 0}}) {
    EXPECT_THROW(Sampler{p}, Error);
  }
  EXPECT_THROW(Sampler({}, {}, {{1, 101}}), Error);
}

}  // namespace
}  // namespace triax
