// The suite's runner on a random model: company in a pass changes nothing; loads are counted.
#include "triax/cli/suite_run.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "triax/tokenizer/tokenizer_writer.h"
#include "triax/weights/synth.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;

class SuiteRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder() = fs::path(::testing::TempDir()) / "triax_suite_run";
    fs::remove_all(folder());
    SynthOptions synth;
    synth.config = std::string(TRIAX_SOURCE_DIR) + "/tests/cases/case-A.json";
    synth.threads = 1;
    synthesize(synth, folder());
    write_byte_tokenizer(folder(), 512);
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }
  static fs::path& folder() {
    static fs::path path;
    return path;
  }
  static Common options() {
    Common common;
    common.model = folder().string();
    common.threads = 2;
    return common;
  }
  static std::vector<world::SuiteItem> items() {
    world::SuiteOptions suite;
    suite.stories = 2;
    suite.sums = 3;
    suite.tools = 3;
    return world::make_suite(suite);
  }
};

TEST_F(SuiteRun, CompanyInAPassChangesNothing) {
  Session session(options(), Precision::bf16);
  LoadProbe probe;
  session.ctx.probe = &probe;
  const auto suite = items();
  std::size_t calls = 0;
  const auto count = [&](std::size_t) { return ++calls > 0; };
  const SuiteRunResult alone =
      run_suite(session, suite, {.batch = 1, .max_tokens = 12, .chunk = 100}, count);
  const SuiteRunResult together =
      run_suite(session, suite, {.batch = 5, .max_tokens = 12, .chunk = 100}, count);
  EXPECT_EQ(calls, 2 * suite.size());
  EXPECT_EQ(alone.generated_tokens, together.generated_tokens);
  EXPECT_EQ(alone.prompt_tokens, together.prompt_tokens);
  for (std::size_t i = 0; i < suite.size(); ++i) {
    EXPECT_EQ(alone.answers[i].thinking, together.answers[i].thinking);
    EXPECT_EQ(alone.answers[i].content, together.answers[i].content);
    EXPECT_EQ(alone.answers[i].calls, together.answers[i].calls);
  }
  const LoadProbe::Load load = probe.load(session.config().num_experts);
  EXPECT_EQ(load.layers, 8u);
  EXPECT_GE(load.max_over_mean, 1.0);
}

TEST_F(SuiteRun, StopsWhenTold) {
  Session session(options(), Precision::bf16);
  const auto suite = items();
  const SuiteRunResult result =
      run_suite(session, suite, {.batch = 1, .max_tokens = 4, .chunk = 256},
                [](std::size_t) { return false; });
  EXPECT_LE(result.generated_tokens, 4u);
}

TEST(LoadProbe, CountsDeadExpertsAndTheWorstLayer) {
  LoadProbe probe;
  const std::array<std::size_t, 2> shape = {2, 2};
  const std::array<std::int32_t, 4> even = {0, 1, 2, 3}, uneven = {0, 1, 0, 1};
  probe.ids("layer1.moe.ids", shape, even.data());
  probe.ids("layer2.moe.ids", shape, uneven.data());
  probe.ids("layer2.other", shape, uneven.data());
  const LoadProbe::Load load = probe.load(4);
  EXPECT_EQ(load.layers, 2u);
  EXPECT_EQ(load.dead, 2u);
  EXPECT_DOUBLE_EQ(load.max_over_mean, 2.0);
}

}  // namespace
}  // namespace triax::cli
