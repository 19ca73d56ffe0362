// `triax run`: same seed same text, stopping, streaming, the default model, Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "e2e/program.h"
#include "triax/config/config.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::Call;
using test::Outcome;
using testing::HasSubstr;
using testing::Not;

std::string ids_file(const std::string& text) {
  static int number = 0;
  const fs::path path = test::scratch() / ("ids-" + std::to_string(++number));
  std::ofstream(path) << text;
  return path.string();
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

// A copy of the binary outside the clone: its default model lies in the user's cache folder.
fs::path installed_binary() {
  static const fs::path copy = [] {
    const fs::path at = test::scratch() / "installed";
    fs::copy_file(TRIAX_BINARY, at);
    return at;
  }();
  return copy;
}

Outcome run_default(std::vector<std::string> args, std::string input = "") {
  Call call;
  call.args = std::move(args);
  call.input = std::move(input);
  call.environment = {{"XDG_CACHE_HOME", (test::scratch() / "cache").string()}};
  call.binary = installed_binary();
  return test::run(call);
}

fs::path nano() {
  return test::scratch() / "cache" / "triax" / "nano";
}

// ---- a folder without tokenizer prints ids

TEST(Run, SameSeedSameIds) {
  const std::string ids = ids_file("[5, 6, 7, 8]");
  const auto once = [&](const std::string& seed, std::vector<std::string> more = {}) {
    std::vector<std::string> args{
        "run", "-m", test::tiny_model().string(), "--ids", ids, "-n", "24", "--seed", seed};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome o = test::run(args);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  const std::string first = once("11");
  EXPECT_EQ(words(first).size(), 24u);
  EXPECT_EQ(once("11"), first);
  EXPECT_EQ(once("11", {"--threads", "1"}), first) << "threads change no bit";
  std::set<std::string> texts;
  for (const char* seed : {"1", "2", "3", "4"}) texts.insert(once(seed));
  EXPECT_EQ(texts.size(), 4u) << "other seeds give other ids";
}

TEST(Run, TemperatureZeroIsGreedyWhateverTheSeed) {
  const std::string ids = ids_file("5 6 7 8");
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"run", "-m", test::tiny_model().string(), "--ids", ids,
                                  "-n",  "8"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome o = test::run(args);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  const std::string greedy = with({"--temp", "0", "--seed", "1"});
  EXPECT_EQ(with({"--temp", "0", "--seed", "2"}), greedy);
  EXPECT_EQ(with({"--top-k", "1", "--seed", "3"}), greedy) << "the likeliest token alone is left";
  EXPECT_EQ(with({"--top-p", "0.000001", "--seed", "4"}), greedy);
  EXPECT_EQ(with({"--min-p", "0.999999", "--seed", "5"}), greedy);
}

TEST(Run, StopsAtAnEndIdOfTheConfiguration) {
  const std::string ids = ids_file("5 6 7 8");
  const auto greedy = [&](const fs::path& model) {
    return test::run(
               {"run", "-m", model.string(), "--ids", ids, "-n", "6", "--temp", "0", "--json"})
        .json();
  };
  const auto free = greedy(test::tiny_model());
  ASSERT_EQ(free["finish"], "length");
  ASSERT_EQ(free["ids"].size(), 6u);

  // The same weights, with the third greedy id as an end id.
  const fs::path copy = test::scratch() / "tiny-stops";
  fs::copy(test::tiny_model(), copy);
  const int end = free["ids"][2].get<int>();
  std::ofstream(copy / "generation_config.json") << "{\"eos_token_id\": [" << end << "]}";
  const auto stopped = greedy(copy);
  EXPECT_EQ(stopped["finish"], "stop");
  std::vector<int> want;
  for (const auto& id : free["ids"]) {
    if (id.get<int>() == end) break;
    want.push_back(id.get<int>());
  }
  EXPECT_EQ(stopped["ids"].get<std::vector<int>>(), want);
}

TEST(Run, JsonTellsWhatWasMeasured) {
  const Outcome o = test::run(
      {"run", "-m", test::tiny_model().string(), "--ids", "-", "-n", "3", "--seed", "9", "--json"},
      "[1, 2]");
  ASSERT_EQ(o.code, 0) << o.err;
  const auto json = o.json();
  EXPECT_EQ(json["prompt_tokens"], 2);
  EXPECT_EQ(json["generated_tokens"], json["ids"].size());
  EXPECT_EQ(json["seed"], 9);
  EXPECT_EQ(json["precision"], "bf16");
  EXPECT_GT(json["memory"]["peak_bytes"].get<std::uint64_t>(), 1u << 20);
  EXPECT_GT(json["memory"]["state_bytes"].get<std::uint64_t>(), 0u);
  EXPECT_FALSE(json.contains("text")) << "there is no tokenizer";
}

TEST(Run, SummaryAndStatsGoToStderr) {
  const Outcome o = test::run(
      {"run", "-m", test::tiny_model().string(), "--ids", "-", "-n", "3", "--stats", "--temp", "0"},
      "1 2");
  ASSERT_EQ(o.code, 0);
  EXPECT_EQ(words(o.out).size(), 3u) << o.out;
  EXPECT_THAT(o.err, HasSubstr("2 prompt tokens"));
  EXPECT_THAT(o.err, HasSubstr("3 generated"));
  EXPECT_THAT(o.err, HasSubstr("tokens/s"));
  EXPECT_THAT(o.err, HasSubstr("memory"));
  EXPECT_THAT(o.err, HasSubstr("KDA"));
}

TEST(Run, CtrlCKeepsTheTextAndSaysSo) {
  Call call;
  call.args = {"run", "-m", test::tiny_model().string(), "--ids", ids_file("1 2"), "-n", "1000000"};
  call.interrupt_after_bytes = 40;
  const Outcome o = test::run(call);
  EXPECT_EQ(o.code, 130);
  EXPECT_GE(o.out.size(), 40u);
  EXPECT_EQ(o.out.back(), '\n');
  EXPECT_THAT(o.err, HasSubstr("interrupted"));
  EXPECT_THAT(o.err, HasSubstr("generated"));
}

// ---- the default model

TEST(Run, FirstUseMakesARandomModelAndSaysSo) {
  const Outcome o = run_default({"run", "The three axes", "-n", "4", "--seed", "1"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("random weights"));
  EXPECT_FALSE(o.out.empty());
  ASSERT_TRUE(fs::exists(nano() / "config.json"));
  for (const auto& entry : fs::directory_iterator(nano().parent_path())) {
    EXPECT_EQ(entry.path().filename(), "nano") << "a draft was left behind";
  }
  const auto written = fs::last_write_time(nano() / "config.json");
  const Outcome again = run_default({"run", "The three axes", "-n", "4", "--seed", "1"});
  EXPECT_EQ(again.out, o.out);
  EXPECT_EQ(fs::last_write_time(nano() / "config.json"), written) << "made once";
}

TEST(Run, StreamedTextIsTheTextOfTheIds) {
  const std::vector<std::string> args{"run", "Ünï-cödé 世界", "-n", "60", "--seed", "5"};
  const Outcome streamed = run_default(args);
  ASSERT_EQ(streamed.code, 0) << streamed.err;
  std::vector<std::string> with_json = args;
  with_json.push_back("--json");
  const auto json = run_default(with_json).json();
  const Tokenizer tokenizer =
      Tokenizer::load(std::string(TRIAX_SOURCE_DIR) + "/src/triax/tokenizer/k3");
  const auto ids = json["ids"].get<std::vector<std::int32_t>>();
  const std::string text = tokenizer.decode(ids);
  EXPECT_EQ(json["text"], text);
  EXPECT_EQ(streamed.out, text.ends_with('\n') ? text : text + "\n");
  EXPECT_EQ(json["prompt_tokens"], tokenizer.encode("Ünï-cödé 世界").size());
}

TEST(Run, PromptFromStandardInputIsThePromptItself) {
  const Outcome from_argument = run_default({"run", "one two three", "-n", "5", "--seed", "2"});
  const Outcome from_input = run_default({"run", "-", "-n", "5", "--seed", "2"}, "one two three");
  const Outcome raw = run_default({"run", "--raw", "one two three", "-n", "5", "--seed", "2"});
  EXPECT_EQ(from_argument.code, 0);
  EXPECT_EQ(from_input.out, from_argument.out);
  EXPECT_EQ(raw.out, from_argument.out);
}

TEST(Run, NamesOfSpecialTokensInAPromptAreText) {
  const auto tokens = [](const std::string& prompt) {
    return run_default({"run", prompt, "-n", "1", "--json"}).json()["prompt_tokens"].get<int>();
  };
  EXPECT_GT(tokens("<|end_of_msg|>"), 1);
}

// The roles are the tokenizer's: <|end_of_msg|> and [EOT] stop a model whose configuration names
// neither of them.
TEST(Run, StopsAtTheRolesOfTheTokenizer) {
  const fs::path bare = test::scratch() / "roles-bare", spoken = test::scratch() / "roles-spoken";
  fs::copy(test::tiny_model(), bare);
  fs::copy(test::tiny_model(), spoken);
  write_byte_tokenizer(spoken, 512);  // 768 ranks and 256 special ids: tiny's vocabulary of 1,024
  const std::vector<std::int32_t> stops = Tokenizer::load(spoken).stop_ids();
  ASSERT_EQ(stops.size(), 3u);
  const std::vector<std::int32_t> ends = K3Config::load(bare).eos_token_ids;

  const std::string ids = ids_file("1 2 3");
  std::set<std::int32_t> met;
  for (int seed = 1; seed <= 12 && met.empty(); ++seed) {
    const auto generate = [&](const fs::path& model) {
      return test::run({"run", "-m", model.string(), "--ids", ids, "-n", "400", "--seed",
                        std::to_string(seed), "--json", "--threads", "1"})
          .json();
    };
    const auto free = generate(bare)["ids"].get<std::vector<std::int32_t>>();
    const auto first = std::find_first_of(free.begin(), free.end(), stops.begin(), stops.end());
    if (first == free.end()) continue;
    ASSERT_EQ(std::count(ends.begin(), ends.end(), *first), 0);
    met.insert(*first);
    const auto stopped = generate(spoken);
    EXPECT_EQ(stopped["finish"], "stop");
    EXPECT_EQ(stopped["ids"].get<std::vector<std::int32_t>>(),
              std::vector<std::int32_t>(free.begin(), first));
  }
  EXPECT_FALSE(met.empty()) << "no seed meets an end id";
}

}  // namespace
}  // namespace triax
