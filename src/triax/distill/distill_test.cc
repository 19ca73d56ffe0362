// Distillations of a tiny model: configurations, prompts, scores, and a whole run that brings a
// student to its teachers, stops and goes on bit for bit, the same for any number of threads.
#include "triax/distill/distill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/compare.h"
#include "support/model_folder.h"
#include "triax/train/run.h"
#include "triax/world/corpus.h"

namespace triax::distill {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::HasSubstr;

struct Threads {
  ThreadPool pool;
  Arena arena;
  Context ctx{pool, arena, Precision::bf16, nullptr};
  explicit Threads(std::size_t n) : pool(n) {}
};

// A folder with a model that has seen a little of the small world.
const fs::path& base_model() {
  static const test::TempFolder folder;
  static const fs::path model = [] {
    std::string text;
    for (std::uint64_t i = 0; i < 120; ++i) {
      text += world::make_document("arithmetic", 1, world::Part::train, i).document.dump() + "\n";
    }
    test::write_text(folder / "sums.jsonl", text);
    const train::TrainConfig config = train::parse_train_config(R"(
precision = "f32"
tokenizer = {vocabulary = 600}
model = {shape = "nano", hidden_size = 32, num_hidden_layers = 4, intermediate_size = 32, num_experts = 4, moe_intermediate_size = 32, attn_res_block_size = 2}
data = [{files = ["sums.jsonl"]}]
stage = [{tokens = 12000, context = 1000, batch_tokens = 600}]
optimizer = {peak_rate = 1e-2}
qat = {from = 0}
)",
                                                                false, "base", folder.path());
    Threads t(2);
    train::TrainRun(t.ctx, config, {folder / "run", false, 0}, {}).run();
    return folder / "run" / "model";
  }();
  return model;
}

DistillConfig tiny_config(const std::string& more = "") {
  return parse_distill_config(fmt::format(R"(
model = "{}"
checkpoint_steps = 2
[[domain]]
name = "sums"
kinds = ["arithmetic"]
suite = "sums"
items = 3
[teacher]
tokens = 3000
context = 1000
batch_tokens = 1000
rate = 1e-2
[student]
steps = 4
samples = 6
max_tokens = 24
context = 400
rate = 2e-3
[evaluation]
prompts = 4
{})",
                                          base_model().string(), more),
                              false, "test.toml", ".");
}

std::string wrong(const std::string& text) {
  return error_of([&] { parse_distill_config(text, false, "test.toml", "."); });
}

TEST(DistillConfig, ErrorsNameTheKey) {
  const std::string domain = "[[domain]]\nname = \"a\"\nkinds = [\"arithmetic\"]\n";
  EXPECT_THAT(wrong(domain), HasSubstr("model is missing"));
  EXPECT_THAT(wrong("model = \"m\""), HasSubstr("domain is missing"));
  EXPECT_THAT(wrong("model = \"m\"\n" + domain + domain), HasSubstr("domain[1].name"));
  EXPECT_THAT(wrong("model = \"m\"\n[[domain]]\nname = \"a\"\nkinds = [\"prose\"]"),
              HasSubstr("domain[0].kinds has \"prose\""));
  EXPECT_THAT(wrong("model = \"m\"\n[[domain]]\nname = \"a/b\"\nkinds = [\"tools\"]"),
              HasSubstr("domain[0].name"));
  EXPECT_THAT(wrong("model = \"m\"\n" + domain + "[student]\nstep = 3"),
              HasSubstr("student.step: there is no such key"));
  EXPECT_THAT(wrong("model = \"m\"\n" + domain + "[student]\nreward_limit = 0"),
              HasSubstr("student.reward_limit is 0"));
  EXPECT_THAT(wrong("model = \"m\"\n" + domain + "[student]\nmax_tokens = 4000"),
              HasSubstr("student.micro_batch_tokens"));
  EXPECT_THAT(wrong("model = \"m\"\n" + domain + "suite = \"story\""),
              HasSubstr("domain[0].suite is \"story\""));
}

TEST(DistillConfig, ResolvedReadsToTheSame) {
  const DistillConfig config = tiny_config();
  const DistillConfig again =
      parse_distill_config(resolved_text(config), true, "resolved", "/elsewhere");
  EXPECT_EQ(resolved_text(again), resolved_text(config));
  EXPECT_EQ(first_difference(config, again), "");
  DistillConfig other = config;
  other.student.rate *= 2;
  EXPECT_EQ(first_difference(config, other), "student");
}

TEST(Prompts, AreOfTheirDomainAndEffortAndFollowFromTheirNumber) {
  const DistillConfig config = tiny_config();
  const Tokenizer tokenizer = Tokenizer::load(base_model());
  for (std::size_t t = 0; t < config.teachers(); ++t) {
    const Prompt a = make_prompt(config, tokenizer, t, "student", 5);
    EXPECT_EQ(a.ids, make_prompt(config, tokenizer, t, "student", 5).ids);
    EXPECT_NE(a.ids, make_prompt(config, tokenizer, t, "student", 6).ids);
    EXPECT_NE(a.ids, make_prompt(config, tokenizer, t, "evaluation", 5).ids);
    const std::string effort = world::effort_name(DistillConfig::effort(t));
    EXPECT_THAT(tokenizer.decode(a.ids), HasSubstr(effort));
    const std::string documents = teacher_documents(config, t, 500);
    std::istringstream lines(documents);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(nlohmann::json::parse(line)["thinking_effort"], effort);
    }
  }
}

TEST(AddSample, MakesSampledTokensTargetsWithTheirRewards) {
  train::PackedBatch batch;
  const std::vector<std::int32_t> sample{7, 8, 9};
  const std::vector<float> rewards{0.5f, -1, 2};
  add_sample({0, {1, 2}}, sample, rewards, batch);
  EXPECT_THAT(batch.ids, testing::ElementsAre(1, 2, 7, 8));
  EXPECT_THAT(batch.targets, testing::ElementsAre(ops::kNoTarget, 7, 8, 9));
  EXPECT_THAT(batch.weights, testing::ElementsAre(0, 0.5f, -1, 2));
  EXPECT_EQ(batch.counted, 3u);
  EXPECT_EQ(batch.documents.back().rows, 4u);
}

TEST(Compare, OfAModelWithItselfIsNothingAndRewardsAreClipped) {
  const DistillConfig config = tiny_config();
  const Tokenizer tokenizer = Tokenizer::load(base_model());
  const OpenModel model(base_model());
  Threads t(2);
  std::vector<Prompt> prompts;
  for (std::size_t i = 0; i < 3; ++i) prompts.push_back(make_prompt(config, tokenizer, 0, "x", i));
  RolloutOptions options;
  options.max_tokens = 10;
  const auto samples = rollout(t.pool, model, tokenizer, prompts, options);
  ASSERT_EQ(samples.size(), 3u);
  std::vector<const Prompt*> p;
  std::vector<const std::vector<std::int32_t>*> s;
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_FALSE(samples[i].empty());
    p.push_back(&prompts[i]);
    s.push_back(&samples[i]);
  }
  const auto scores = compare(t.ctx, model, model, p, s);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(scores[i].size(), samples[i].size());
    for (const TokenScore& score : scores[i]) {
      EXPECT_EQ(score.divergence, 0);
      EXPECT_EQ(score.student, score.teacher);
      EXPECT_LE(score.student, 0);
    }
  }
  EXPECT_EQ(reward({-1, -9, 0}, 5), -5);
  EXPECT_EQ(reward({-9, -1, 0}, 5), 5);
  EXPECT_EQ(reward({-2, -1, 0}, 5), 1);
}

// Runs into `out` until `steps` steps are done; the student's weights.
std::vector<float> distilled(const DistillConfig& config, const fs::path& out, std::size_t threads,
                             std::size_t steps, DistillResult* result = nullptr) {
  Threads t(threads);
  std::size_t taken = 0;
  DistillEvents events;
  events.step = [&](const DistillStep& s) { taken = s.step; };
  events.stop = [&] { return taken >= steps; };
  Distillation run(t.ctx, config, out, events);
  const bool done = run.run();
  EXPECT_EQ(done, taken < steps);
  if (result != nullptr) *result = run.result();
  const auto all = run.student().masters().all();
  return {all.begin(), all.end()};
}

TEST(Distillation, BringsTheStudentToItsTeachersAndGoesOnBitForBit) {
  const test::TempFolder folder;
  const DistillConfig config = tiny_config();
  DistillResult result;
  const auto whole = distilled(config, folder / "a", 2, 100, &result);
  EXPECT_EQ(result.steps, 4u);
  EXPECT_LT(result.after().mean(), result.before().mean());
  EXPECT_EQ(result.total(&TeacherResult::student).items, 9u);
  const auto json = nlohmann::json::parse(test::read_text(folder / "a" / "distill.json"));
  EXPECT_EQ(json["teachers"].size(), 3u);
  EXPECT_THAT(test::read_text(folder / "a" / "report.html"), HasSubstr("sums-max"));
  EXPECT_TRUE(fs::exists(folder / "a" / "model" / "tiktoken.model"));

  distilled(config, folder / "b", 1, 3);  // a checkpoint when it was stopped
  const auto resumed = distilled(config, folder / "b", 3, 100);
  EXPECT_TRUE(test::same_bits(resumed, whole));

  DistillConfig other = config;
  other.seed = 9;
  EXPECT_THAT(error_of([&] { distilled(other, folder / "b", 1, 1); }),
              HasSubstr("seed is not as it was"));
}

}  // namespace
}  // namespace triax::distill
