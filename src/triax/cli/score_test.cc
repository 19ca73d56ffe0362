// Losses and distances by hand.
#include "triax/cli/score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace triax::cli {
namespace {

TEST(Score, LossOfKnownProbabilities) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.25f), std::log(0.25f)};
  EXPECT_NEAR(log_sum_exp(logits), 0, 1e-7);
  EXPECT_NEAR(token_loss(logits, 0), std::log(2.0), 1e-7);
  EXPECT_NEAR(token_loss(logits, 2), std::log(4.0), 1e-7);
  const std::vector<float> shifted{1000, 1000};
  EXPECT_NEAR(token_loss(shifted, 1), std::log(2.0), 1e-9) << "no overflow";
}

TEST(Score, KullbackLeibler) {
  const std::vector<float> p{std::log(0.5f), std::log(0.5f)};
  const std::vector<float> q{std::log(0.9f), std::log(0.1f)};
  EXPECT_NEAR(kl_divergence(p, q), 0.5 * std::log(0.5 / 0.9) + 0.5 * std::log(0.5 / 0.1), 1e-7);
  EXPECT_EQ(kl_divergence(p, p), 0);
  EXPECT_GE(kl_divergence(q, p), 0);
  const std::vector<float> broken{std::numeric_limits<float>::quiet_NaN(), 0};
  EXPECT_TRUE(std::isnan(kl_divergence(broken, p))) << "a NaN is not hidden";
}

TEST(Score, Quantile) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(quantile(values, 0.99), 99);
  EXPECT_EQ(quantile(values, 0.5), 50);
  EXPECT_EQ(quantile(values, 1.0), 100);
  EXPECT_EQ(quantile({3}, 0.99), 3);
  EXPECT_EQ(quantile({}, 0.99), 0);
}

}  // namespace
}  // namespace triax::cli
