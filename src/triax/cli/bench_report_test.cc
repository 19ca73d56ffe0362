// Medians and fractions, on made-up runs.
#include "triax/cli/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace triax::cli {
namespace {

Sample sample(double seconds, std::size_t tokens, std::uint64_t bytes, std::uint64_t operations) {
  Sample out;
  out.passes.seconds = seconds;
  out.passes.tokens = tokens;
  Profile::Entry& e = out.passes.families[static_cast<std::size_t>(Family::lm_head)];
  e = {seconds, bytes, operations};
  out.state_bytes = 77;
  return out;
}

TEST(BenchReport, MedianOfOddAndEvenNumbers) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1, 4, 6}), 5);
}

TEST(BenchReport, FractionsAreAtTheMedianRate) {
  // 10, 20 and 40 tokens a second; 100 bytes and 600 operations a token.
  const BenchResult r{
      {false, 20, 16, 1},
      {sample(2, 20, 2000, 12000), sample(1, 20, 2000, 12000), sample(0.5, 20, 2000, 12000)}};
  EXPECT_DOUBLE_EQ(r.median_rate(), 20);
  EXPECT_DOUBLE_EQ(r.bytes_per_second(), 2000);
  EXPECT_DOUBLE_EQ(r.operations_per_second(), 12000);
  const MachineLimits limits{4000, {48000, "fma"}};
  const auto json = result_json(r, limits, true);
  EXPECT_EQ(json["name"], "tg20@16");
  EXPECT_DOUBLE_EQ(json["of_read_bandwidth"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(json["of_peak"].get<double>(), 0.25);
  EXPECT_DOUBLE_EQ(json["bytes_per_token"].get<double>(), 100);
  EXPECT_DOUBLE_EQ(json["explained"].get<double>(), 1);
  EXPECT_EQ(json["runs"].size(), 3u);
  EXPECT_EQ(json["state_bytes"], 77);
  EXPECT_EQ(json["profile"]["tokens"], 60);
  const std::string line = result_line(r, limits);
  EXPECT_THAT(line, testing::HasSubstr("50.0 %"));
  EXPECT_THAT(line, testing::HasSubstr("25.0 %"));
  EXPECT_THAT(line, testing::HasSubstr("10, 20, 40"));
}

TEST(BenchReport, WithoutLimitsThereAreNoFractions) {
  const BenchResult r{{true, 4, 0, 1}, {sample(1, 4, 8, 8)}};
  const auto json = result_json(r, {}, false);
  EXPECT_TRUE(json["of_peak"].is_null());
  EXPECT_TRUE(json["of_read_bandwidth"].is_null());
  EXPECT_FALSE(json.contains("profile"));
  EXPECT_TRUE(limits_json({}).is_null());
  EXPECT_THAT(result_line(r, {}), testing::Not(testing::HasSubstr("%")));
}

}  // namespace
}  // namespace triax::cli
