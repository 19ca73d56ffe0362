// `triax bench` and the profile of `triax run --stats`: structure and counts, no speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "e2e/program.h"

namespace triax {
namespace {

using test::Outcome;
using testing::HasSubstr;

Outcome bench(std::vector<std::string> more, const std::string& input = "",
              const std::string& limits_mib = "0") {
  std::vector<std::string> args = {"bench", "-m", test::tiny_model().string(), "--limits-mib",
                                   limits_mib};
  args.insert(args.end(), more.begin(), more.end());
  return test::run(args, input);
}

nlohmann::json bench_json(const std::string& names) {
  const Outcome o = bench({"--only", names, "--repeats", "2", "--profile", "--json"});
  EXPECT_EQ(o.code, 0) << o.err;
  return o.json();
}

// What a decoded token must read, by the accounting of the folder: trunk, routed experts, and the
// KDA states read and written.
double accounted_bytes() {
  const Outcome o = test::run({"inspect", test::tiny_model().string(), "--json"});
  EXPECT_EQ(o.code, 0) << o.err;
  const auto json = o.json();
  return json["trunk_bytes_read_per_token"].get<double>() +
         json["expert_bytes_read_per_token"].get<double>() +
         2 * json["sequence"]["kda_state_bytes"].get<double>();
}

TEST(Bench, FamiliesAddUpToTheWallTimeAndToTheCounts) {
  const auto all = bench_json("pp96,tg4@16,tg3@5x3");
  for (const auto& m : all["measurements"]) {
    const auto& profile = m["profile"];
    double seconds = 0, share = 0, bytes = 0, operations = 0, runs = 0;
    for (const auto& family : profile["families"]) {
      seconds += family["seconds"].get<double>();
      share += family["share"].get<double>();
      bytes += family["bytes"].get<double>();
      operations += family["operations"].get<double>();
    }
    for (const auto& run : m["runs"]) runs += run["seconds"].get<double>();
    const double wall = profile["seconds"].get<double>(), tokens = profile["tokens"].get<double>();
    EXPECT_NEAR(wall, runs, 1e-9) << m["name"];
    EXPECT_LE(seconds, wall) << m["name"];
    EXPECT_NEAR(share, seconds / wall, 1e-9) << m["name"];
    EXPECT_NEAR(m["bytes_per_token"].get<double>(), bytes / tokens, 1e-6 * bytes) << m["name"];
    EXPECT_NEAR(m["operations_per_token"].get<double>(), operations / tokens, 1e-6 * operations);
    EXPECT_GT(m["explained"].get<double>(), 0.5) << m["name"];
    EXPECT_LE(m["explained"].get<double>(), 1) << m["name"];
    EXPECT_TRUE(m["of_peak"].is_null()) << "the limits were left out";
  }
}

// Norms, depth-mix vectors and convolution weights are not counted, which is 1 % of this shape; the
// cache of 16 to 19 tokens is, which is less.
TEST(Bench, DecodeReadsWhatTheAccountingSays) {
  const auto json = bench_json("tg4@16,tg4@16x4");
  const double one = json["measurements"][0]["bytes_per_token"].get<double>();
  EXPECT_NEAR(one / accounted_bytes(), 1, 0.02);
  // Four sequences read the trunk once.
  const double four = json["measurements"][1]["bytes_per_token"].get<double>();
  EXPECT_LT(four, 0.5 * one);
  EXPECT_GT(four, 0.25 * one);
}

TEST(Bench, JsonSaysWithWhatItWasMeasured) {
  const Outcome o =
      bench({"--only", "tg2@3x2", "--repeats", "3", "--json", "--threads", "1", "--precision",
             "f32", "--chunk", "64", "--ids-seed", "7", "--trunk", "mapped"});
  ASSERT_EQ(o.code, 0) << o.err;
  const auto json = o.json();
  EXPECT_EQ(json["precision"], "f32");
  EXPECT_EQ(json["trunk"], "mapped");
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["chunk"], 64);
  EXPECT_EQ(json["ids_seed"], 7);
  EXPECT_TRUE(json["machine"].is_null());
  EXPECT_GT(json["weight_bytes"].get<std::uint64_t>(), 8'000'000u);
  EXPECT_GE(json["first_token_seconds"].get<double>(), json["load_seconds"].get<double>());
  const auto& m = json["measurements"].at(0);
  EXPECT_EQ(m["name"], "tg2@3x2");
  EXPECT_EQ(m["runs"].size(), 3u);
  EXPECT_EQ(m["runs"][0]["tokens"], 4);
  EXPECT_FALSE(m.contains("profile"));
}

TEST(Bench, StateBytesGrowByTheLatentCacheAlone) {
  const auto json = bench_json("pp64,pp128");
  const auto& m = json["measurements"];
  const Outcome o = test::run({"inspect", test::tiny_model().string(), "--json"});
  const auto row = o.json()["sequence"]["latent_bytes_per_token_bf16"].get<std::uint64_t>();
  EXPECT_EQ(m[1]["state_bytes"].get<std::uint64_t>() - m[0]["state_bytes"].get<std::uint64_t>(),
            64 * row);
}

TEST(Bench, TextHasALineForEachMeasurementAndTablesWithProfile) {
  const Outcome o = bench(
      {"--prompt", "32", "--decode", "2@4", "--sequences", "2", "--repeats", "1", "--profile"}, "",
      "8");
  ASSERT_EQ(o.code, 0) << o.err;
  for (const char* text : {"pp32 ", "tg2@4 ", "tg64@16x2 ", "of reads", "this machine",
                           "first token", "kda_recurrence", "routed_experts", "of the wall time"}) {
    EXPECT_THAT(o.out, HasSubstr(text));
  }
}

TEST(Bench, ServesMeasurementsByName) {
  const Outcome o = bench({"--serve"}, "warm\npp8\nnonsense\ntg2@4x2\nmemory\nlimits\n");
  ASSERT_EQ(o.code, 0) << o.err;
  std::istringstream lines(o.out);
  std::vector<nlohmann::json> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(answers.size(), 7u);
  const char* names[] = {"ready", "warm", "pp8", "nonsense", "tg2@4x2", "memory", "limits"};
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i]["name"], names[i]);
  EXPECT_EQ(answers[2]["tokens"], 8);
  EXPECT_GT(answers[2]["tokens_per_second"].get<double>(), 0);
  EXPECT_GT(answers[2]["processor_seconds"].get<double>(), 0);
  EXPECT_TRUE(answers[3].contains("error"));
  EXPECT_EQ(answers[4]["tokens"], 4);
  EXPECT_GT(answers[5]["peak_bytes"].get<std::uint64_t>(), 1u << 20);
}

TEST(Bench, WrongListsAreOneLine) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--only", "p512"},
                                               {"--prompt", "x"},
                                               {"--decode", "128"},
                                               {"--sequences", "0"},
                                               {"--repeats", "0"}}) {
    const Outcome o = bench(more);
    EXPECT_EQ(o.code, 2) << o.err;
    EXPECT_THAT(o.error_line(), HasSubstr("bench: "));
  }
}

TEST(RunStats, TablesOfPromptAndDecode) {
  const std::vector<std::string> args = {
      "run", "-m", test::tiny_model().string(), "--ids", "-", "-n", "5", "--temp", "0", "--stats"};
  const Outcome text = test::run(args, "1 2 3");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.err, HasSubstr("\nprompt\n  family"));
  EXPECT_THAT(text.err, HasSubstr("\ndecoding\n  family"));

  std::vector<std::string> with_json = args;
  with_json.push_back("--json");
  const auto json = test::run(with_json, "1 2 3").json();
  EXPECT_EQ(json["profile"]["prompt"]["tokens"], 3);
  EXPECT_EQ(json["profile"]["decode"]["tokens"], 4);
  double bytes = 0;
  for (const auto& family : json["profile"]["decode"]["families"]) {
    bytes += family["bytes"].get<double>();
  }
  EXPECT_NEAR(bytes / 4 / accounted_bytes(), 1, 0.02);
  EXPECT_FALSE(
      test::run({"run", "-m", test::tiny_model().string(), "--ids", "-", "-n", "2", "--json"}, "1")
          .json()
          .contains("profile"));
}

}  // namespace
}  // namespace triax
