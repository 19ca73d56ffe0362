// `--trunk` and `triax pack`: where the trunk lies changes no logit, 8 bits are the same however
// they came about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/program.h"
#include "support/model_folder.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using testing::HasSubstr;

std::string model() {
  return test::tiny_model().string();
}

// The packed model, made once.
const std::string& packed() {
  static const std::string folder = [] {
    const std::string out = (test::scratch() / "packed").string();
    const Outcome made = test::run({"pack", model(), out, "--json"});
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_LT(made.json()["bytes"].get<std::size_t>(), made.json()["bytes_before"]);
    return out;
  }();
  return folder;
}

std::string logits(const std::string& folder, const std::string& trunk) {
  const fs::path out = test::scratch() / "trunk.npy";
  const Outcome made = test::run({"logits", "-m", folder, "--ids", "-", "--out", out.string(),
                                  "--trunk", trunk, "--chunk", "16"},
                                 "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23");
  EXPECT_EQ(made.code, 0) << made.err;
  return test::read_text(out);
}

TEST(Trunk, WhereItLiesChangesNoLogit) {
  const std::string mapped = logits(model(), "mapped");
  EXPECT_TRUE(mapped == logits(model(), "resident"));
  EXPECT_TRUE(mapped == logits(model(), "auto"));
}

TEST(Trunk, PackedIsInt8MadeAtLoad) {
  const std::string made = logits(model(), "int8");
  EXPECT_FALSE(made == logits(model(), "mapped"));
  for (const char* trunk : {"mapped", "resident", "auto", "int8"}) {
    EXPECT_TRUE(made == logits(packed(), trunk)) << trunk;
  }
}

TEST(Trunk, RunSaysWhatItUsed) {
  for (const char* trunk : {"mapped", "resident", "int8"}) {
    const Outcome done = test::run(
        {"run", "-m", model(), "--ids", "-", "-n", "2", "--json", "--trunk", trunk}, "1 2 3");
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(done.json()["trunk"], trunk);
    EXPECT_EQ(done.json()["memory"]["trunk_bytes"].get<std::size_t>() > 0,
              std::string(trunk) != "mapped");
  }
}

TEST(Pack, EveryCommandReadsThePackedFolder) {
  const Outcome inspected = test::run({"inspect", packed(), "--json"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_GT(inspected.json()["trunk_scale_bytes"].get<std::size_t>(), 0u);
  const Outcome evaluated = test::run({"eval", "-m", packed(), "--ids", "-", "--json"}, "1 2 3 4");
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  const Outcome ran = test::run({"run", "-m", packed(), "--ids", "-", "-n", "1"}, "1 2 3 4");
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST(Pack, AsksBeforeItWritesOverAnything) {
  const Outcome again = test::run({"pack", model(), packed()});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.error_line(), HasSubstr("--force"));
  EXPECT_EQ(test::run({"pack", model(), packed(), "--force"}).code, 0);
  const Outcome itself = test::run({"pack", model(), model(), "--force"});
  EXPECT_EQ(itself.code, 1);
  EXPECT_THAT(itself.error_line(), HasSubstr("name another folder"));
}

TEST(Eval, EachFamilyOf8BitWeightsHasItsCost) {
  const std::string ids = "5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24";
  const Outcome done = test::run({"eval", "-m", model(), "--ids", "-", "--against", "trunk=int8",
                                  "--by-family", "--json", "--chunk", "8"},
                                 ids);
  ASSERT_EQ(done.code, 0) << done.err;
  const auto json = done.json();
  EXPECT_GT(json["against"]["mean_kl"].get<double>(), 0);
  ASSERT_EQ(json["families"].size(), 6u);
  std::size_t saved = 0;
  for (const auto& family : json["families"]) {
    saved += family["saved_bytes"].get<std::size_t>();
    // A family alone, computed on its own, costs what it costs in the table.
    const Outcome alone =
        test::run({"eval", "-m", model(), "--ids", "-", "--against",
                   "trunk=" + family["trunk"].get<std::string>(), "--json", "--chunk", "8"},
                  ids);
    ASSERT_EQ(alone.code, 0) << alone.err;
    EXPECT_EQ(alone.json()["against"]["mean_kl"], family["mean_kl"]) << family["trunk"];
    EXPECT_GT(family["mean_kl"].get<double>(), 0) << family["trunk"];
  }
  EXPECT_EQ(saved, json["against"]["saved_bytes"].get<std::size_t>());
}

TEST(Eval, ComparisonsWithoutAStoredTrunkAreRefused) {
  const Outcome twice = test::run(
      {"eval", "-m", model(), "--ids", "-", "--against", "trunk=int8", "--trunk", "int8"}, "1 2 3");
  EXPECT_EQ(twice.code, 2);
  const Outcome bare = test::run({"eval", "-m", model(), "--ids", "-", "--by-family"}, "1 2 3");
  EXPECT_EQ(bare.code, 2);
  EXPECT_THAT(bare.error_line(), HasSubstr("trunk=int8"));
  const Outcome packed_already =
      test::run({"eval", "-m", packed(), "--ids", "-", "--against", "trunk=int8"}, "1 2 3");
  EXPECT_EQ(packed_already.code, 1);
  EXPECT_THAT(packed_already.error_line(), HasSubstr("packed from"));
}

}  // namespace
}  // namespace triax
