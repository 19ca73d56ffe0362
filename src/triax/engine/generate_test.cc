#include "triax/engine/generate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/test_model.h"

namespace triax {
namespace {

using test::Runner;
using test::TestModel;

const TestModel& tiny() {
  static const TestModel model(std::string(TRIAX_GOLDEN_DIR) + "/text/tiny-a");
  return model;
}

const std::vector<std::int32_t> kPrompt = test::random_ids(1, 21, 320);

GenerateResult run(const GenerateOptions& options, const GenerateCallbacks& callbacks = {},
                   Precision precision = Precision::f32) {
  Runner runner(precision);
  SequenceState state(tiny().config, precision);
  return generate(runner.ctx, tiny().model(), state, kPrompt, options, callbacks);
}

TEST(Generate, GreedyIsTheArgmaxOfEveryStep) {
  const GenerateResult got = run({.sampling = {.temperature = 0}, .max_tokens = 12});
  EXPECT_EQ(got.finish, Finish::length);
  ASSERT_EQ(got.ids.size(), 12u);
  Runner runner(Precision::f32);
  SequenceState state(tiny().config, Precision::f32);
  std::vector<float> logits = runner.run(tiny(), state, kPrompt, {kPrompt.size()});
  for (const std::int32_t id : got.ids) {
    EXPECT_EQ(id, argmax(std::span<const float>(logits).last(320)));
    logits = runner.run(tiny(), state, std::vector<std::int32_t>{id}, {1});
  }
}

TEST(Generate, ChunksOfThePromptDoNotChangeGreedyTokens) {
  const GenerateResult whole = run({.sampling = {.temperature = 0}, .max_tokens = 12});
  for (const std::size_t chunk : {1, 2, 7, 16, 20}) {
    EXPECT_EQ(run({.sampling = {.temperature = 0}, .max_tokens = 12, .chunk = chunk}).ids,
              whole.ids)
        << chunk;
  }
}

TEST(Generate, SameSeedSameTokensOtherSeedOthers) {
  const auto draw = [](std::uint64_t seed) {
    return run({.sampling = {.temperature = 1, .seed = seed}, .max_tokens = 30}).ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Generate, StopsBeforeAStopId) {
  const GenerateResult free = run({.sampling = {.temperature = 0}, .max_tokens = 12});
  const std::int32_t stop = free.ids[5];
  const GenerateResult got =
      run({.sampling = {.temperature = 0}, .max_tokens = 12, .stop_ids = {stop}});
  EXPECT_EQ(got.finish, Finish::stop);
  const auto first = std::find(free.ids.begin(), free.ids.end(), stop);
  EXPECT_EQ(got.ids, std::vector<std::int32_t>(free.ids.begin(), first));
}

TEST(Generate, ACallbackCanEndIt) {
  std::size_t seen = 0;
  const GenerateResult got =
      run({.sampling = {.temperature = 0}, .max_tokens = 12},
          {.on_prompt = {}, .on_token = [&](std::int32_t) { return ++seen < 4; }});
  EXPECT_EQ(got.finish, Finish::cancelled);
  EXPECT_EQ(got.ids.size(), 4u);
  const GenerateResult early =
      run({.max_tokens = 12, .chunk = 8}, {.on_prompt =
                                               [](std::size_t done, std::size_t total) {
                                                 EXPECT_EQ(total, kPrompt.size());
                                                 return done < 8;
                                               },
                                           .on_token = {}});
  EXPECT_EQ(early.finish, Finish::cancelled);
  EXPECT_TRUE(early.ids.empty());
}

TEST(Generate, ReportsThePromptAsItGoes) {
  std::vector<std::size_t> done;
  run({.max_tokens = 1, .chunk = 8}, {.on_prompt =
                                          [&](std::size_t d, std::size_t) {
                                            done.push_back(d);
                                            return true;
                                          },
                                      .on_token = {}});
  EXPECT_EQ(done, (std::vector<std::size_t>{8, 16, 21}));
}

TEST(Generate, RefusesAnEmptyPrompt) {
  Runner runner(Precision::f32);
  SequenceState state(tiny().config, Precision::f32);
  EXPECT_THROW(generate(runner.ctx, tiny().model(), state, {}, {}), Error);
}

}  // namespace
}  // namespace triax
