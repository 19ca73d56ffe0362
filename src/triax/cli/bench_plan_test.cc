// Names of measurements.
#include "triax/cli/bench_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace triax::cli {
namespace {

std::vector<std::string> names(const BenchCommand& c) {
  std::vector<std::string> out;
  for (const Measurement& m : plan_measurements(c)) out.push_back(m.name());
  return out;
}

TEST(BenchPlan, NamesReadBackAsTheyWereWritten) {
  EXPECT_EQ(parse_measurement("pp512"), (Measurement{true, 512, 0, 1}));
  EXPECT_EQ(parse_measurement("tg128@16"), (Measurement{false, 128, 16, 1}));
  EXPECT_EQ(parse_measurement("tg64@2048x8"), (Measurement{false, 64, 2048, 8}));
  EXPECT_EQ(parse_measurement("tg64@2048x8").all_tokens(), 512u);
  for (const char* name : {"pp1", "tg1@1", "tg64@16x4"}) {
    EXPECT_EQ(parse_measurement(name).name(), name);
  }
}

TEST(BenchPlan, OtherNamesAreWrongUse) {
  for (const char* name :
       {"", "pp", "pp0", "pp-1", "pp12k", "tg", "tg5", "tg5@", "tg@5", "tg5@0", "tg5@6x", "tg5@6x0",
        "tgx", "tg5x2@6", "512", "pp99999999999999999999"}) {
    EXPECT_THROW(parse_measurement(name), UsageError) << name;
  }
}

TEST(BenchPlan, DefaultsListsAndOnly) {
  BenchCommand c;
  EXPECT_THAT(names(c), testing::ElementsAre("pp512", "pp2048", "tg128@16", "tg64@2048",
                                             "tg64@16x4", "tg64@16x8"));
  c.prompt = "7";
  c.decode = "";
  c.sequences = "2,";
  EXPECT_THAT(names(c), testing::ElementsAre("pp7", "tg64@16x2"));
  c.only = "tg3@4,pp9";
  EXPECT_THAT(names(c), testing::ElementsAre("tg3@4", "pp9"));
  BenchCommand nothing;
  nothing.prompt = nothing.decode = nothing.sequences = "";
  EXPECT_THROW(plan_measurements(nothing), UsageError);
  for (std::string BenchCommand::* list :
       {&BenchCommand::prompt, &BenchCommand::decode, &BenchCommand::sequences}) {
    BenchCommand bad;
    bad.*list = "128@x";
    EXPECT_THROW(plan_measurements(bad), UsageError);
  }
}

}  // namespace
}  // namespace triax::cli
