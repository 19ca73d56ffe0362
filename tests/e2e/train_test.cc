// `triax train` as a user runs it: plan, training, kill, resume, export, logits, generation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <thread>

#include "e2e/program.h"
#include "support/model_folder.h"
#include "triax/checkpoint/npy.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::run;
using testing::HasSubstr;

// A text and a configuration of a model that trains in a second.
fs::path made(const std::string& name) {
  const fs::path folder = test::scratch() / name;
  fs::create_directories(folder);
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 300; ++i) {
    text << "Anna has " << i % 7 << " balls and " << i % 5 << " books. She gives one to Ben.\n\n";
  }
  std::ofstream(folder / "config.toml") << R"(
tokenizer = {vocabulary = 560}
model = {shape = "nano", num_hidden_layers = 4, hidden_size = 32}
optimizer = {peak_rate = 1e-2}
checkpoint = {every_steps = 5, every_minutes = 0}
evaluation = {every_steps = 10, tokens = 500}
data = [{files = ["text.txt"], split = "blank_lines"}]
held_out = [{name = "held", files = ["text.txt"], split = "blank_lines"}]
stage = [{tokens = 20000, context = 32, batch_tokens = 500, micro_batch_tokens = 250}]
)";
  return folder;
}

std::vector<std::string> train(const fs::path& folder, const std::string& out,
                               const std::vector<std::string>& more = {}) {
  std::vector<std::string> args{"train", (folder / "config.toml").string(), "--out",
                                (folder / out).string()};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::size_t lines_of(const fs::path& file) {
  const std::string text = test::read_text(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The same shards, byte for byte.
void expect_same_model(const fs::path& a, const fs::path& b) {
  for (const auto& entry : fs::directory_iterator(a)) {
    const fs::path name = entry.path().filename();
    EXPECT_EQ(test::read_text(entry.path()), test::read_text(b / name)) << name;
  }
}

TEST(Train, PlanSaysWhatItWouldBe) {
  const fs::path folder = made("train-plan");
  const Outcome json = run({"train", (folder / "config.toml").string(), "--plan", "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const auto plan = json.json();
  EXPECT_GT(plan["active_parameters"], 0);
  EXPECT_LT(plan["active_parameters"], plan["parameters"]);
  EXPECT_EQ(plan["flop_per_token"], 6 * plan["active_parameters"].get<std::uint64_t>());
  EXPECT_GT(plan["memory_bytes"]["activations"], 0);
  EXPECT_GT(plan["expected"]["seconds"], 0.0);
  std::uint64_t parameters = 0;
  for (const auto& tensor : plan["tensors"])
    parameters += tensor["parameters"].get<std::uint64_t>();
  EXPECT_NEAR(static_cast<double>(parameters), plan["parameters"].get<double>(), 200);
  const Outcome text = run({"train", (folder / "config.toml").string(), "--plan"});
  EXPECT_THAT(text.out, HasSubstr("N_active"));
  EXPECT_THAT(text.out, HasSubstr("Muon, 2 heads of 32 x 32"));
  EXPECT_THAT(text.out, HasSubstr("AdamW"));
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(Train, AKilledTrainingGoesOnAsIfNothingHadBeen) {
  const fs::path folder = made("train-kill");
  const Outcome whole = run(train(folder, "whole", {"--json"}));
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_TRUE(whole.json()["done"]);
  EXPECT_LT(whole.json()["held_out"]["held"], 6.0);
  EXPECT_THAT(whole.err, HasSubstr("tokens/s"));

  const fs::path cut = folder / "cut";
  const pid_t child = ::fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    const std::string config = (folder / "config.toml").string();
    ::execl(TRIAX_BINARY, TRIAX_BINARY, "train", config.c_str(), "--out", cut.c_str(), "--threads",
            "1", nullptr);
    ::_exit(127);
  }
  while (!fs::exists(cut / "metrics.jsonl") || lines_of(cut / "metrics.jsonl") < 8) {
    ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "it ended by itself";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_LT(lines_of(cut / "metrics.jsonl"), lines_of(folder / "whole/metrics.jsonl"));
  const Outcome resumed = run({"train", "--resume", "--out", cut.string()});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("goes on from"));
  expect_same_model(folder / "whole/model", cut / "model");
  EXPECT_EQ(lines_of(cut / "metrics.jsonl"), lines_of(folder / "whole/metrics.jsonl"));
}

TEST(Train, TheExportedModelRunsAndItsLogitsAreTrainings) {
  const fs::path folder = made("train-export");
  ASSERT_EQ(run(train(folder, "out", {"--tokens", "3000"})).code, 0);
  const std::string model = (folder / "out/model").string();
  const Outcome text = run({"run", "-m", model, "--raw", "Anna has", "-n", "8", "--temp", "0"});
  EXPECT_EQ(text.code, 0) << text.err;
  const std::string ids = (folder / "ids").string(), npy = (folder / "logits.npy").string();
  std::ofstream(ids) << "[1, 40, 300, 7, 22, 19, 250, 3, 3, 90, 41, 12, 500]";
  const auto logits = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args{"logits", "-m", model,         "--ids", ids,
                                  "--out",  npy,  "--precision", "f32"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = run(args);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_npy(npy).floats;
  };
  const std::vector<float> training = logits({"--paths", "train"}), usual = logits({});
  ASSERT_EQ(training.size(), usual.size());
  float largest = 0, apart = 0;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    largest = std::max(largest, std::abs(usual[i]));
    apart = std::max(apart, std::abs(usual[i] - training[i]));
  }
  EXPECT_LE(apart, 1e-5f * largest);
  EXPECT_EQ(training, logits({"--paths", "train", "--threads", "1"}));
  EXPECT_EQ(run({"logits", "-m", model, "--ids", ids, "--out", npy, "--paths", "train"}).code, 2);
}

TEST(Train, GoesOnFromAnExportedModel) {
  const fs::path folder = made("train-init");
  ASSERT_EQ(run(train(folder, "first", {"--tokens", "6000"})).code, 0);
  const Outcome second =
      run(train(folder, "second",
                {"--tokens", "1000", "--json", "--init-from", (folder / "first/model").string()}));
  ASSERT_EQ(second.code, 0) << second.err;
  const auto first = nlohmann::json::parse(
      test::read_text(folder / "first/metrics.jsonl")
          .substr(0, test::read_text(folder / "first/metrics.jsonl").find('\n')));
  EXPECT_LT(second.json()["loss"].get<double>(), first["loss"].get<double>() - 0.5);
}

TEST(Train, FaultsSayWhatToDo) {
  const fs::path folder = made("train-faults");
  EXPECT_EQ(run({"train"}).code, 2);
  EXPECT_EQ(run({"train", (folder / "config.toml").string()}).code, 2);
  std::ofstream(folder / "config.toml", std::ios::app) << "steps = 3\n";
  const Outcome unknown = run(train(folder, "out"));
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.error_line(), HasSubstr("steps: there is no such key"));
  EXPECT_THAT(run({"train", "--resume", "--out", (folder / "out").string()}).error_line(),
              HasSubstr("train.json"));
}

}  // namespace
}  // namespace triax
