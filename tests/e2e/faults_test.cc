// Wrong use and wrong input: exit codes, and one line that says what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "e2e/program.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using testing::HasSubstr;

void expect_refused(const Outcome& o, int code, const std::string& says) {
  EXPECT_EQ(o.code, code) << o.err;
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.error_line(), HasSubstr(says));
  EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
}

TEST(Faults, WrongUseIsExitCodeTwo) {
  const std::string tiny = test::golden("text/tiny-c");
  expect_refused(test::run({"frobnicate"}), 2, "commands: run, chat, serve, logits");
  expect_refused(test::run({"run"}), 2, "give a prompt");
  expect_refused(test::run({"run", "x", "--ids", "y"}), 2, "do not go together");
  expect_refused(test::run({"run", "x", "--no-such-flag"}), 2, "--no-such-flag");
  expect_refused(test::run({"--no-such-flag"}), 2, "--no-such-flag");
  expect_refused(test::run({"run", "x", "--temp", "-0.5"}), 2, "--temp");
  expect_refused(test::run({"run", "x", "--temp", "nan"}), 2, "--temp");
  expect_refused(test::run({"run", "x", "--top-p", "0"}), 2, "--top-p");
  expect_refused(test::run({"run", "x", "--top-p", "1.5"}), 2, "--top-p");
  expect_refused(test::run({"run", "x", "--min-p", "1"}), 2, "--min-p");
  expect_refused(test::run({"run", "x", "--top-k=-1"}), 2, "--top-k");
  expect_refused(test::run({"run", "x", "-n", "0"}), 2, "-n");
  expect_refused(test::run({"run", "x", "-n", "ten"}), 2, "ten");
  expect_refused(test::run({"run", "x", "--threads", "0"}), 2, "--threads");
  expect_refused(test::run({"run", "x", "--precision", "int3"}), 2, "--precision");
  expect_refused(test::run({"logits", "--out", "x.npy"}), 2, "--ids");
  expect_refused(test::run({"run", "-m", tiny, "--ids", "-"}, ""), 2, "empty");
  expect_refused(test::run({"eval", "-", "--ids", "-m", tiny}, "7"), 2, "two or more");
  expect_refused(test::run({"eval", "-", "--ids", "-m", tiny, "--against", "colour=red"}, "7 8"), 2,
                 "colour=red");
  expect_refused(test::run({"synth", "--out", "x"}), 2, "--config");
}

TEST(Faults, HelpAndVersionAreNoFaults) {
  EXPECT_EQ(test::run({"--version"}).out.rfind("triax ", 0), 0u);
  for (const std::vector<std::string>& args : {std::vector<std::string>{"--help"},
                                               {"-h"},
                                               {"run", "--help"},
                                               {"chat", "--help"},
                                               {"logits", "--help"},
                                               {"eval", "-h"},
                                               {"tokenize", "--help"},
                                               {"detokenize", "--help"},
                                               {"inspect", "--help"},
                                               {"synth", "--help"},
                                               {"selftest", "--help"},
                                               {"doctor", "--help"}}) {
    const Outcome o = test::run(args);
    EXPECT_EQ(o.code, 0) << args[0];
    EXPECT_EQ(o.err, "");
    EXPECT_THAT(o.out, HasSubstr(args.size() == 1 ? "A first try" : "Example:")) << args[0];
  }
  const Outcome nothing = test::run(std::vector<std::string>{});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("usage: triax COMMAND"));
}

TEST(Faults, WhatIsNotThereIsExitCodeOne) {
  expect_refused(test::run({"run", "-m", "/no/such/model", "x"}), 1, "/no/such/model");
  expect_refused(test::run({"inspect", "/no/such/model"}), 1, "/no/such/model");
  const std::string tiny = test::golden("text/tiny-c");
  expect_refused(test::run({"run", "-m", tiny, "text"}), 1, "--ids FILE");
  expect_refused(test::run({"run", "-m", tiny, "--ids", "-"}, "1 2 131"), 1, "0..130");
  expect_refused(test::run({"run", "-m", tiny, "--ids", "-"}, "[1, two]"), 1, "\"two\"");
  expect_refused(test::run({"run", "-m", tiny, "--ids", "/no/such/ids"}), 1, "/no/such/ids");
  expect_refused(test::run({"logits", "-m", tiny, "--ids", "-", "--out", "/no/such/x.npy"}, "1"), 1,
                 "/no/such/x.npy");
  expect_refused(test::run({{"doctor"}, "", {{"TRIAX_ISA", "mmx"}}, TRIAX_BINARY, 0}), 1, "mmx");
}

// Case P01: damaged downloads end before any weight is used, with the shard named.
class Damaged : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = test::scratch() / "damaged";
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    for (const auto& entry : fs::directory_iterator(test::golden("text/tiny-a"))) {
      const fs::path copy = folder_ / entry.path().filename();
      fs::copy_file(entry.path(), copy);
      fs::permissions(copy, fs::perms::owner_write, fs::perm_options::add);
    }
  }
  Outcome run() const {
    return test::run({"run", "-m", folder_.string(), "--ids", "-", "-n", "1"}, "1 2");
  }
  fs::path shard(int n) const {
    return folder_ / ("model-0000" + std::to_string(n) + "-of-000003.safetensors");
  }
  fs::path folder_;
};

TEST_F(Damaged, WholeFolderRuns) {
  EXPECT_EQ(run().code, 0);
}

TEST_F(Damaged, ShardCutShort) {
  const auto size = fs::file_size(shard(2));
  fs::resize_file(shard(2), size - 100);
  const Outcome o = run();
  expect_refused(o, 1, "model-00002-of-000003.safetensors");
  EXPECT_THAT(o.err, HasSubstr(std::to_string(size)));
  EXPECT_THAT(o.err, HasSubstr(std::to_string(size - 100)));
}

TEST_F(Damaged, ShardsMissing) {
  fs::remove(shard(3));
  fs::remove(shard(1));
  const Outcome o = run();
  expect_refused(o, 1, "model-00003-of-000003.safetensors");
  EXPECT_THAT(o.err, HasSubstr("model-00001-of-000003.safetensors"));
}

TEST_F(Damaged, HeaderZeroed) {
  std::fstream(shard(1), std::ios::in | std::ios::out | std::ios::binary)
      .write("\0\0\0\0\0\0\0\0", 8);
  const Outcome o = run();
  expect_refused(o, 1, "model-00001-of-000003.safetensors");
  EXPECT_THAT(o.err, HasSubstr("header"));
}

TEST_F(Damaged, TensorOnlyInTheIndex) {
  const fs::path index = folder_ / "model.safetensors.index.json";
  auto json = nlohmann::json::parse(std::ifstream(index));
  json["weight_map"]["language_model.model.extra.weight"] = "model-00002-of-000003.safetensors";
  std::ofstream(index) << json.dump();
  const Outcome o = run();
  expect_refused(o, 1, "language_model.model.extra.weight");
  EXPECT_THAT(o.err, HasSubstr("model-00002-of-000003.safetensors"));
}

}  // namespace
}  // namespace triax
