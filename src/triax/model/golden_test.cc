// The three golden checkpoints: every intermediate value against the float64 oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "support/golden.h"
#include "support/test_model.h"
#include "triax/kernels/kernels.h"
#include "triax/model/recorder.h"

namespace triax {
namespace {

using test::Runner;
using test::TestModel;

struct GoldenModel {
  std::string folder;
  TestModel model;
  test::Golden golden;
  nlohmann::json manifest;

  explicit GoldenModel(const std::string& variant)
      : folder(std::string(TRIAX_GOLDEN_DIR) + "/text/tiny-" + variant),
        model(folder),
        golden(folder + "/golden.safetensors"),
        manifest(nlohmann::json::parse(std::ifstream(folder + "/manifest.json"))) {}

  std::vector<std::int32_t> ids() const { return golden["input_ids"].i32; }
  std::size_t prompt() const { return manifest["prompt_tokens"].get<std::size_t>(); }
};

const GoldenModel& golden_model(const std::string& variant) {
  static std::map<std::string, std::unique_ptr<GoldenModel>> models;
  auto& slot = models[variant];
  if (!slot) slot = std::make_unique<GoldenModel>(variant);
  return *slot;
}

bool is_state(std::string_view name) {
  return name.ends_with("_after_prompt");
}

// Every recorded array against the manifest's tolerance; returns how many were compared.
std::size_t compare(const GoldenModel& g, const Recorder& recorder, bool states,
                    const std::string& what) {
  std::size_t compared = 0;
  for (const auto& [name, entry] : g.manifest["arrays"].items()) {
    if (name == "input_ids" || is_state(name) != states) continue;
    const auto it = recorder.arrays().find(name);
    if (it == recorder.arrays().end()) {
      ADD_FAILURE() << what << ": the pass reports no " << name;
      continue;
    }
    const test::GoldenArray& want = g.golden[name];
    EXPECT_EQ(it->second.shape, want.shape) << what << ": " << name;
    ++compared;
    if (want.dtype == "I32") {
      EXPECT_EQ(it->second.ids, want.i32) << what << ": " << name;
      continue;
    }
    const double tolerance = entry["tolerance"].get<double>();
    double worst = 0;
    if (it->second.values.size() != want.f32.size()) {
      ADD_FAILURE() << what << ": " << name << " has another size";
      continue;
    }
    for (std::size_t i = 0; i < want.f32.size(); ++i) {
      const double diff =
          std::fabs(static_cast<double>(it->second.values[i]) - static_cast<double>(want.f32[i]));
      worst = std::isnan(diff) ? INFINITY : std::max(worst, diff);
    }
    EXPECT_LE(worst, tolerance) << what << ": " << name;
  }
  return compared;
}

// Prompt in pieces, states compared after it, then the rest in pieces, then everything else
// compared.
void check_pieces(const GoldenModel& g, const std::vector<std::size_t>& prompt_pieces,
                  const std::vector<std::size_t>& rest_pieces, const std::string& what) {
  Recorder recorder;
  Runner runner(Precision::f32, 2, &recorder);
  SequenceState state(g.model.config, Precision::f32);
  const std::vector<std::int32_t> ids = g.ids();
  const std::span<const std::int32_t> all(ids);
  runner.run(g.model, state, all.first(g.prompt()), prompt_pieces);
  EXPECT_GT(compare(g, recorder, true, what), 0u);
  runner.run(g.model, state, all.subspan(g.prompt()), rest_pieces);
  EXPECT_GT(compare(g, recorder, false, what), 30u);
}

class Golden : public testing::TestWithParam<std::tuple<std::string, Isa>> {
 protected:
  void SetUp() override {
    before_ = kernels().isa;
    use_isa(std::get<1>(GetParam()));
  }
  void TearDown() override { use_isa(before_); }
  const GoldenModel& model() const { return golden_model(std::get<0>(GetParam())); }

 private:
  Isa before_ = Isa::scalar;
};

TEST_P(Golden, WholePromptThenTokens) {
  const GoldenModel& g = model();
  const std::size_t rest = g.ids().size() - g.prompt();
  check_pieces(g, {g.prompt()}, test::one_by_one(rest), "prompt, then tokens");
  check_pieces(g, {g.prompt()}, {rest}, "prompt, then the rest");
}

TEST_P(Golden, TokenByToken) {
  const GoldenModel& g = model();
  check_pieces(g, test::one_by_one(g.prompt()), test::one_by_one(g.ids().size() - g.prompt()),
               "token by token");
}

TEST_P(Golden, SplitAtEveryPosition) {
  const GoldenModel& g = model();
  const std::size_t rest = g.ids().size() - g.prompt();
  for (std::size_t k = 1; k < g.prompt(); ++k) {
    check_pieces(g, {k, g.prompt() - k}, {rest}, fmt::format("split at {}", k));
  }
}

TEST_P(Golden, WholeInOnePass) {
  const GoldenModel& g = model();
  Recorder recorder;
  Runner runner(Precision::f32, 2, &recorder);
  runner.run(g.model, g.ids(), {g.ids().size()});
  EXPECT_GT(compare(g, recorder, false, "whole"), 30u);
}

// BF16 activations: the same experts for every token, and the logits within a relative Frobenius
// error.
TEST_P(Golden, Bf16SameExpertsAndCloseLogits) {
  const GoldenModel& g = model();
  const double limit = std::get<0>(GetParam()) == "a" ? 0.04 : 0.025;
  const std::size_t n = g.ids().size();
  for (const auto& pieces : {std::vector<std::size_t>{n}, test::one_by_one(n)}) {
    Recorder recorder;
    Runner runner(Precision::bf16, 2, &recorder);
    runner.run(g.model, g.ids(), pieces);
    double error = 0, size = 0;
    for (const auto& [name, want] : g.golden.arrays()) {
      if (!name.ends_with("moe.ids")) continue;
      EXPECT_EQ(recorder.arrays().at(name).ids, want.i32) << name;
    }
    const std::vector<float>& got = recorder.arrays().at("logits").values;
    const std::vector<float>& want = g.golden["logits"].f32;
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double w = static_cast<double>(want[i]), d = static_cast<double>(got[i]) - w;
      error += d * d;
      size += w * w;
    }
    EXPECT_LE(std::sqrt(error / size), limit);
  }
}

INSTANTIATE_TEST_SUITE_P(Text, Golden,
                         testing::Combine(testing::Values("a", "b", "c"),
                                          testing::ValuesIn(test::available_isas())),
                         [](const auto& p) {
                           return fmt::format("tiny_{}_{}", std::get<0>(p.param),
                                              isa_name(std::get<1>(p.param)));
                         });

}  // namespace
}  // namespace triax
