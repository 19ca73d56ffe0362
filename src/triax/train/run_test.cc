// Whole trainings of a tiny model: it learns, stops and goes on bit for bit, is the same for any
// number of threads, exports what it computes with, and keeps half-written checkpoints away.
#include "triax/train/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/compare.h"
#include "support/model_folder.h"
#include "triax/checkpoint/checkpoint.h"
#include "triax/core/rng.h"
#include "triax/train/evaluate.h"
#include "triax/train/qat.h"

namespace triax::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::HasSubstr;

// Sentences of a small grammar.
std::string story(std::uint64_t seed) {
  const char* who[] = {"Anna", "Ben", "the cat", "a bird"};
  const char* did[] = {"took", "found", "lost", "gave away"};
  const char* what[] = {"the ball", "a book", "the red box", "some bread"};
  std::string out;
  for (std::uint64_t i = 0; i < 6; ++i) {
    out += fmt::format("{} {} {}. ", who[splitmix64_at(seed, 3 * i) % 4],
                       did[splitmix64_at(seed, 3 * i + 1) % 4],
                       what[splitmix64_at(seed, 3 * i + 2) % 4]);
  }
  return out;
}

struct Folder {
  test::TempFolder folder;
  Folder() {
    std::string text, held_out, chat;
    for (std::uint64_t d = 0; d < 60; ++d) text += story(d) + "\n\n";
    for (std::uint64_t d = 100; d < 130; ++d) held_out += story(d) + "\n\n";
    for (std::uint64_t d = 0; d < 20; ++d) {
      chat += fmt::format(R"({{"messages": [{{"role": "user", "content": "tell {}"}},)"
                          R"({{"role": "assistant", "content": "{}"}}]}})",
                          d, story(d)) +
              "\n";
    }
    test::write_text(folder / "stories.txt", text);
    test::write_text(folder / "held.txt", held_out);
    test::write_text(folder / "chat.jsonl", chat);
  }
  TrainConfig config(const std::string& more = "") const {
    return parse_train_config(R"(
precision = "f32"
tokenizer = {vocabulary = 600}
model = {shape = "nano", hidden_size = 32, num_hidden_layers = 4, intermediate_size = 32, num_experts = 4, moe_intermediate_size = 32, attn_res_block_size = 2}
evaluation = {every_steps = 2, tokens = 300}
checkpoint = {every_steps = 2, every_minutes = 0, keep = 2}
[[data]]
name = "stories"
files = ["stories.txt"]
split = "blank_lines"
weight = 3
[[data]]
name = "chat"
files = ["chat.jsonl"]
longer = "cut"
[[held_out]]
name = "held"
files = ["held.txt"]
split = "blank_lines"
[[stage]]
tokens = 500
context = 24
batch_tokens = 160
micro_batch_tokens = 64
[[stage]]
tokens = 500
context = 48
batch_tokens = 160
micro_batch_tokens = 96
[optimizer]
peak_rate = 1e-2
[qat]
from = 0.5
)" + more,
                              false, "test.toml", folder.path());
  }
};

struct Threads {
  ThreadPool pool;
  Arena arena;
  Context ctx{pool, arena, Precision::f32, nullptr};
  explicit Threads(std::size_t n) : pool(n) {}
};

// The file's lines without what depends on the clock.
std::vector<std::string> metrics(const fs::path& out) {
  std::vector<std::string> lines;
  std::istringstream text(test::read_text(out / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    auto value = nlohmann::ordered_json::parse(line);
    value.erase("seconds");
    value.erase("gflops");
    lines.push_back(value.dump());
  }
  return lines;
}

std::vector<float> weights_of(TrainRun& run) {
  const auto all = run.trainer().masters().all();
  return {all.begin(), all.end()};
}

std::vector<float> train(const TrainConfig& config, const fs::path& out, std::size_t threads,
                         RunOptions options = {}) {
  Threads t(threads);
  options.out = out;
  TrainRun run(t.ctx, config, options, {});
  run.run();
  return weights_of(run);
}

TEST(TrainRun, LearnsASmallText) {
  const Folder f;
  TrainConfig config = f.config();
  scale_tokens(config, 16000);
  config.evaluation.every_steps = config.checkpoint.every_steps = 40;
  Threads t(2);
  std::vector<StepRecord> steps;
  EvaluationRecord last;
  RunEvents events;
  events.step = [&](const StepRecord& r, const Trainer&) { steps.push_back(r); };
  events.evaluated = [&](const EvaluationRecord& r) { last = r; };
  TrainRun run(t.ctx, config, {f.folder / "out", false, 0}, events);
  EXPECT_TRUE(run.run());
  EXPECT_NEAR(steps[0].loss, std::log(600), 0.05 * std::log(600));
  EXPECT_LT(steps.back().loss, 2.5);
  EXPECT_EQ(steps.front().stage, 0u);
  EXPECT_EQ(steps.back().stage, 1u);
  EXPECT_FALSE(steps.front().qat);
  EXPECT_TRUE(steps.back().qat);
  EXPECT_GE(steps.back().tokens, 16000u);
  EXPECT_EQ(steps.back().source_tokens[0] + steps.back().source_tokens[1], steps.back().tokens);
  EXPECT_NEAR(static_cast<double>(steps.back().source_tokens[0]),
              0.75 * static_cast<double>(steps.back().tokens), 100);
  EXPECT_TRUE(last.exported);
  EXPECT_LT(last.held_out.at(0).loss, 2.5);
  EXPECT_EQ(last.by_position.back().end, 96u);  // twice the last context
  EXPECT_EQ(last.by_distance.back().begin, 80u);
  ASSERT_FALSE(last.depth.empty());
  EXPECT_EQ(last.depth.back().name, "output");
  for (const DepthSite& site : last.depth) {
    double sum = 0;
    for (const double w : site.weights) sum += w;
    EXPECT_NEAR(sum, 1, 1e-9) << site.name;
  }
  const std::string report = test::read_text(f.folder / "out/report.html");
  for (const char* part : {"<h2>Loss</h2>", "Load per expert", "Depth weights",
                           "Gradient norms per head", "Recall by distance", "held out: held"}) {
    EXPECT_THAT(report, HasSubstr(part));
  }
  EXPECT_THAT(report, testing::Not(HasSubstr("http")));
}

TEST(TrainRun, GoesOnBitForBit) {
  const Folder f;
  const TrainConfig config = f.config();
  const std::vector<float> want = train(config, f.folder / "whole", 2);
  RunOptions three;
  three.stop_after = 3;
  train(config, f.folder / "cut", 2, three);
  RunOptions resume;
  resume.resume = true;
  const std::vector<float> got = train(config, f.folder / "cut", 1, resume);
  EXPECT_TRUE(test::same_bits(got, want));
  EXPECT_EQ(metrics(f.folder / "cut"), metrics(f.folder / "whole"));
  EXPECT_GE(metrics(f.folder / "cut").size(), 6u);
}

// What a killed program leaves: a checkpoint being written, metrics beyond the last whole one.
TEST(TrainRun, HalfWrittenCheckpointsAreNotPickedUp) {
  const Folder f;
  const TrainConfig config = f.config();
  const std::vector<float> want = train(config, f.folder / "whole", 2);
  const fs::path cut = f.folder / "cut";
  RunOptions five;
  five.stop_after = 5;
  train(config, cut, 2, five);
  // back to step 4, with step 5 half-written in every way
  fs::remove(cut / "checkpoints/step-00000005/state.json");
  fs::create_directories(cut / "checkpoints/partial");
  test::write_text(cut / "checkpoints/partial/state.json", "{");
  fs::create_directories(cut / "model.partial");
  test::write_text(cut / "metrics.jsonl", test::read_text(cut / "metrics.jsonl") + "{\"step\": 6");
  EXPECT_EQ(latest_train_checkpoint(cut / "checkpoints")->filename(), "step-00000004");
  RunOptions resume;
  resume.resume = true;
  EXPECT_TRUE(test::same_bits(train(config, cut, 2, resume), want));
  EXPECT_EQ(metrics(cut), metrics(f.folder / "whole"));
}

TEST(TrainRun, IsTheSameForAnyNumberOfThreads) {
  const Folder f;
  const TrainConfig config = f.config();
  EXPECT_TRUE(
      test::same_bits(train(config, f.folder / "one", 1), train(config, f.folder / "two", 2)));
  EXPECT_EQ(metrics(f.folder / "one"), metrics(f.folder / "two"));
}

TEST(TrainRun, ExportsWhatItComputesWith) {
  const Folder f;
  Threads t(2);
  TrainRun run(t.ctx, f.config(), {f.folder / "out", false, 0}, {});
  run.run();
  const fs::path model = f.folder / "out/model";
  const K3Config config = K3Config::load(model);
  const ParameterLayout layout(config);
  Parameters<float> read(layout);
  load_parameters(*Checkpoint::open(model), read);
  EXPECT_TRUE(test::same_bits(read.all(), run.trainer().exported_weights().all()));

  // the next QAT pass, and logits of the exported model
  const DocumentSet& set = run.sources()[0];
  const std::size_t rows = set.begin[1] - 1;
  PackedBatch batch;
  batch.add({set.ids.data(), set.learn.data(), rows, 0});
  std::vector<float> a(rows * config.vocab_size), b(a.size());
  ASSERT_TRUE(run.trainer().qat());
  loss_only<float>(t.ctx, run.trainer().pass_weights(), batch.view(), {},
                   Mat<float>(a.data(), {rows, config.vocab_size}));
  loss_only<float>(t.ctx, read, batch.view(), {}, Mat<float>(b.data(), {rows, config.vocab_size}));
  EXPECT_TRUE(test::same_bits(a, b));
  EXPECT_TRUE(fs::exists(model / "tiktoken.model"));
  EXPECT_TRUE(fs::exists(model / "tokenizer_config.json"));
}

TEST(TrainRun, BeginsWithAnExportedModel) {
  const Folder f;
  train(f.config(), f.folder / "first", 2);
  TrainConfig config = f.config();
  config.init_from = f.folder / "first/model";
  config.tokenizer.vocabulary = 0;
  Threads t(2);
  std::vector<double> losses;
  RunEvents events;
  events.step = [&](const StepRecord& r, const Trainer&) { losses.push_back(r.loss); };
  TrainRun run(t.ctx, config, {f.folder / "second", false, 1}, events);
  Parameters<float> read(run.layout());
  load_parameters(*Checkpoint::open(config.init_from), read);
  EXPECT_TRUE(test::same_bits(read.all(), run.trainer().masters().all()));
  run.run();
  EXPECT_LT(losses[0], 6.0) << "it had learned something";
  config.shape_changes = R"({"hidden_size": 64})";
  EXPECT_THAT(error_of([&] { TrainRun(t.ctx, config, {f.folder / "third", false, 1}, {}); }),
              HasSubstr("another shape than [model] says, first at model.embed_tokens.weight"));
}

TEST(TrainRun, RefusesWhatWouldMixTrainings) {
  const Folder f;
  const fs::path out = f.folder / "out";
  RunOptions two;
  two.stop_after = 2;
  train(f.config(), out, 2, two);
  EXPECT_THAT(error_of([&] { train(f.config(), out, 2); }), HasSubstr("--resume goes on"));
  RunOptions resume;
  resume.resume = true;
  TrainConfig other = f.config();
  other.peak_rate = 1e-3;
  EXPECT_THAT(error_of([&] { train(other, out, 2, resume); }),
              HasSubstr("optimizer is not as it was"));
  test::write_text(f.folder / "stories.txt", test::read_text(f.folder / "held.txt"));
  EXPECT_THAT(error_of([&] { train(f.config(), out, 2, resume); }),
              HasSubstr("the files of data source \"stories\" changed"));
  EXPECT_THAT(error_of([&] { train(f.config(), f.folder / "none", 2, resume); }),
              HasSubstr("there is no training to resume"));
}

TEST(TrainRun, AWeightThatIsNotFiniteIsNamed) {
  const Folder f;
  Threads t(2);
  TrainRun run(t.ctx, f.config(), {f.folder / "out", false, 0}, {});
  const auto& tensor = run.layout().of(&run.layout().names().layers[1].kda.o_proj);
  run.trainer().masters()[tensor][3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(error_of([&] { run.run(); }), HasSubstr("weight " + tensor.name));
  EXPECT_EQ(latest_train_checkpoint(f.folder / "out/checkpoints"), std::nullopt);
}

}  // namespace
}  // namespace triax::train
