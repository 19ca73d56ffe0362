#include "triax/sampling/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace triax {
namespace {

TEST(Logprobs, AreThoseOfTheSoftmax) {
  const std::vector<float> logits{std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};
  EXPECT_NEAR(logprob_of(logits, 1), std::log(0.5), 1e-6);
  EXPECT_NEAR(logprob_of(logits, 2), std::log(0.05), 1e-6);
  const auto top = top_logprobs(logits, 2);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[1].id, 3);
  EXPECT_NEAR(top[1].logprob, std::log(0.3), 1e-6);
}

TEST(Logprobs, LargeLogitsEqualOnesAndNaN) {
  const std::vector<float> logits{1000, std::numeric_limits<float>::quiet_NaN(), 1000, -1000};
  EXPECT_NEAR(logprob_of(logits, 0), std::log(0.5), 1e-6);
  const auto top = top_logprobs(logits, 10);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].id, 0);
  EXPECT_EQ(top[1].id, 2);
  EXPECT_TRUE(top_logprobs(logits, 0).empty());
}

}  // namespace
}  // namespace triax
