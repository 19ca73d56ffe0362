// The command line as structs.
#include "triax/cli/options.h"

#include <gtest/gtest.h>

namespace triax::cli {
namespace {

Parsed parse(std::vector<const char*> words) {
  words.insert(words.begin(), "triax");
  return parse_options(static_cast<int>(words.size()), words.data());
}

TEST(Options, RunDefaultsAndFlags) {
  const Parsed plain = parse({"run", "hello"});
  ASSERT_TRUE(plain.command);
  const auto& c = std::get<RunCommand>(*plain.command);
  EXPECT_EQ(c.prompt, "hello");
  EXPECT_EQ(c.model, "");
  EXPECT_EQ(c.max_tokens, 256u);
  EXPECT_EQ(c.temperature, 1.0f);
  EXPECT_EQ(c.precision, Precision::bf16);
  EXPECT_FALSE(c.seed);

  const Parsed full = parse({"run",         "-m",    "m",         "-",
                             "-n",          "5",     "--temp",    "0.5",
                             "--top-p",     "0.9",   "--top-k",   "40",
                             "--min-p",     "0.05",  "--seed",    "18446744073709551615",
                             "--precision", "f32",   "--threads", "3",
                             "--json",      "--raw", "--stats"});
  ASSERT_TRUE(full.command) << full.text;
  const auto& f = std::get<RunCommand>(*full.command);
  EXPECT_EQ(f.prompt, "-");
  EXPECT_EQ(f.model, "m");
  EXPECT_EQ(f.max_tokens, 5u);
  EXPECT_EQ(f.temperature, 0.5f);
  EXPECT_EQ(f.top_p, 0.9f);
  EXPECT_EQ(f.top_k, 40u);
  EXPECT_EQ(f.min_p, 0.05f);
  EXPECT_EQ(f.seed, 18446744073709551615u);
  EXPECT_EQ(f.precision, Precision::f32);
  EXPECT_EQ(f.threads, 3u);
  EXPECT_TRUE(f.json && f.raw && f.stats);
}

TEST(Options, ChatDefaultsAndFlags) {
  const Parsed plain = parse({"chat"});
  ASSERT_TRUE(plain.command);
  const auto& c = std::get<ChatCommand>(*plain.command);
  EXPECT_EQ(c.effort, "max");
  EXPECT_EQ(c.top_p, 0.95f);
  EXPECT_EQ(c.max_tokens, 2048u);
  EXPECT_FALSE(c.seed);

  const Parsed full = parse({"chat",
                             "-m",
                             "m",
                             "--system",
                             "s",
                             "--load",
                             "f",
                             "--effort",
                             "low",
                             "-n",
                             "7",
                             "--temp",
                             "0.6",
                             "--seed",
                             "5",
                             "--hide-thinking",
                             "--no-history",
                             "--recompute",
                             "--precision",
                             "f32"});
  ASSERT_TRUE(full.command) << full.text;
  const auto& f = std::get<ChatCommand>(*full.command);
  EXPECT_EQ(f.system, "s");
  EXPECT_EQ(f.load, "f");
  EXPECT_EQ(f.effort, "low");
  EXPECT_EQ(f.max_tokens, 7u);
  EXPECT_EQ(f.temperature, 0.6f);
  EXPECT_EQ(f.seed, 5u);
  EXPECT_EQ(f.precision, Precision::f32);
  EXPECT_TRUE(f.hide_thinking && f.no_history && f.recompute);
  EXPECT_EQ(parse({"chat", "--effort", "medium"}).exit_code, 2);
  EXPECT_EQ(parse({"chat", "a question"}).exit_code, 2);
  EXPECT_EQ(parse({"run", "x", "--effort", "much"}).exit_code, 2);
}

TEST(Options, PromptsThatLookLikeFlagsFollowTwoDashes) {
  const Parsed p = parse({"run", "--", "-5 degrees"});
  ASSERT_TRUE(p.command) << p.text;
  EXPECT_EQ(std::get<RunCommand>(*p.command).prompt, "-5 degrees");
}

TEST(Options, FaultsAreOneLineWithTheWayToHelp) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"run", "x", "--seed", "-1"},
        {"run", "x", "--seed", "1e3"},
        {"run", "x", "--temp", "101"},
        {"run", "x", "--temp", "inf"},
        {"run", "x", "y"},
        {"logits"},
        {"nothing"},
        {"--nothing"},
        {"synth", "--config", "k3"}}) {
    const Parsed p = parse(words);
    EXPECT_FALSE(p.command);
    EXPECT_EQ(p.exit_code, 2);
    EXPECT_EQ(p.text.find('\n'), std::string::npos) << p.text;
    EXPECT_EQ(p.text.rfind("triax: ", 0), 0u) << p.text;
    EXPECT_NE(p.text.find("--help"), std::string::npos) << p.text;
  }
}

TEST(Options, BenchTakesListsNamesAndSwitches) {
  const auto plain = std::get<BenchCommand>(*parse({"bench"}).command);
  EXPECT_EQ(plain.chunk, 512u);
  EXPECT_EQ(plain.repeats, 3u);
  EXPECT_FALSE(plain.serve || plain.profile || plain.json);
  const auto c = std::get<BenchCommand>(
      *parse({"bench", "--only", "pp8", "--chunk", "64", "--profile", "--serve", "--limits-mib",
              "16", "--ids-seed", "3", "--prompt", "1,2"})
           .command);
  EXPECT_EQ(c.only, "pp8");
  EXPECT_EQ(c.prompt, "1,2");
  EXPECT_EQ(c.chunk, 64u);
  EXPECT_EQ(c.limits_mib, 16u);
  EXPECT_EQ(c.ids_seed, 3u);
  EXPECT_TRUE(c.profile && c.serve);
}

TEST(Options, TheTrunkIsChosenByName) {
  EXPECT_EQ(std::get<RunCommand>(*parse({"run", "x"}).command).trunk, TrunkChoice::automatic);
  for (const auto& [name, choice] : {std::pair{"auto", TrunkChoice::automatic},
                                     {"mapped", TrunkChoice::mapped},
                                     {"resident", TrunkChoice::resident},
                                     {"int8", TrunkChoice::int8}}) {
    EXPECT_EQ(std::get<RunCommand>(*parse({"run", "x", "--trunk", name}).command).trunk, choice);
  }
  EXPECT_EQ(parse({"run", "x", "--trunk", "int4"}).exit_code, 2);
  const Parsed packed = parse({"pack", "a", "b", "--trunk", "int8", "--force"});
  ASSERT_TRUE(packed.command) << packed.text;
  const auto& p = std::get<PackCommand>(*packed.command);
  EXPECT_TRUE(p.from == "a" && p.out == "b" && p.force);
  EXPECT_EQ(parse({"pack", "a"}).exit_code, 2);
  EXPECT_EQ(parse({"pack", "a", "b", "--trunk", "stored"}).exit_code, 2);
}

TEST(Options, OtherCommands) {
  EXPECT_EQ(std::get<EvalCommand>(*parse({"eval", "f.txt", "--context", "64"}).command).chunk, 64u);
  EXPECT_EQ(std::get<DetokenizeCommand>(*parse({"detokenize", "1", "2"}).command).ids.size(), 2u);
  EXPECT_EQ(
      std::get<SynthCommand>(*parse({"synth", "--config", "tiny", "--out", "o"}).command).seed,
      20260727u);
}

}  // namespace
}  // namespace triax::cli
