#include "triax/sampling/sampler.h"

#include <gtest/gtest.h>

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

TEST(Sampler, OutOfRangeParametersAreNamed) {
  for (const SamplingParams& p :
       {SamplingParams{.temperature = -1}, SamplingParams{.temperature = kNan},
        SamplingParams{.top_p = 0}, SamplingParams{.top_p = 1.5f}, SamplingParams{.min_p = 1},
        SamplingParams{.min_p = -0.1f}}) {
    EXPECT_THROW(Sampler{p}, Error);
  }
}

}  // namespace
}  // namespace triax
