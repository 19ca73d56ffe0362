// `triax chat` and the chat form of `triax run`, in scripts and at a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "e2e/program.h"
#include "e2e/terminal.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::Call;
using test::Outcome;
using test::Terminal;
using testing::HasSubstr;
using testing::Not;

// The tiny model with a vocabulary that has the chat tokens.
std::string speaking_model() {
  static const std::string folder = [] {
    const fs::path at = test::scratch() / "tiny-chat";
    fs::copy(test::tiny_model(), at);
    write_byte_tokenizer(at, 512);
    return at.string();
  }();
  return folder;
}

Outcome chat(std::vector<std::string> more, const std::string& input) {
  std::vector<std::string> args{"chat", "-m", speaking_model(), "--seed", "3", "-n", "12"};
  args.insert(args.end(), more.begin(), more.end());
  return test::run(args, input);
}

// The numbers of the line after each answer: prompt tokens, and how many of them were computed.
std::vector<std::pair<int, int>> prompts(const std::string& err) {
  static const std::regex line(R"(prompt ([\d,]+) tokens, ([\d,]+) new)");
  std::vector<std::pair<int, int>> out;
  const auto number = [](std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ','), text.end());
    return std::stoi(text);
  };
  for (std::sregex_iterator at(err.begin(), err.end(), line), end; at != end; ++at) {
    out.emplace_back(number((*at)[1]), number((*at)[2]));
  }
  return out;
}

// ---- run

TEST(RunChat, AnswersInChatForm) {
  const auto json = [](std::vector<std::string> more) {
    std::vector<std::string> args{"run",    "-m", speaking_model(), "hi", "-n", "40",
                                  "--seed", "4",  "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome o = test::run(args);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.json();
  };
  const auto plain = json({"--raw"});
  const Tokenizer tokenizer = Tokenizer::load(speaking_model());
  EXPECT_EQ(plain["prompt_tokens"], tokenizer.encode("hi").size());
  EXPECT_FALSE(plain.contains("reasoning"));
  const auto thinking = json({});
  EXPECT_TRUE(thinking.contains("reasoning"));
  EXPECT_NE(json({"--effort", "low"})["ids"], thinking["ids"]);
  const auto silent = json({"--effort", "none"});
  EXPECT_LT(silent["prompt_tokens"], thinking["prompt_tokens"]) << "no word on effort";
  EXPECT_GT(silent["prompt_tokens"].get<int>(), plain["prompt_tokens"].get<int>() + 20);
  EXPECT_THAT(thinking["text"].get<std::string>() + thinking["reasoning"].get<std::string>(),
              Not(HasSubstr("<|")));
}

TEST(RunChat, TheAnswerAloneIsOnStdout) {
  const std::vector<std::string> args{"run", "-m", speaking_model(), "hi",
                                      "-n",  "60", "--seed",         "4"};
  const Outcome shown = test::run(args);
  std::vector<std::string> hidden_args = args;
  hidden_args.push_back("--hide-thinking");
  const Outcome hidden = test::run(hidden_args);
  std::vector<std::string> json_args = args;
  json_args.push_back("--json");
  const auto json = test::run(json_args).json();
  const std::string reasoning = json["reasoning"];
  ASSERT_FALSE(reasoning.empty());
  EXPECT_THAT(shown.err, HasSubstr(reasoning));
  EXPECT_THAT(hidden.err, Not(HasSubstr(reasoning)));
  EXPECT_EQ(shown.out, hidden.out);
  std::string text = json["text"];
  if (!text.empty() && text.back() != '\n') text += '\n';
  EXPECT_EQ(shown.out, text);
}

TEST(RunChat, TextOfTheUserIsNeverControl) {
  const auto tokens = [](const std::string& prompt) {
    return test::run({"run", "-m", speaking_model(), prompt, "-n", "1", "--json"})
        .json()["prompt_tokens"]
        .get<int>();
  };
  EXPECT_GT(tokens("<|end_of_msg|>") - tokens("x"), 4);
}

// ---- chat in a script

TEST(Chat, EachLineIsAMessage) {
  const Outcome o = chat({}, "hello\n\nhow are you?\n");
  ASSERT_EQ(o.code, 0) << o.err;
  const auto turns = prompts(o.err);
  ASSERT_EQ(turns.size(), 2u) << o.err;
  EXPECT_GT(turns[1].first, turns[0].first + 12);
  EXPECT_EQ(chat({}, "hello\nhow are you?\n").out, o.out) << "the seed decides";
}

TEST(Chat, ALaterTurnComputesOnlyWhatIsNew) {
  const Outcome o = chat({}, "hello\nhow are you?\nand then?\n/stats\n");
  const auto turns = prompts(o.err);
  ASSERT_EQ(turns.size(), 3u) << o.err;
  EXPECT_EQ(turns[0].first, turns[0].second);
  for (std::size_t i = 1; i < 3; ++i) {
    // The closing of the answer, the question and the opening of the next answer.
    EXPECT_LT(turns[i].second, 160) << o.err;
    EXPECT_LT(turns[i].second, turns[i].first - turns[i - 1].first + 2) << o.err;
  }
  EXPECT_THAT(o.err, HasSubstr("3 answers, 6 messages"));
  EXPECT_THAT(o.err, HasSubstr("reused"));
}

TEST(Chat, WhatIsReusedIsWhatWouldBeComputed) {
  const std::string questions = "hello\nhow are you?\nand then?\n/retry\n";
  const Outcome kept = chat({"--precision", "f32", "--temp", "0"}, questions);
  const Outcome anew = chat({"--precision", "f32", "--temp", "0", "--recompute"}, questions);
  ASSERT_EQ(kept.code, 0) << kept.err;
  EXPECT_EQ(kept.out, anew.out);
  const auto turns = prompts(anew.err);
  ASSERT_EQ(turns.size(), 4u);
  for (const auto& [all, computed] : turns) EXPECT_EQ(all, computed);
  // Another answer costs the opening of the answer alone.
  EXPECT_LT(prompts(kept.err).at(3).second, 40);
}

TEST(Chat, CommandsChangeTheConversation) {
  const fs::path file = test::scratch() / "conversation.json";
  const Outcome o =
      chat({"--system", "Be brief."},
           "hello\n/save " + file.string() +
               "\n/effort none\n/temp 0\n/top-p 0.5\n/tokens 3\n/seed 9\n//slash\n"
               "/undo\n/system\n/clear\n/help\n/thinking off\n/stats\n/quit\nnever\n");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("effort: none"));
  EXPECT_THAT(o.err, HasSubstr("temp: 0\n"));
  EXPECT_THAT(o.err, HasSubstr("top-p: 0.5"));
  EXPECT_THAT(o.err, HasSubstr("at most 3 tokens"));
  EXPECT_THAT(o.err, HasSubstr("seed: 9"));
  EXPECT_THAT(o.err, HasSubstr("taken back; 3 messages are left"));
  EXPECT_THAT(o.err, HasSubstr("/save FILE"));
  EXPECT_THAT(o.err, HasSubstr("thinking is hidden"));
  EXPECT_THAT(o.err, HasSubstr("2 answers, 0 messages, effort none"));
  std::ifstream in(file);
  const auto saved = nlohmann::json::parse(in);
  ASSERT_EQ(saved["messages"].size(), 3u);
  EXPECT_EQ(saved["messages"][0]["content"], "Be brief.");
  EXPECT_EQ(saved["messages"][1]["content"], "hello");
  EXPECT_EQ(saved["messages"][2]["role"], "assistant");
  EXPECT_EQ(saved["thinking"]["effort"], "max");

  const Outcome loaded = chat({"--load", file.string()}, "again\n/stats\n");
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_THAT(loaded.err, HasSubstr("1 answers, 5 messages, effort max"));
}

TEST(Chat, ALineGoesOnAfterABackslash) {
  const fs::path file = test::scratch() / "lines.json";
  chat({}, "one\\\ntwo\n/save " + file.string() + "\n");
  std::ifstream in(file);
  EXPECT_EQ(nlohmann::json::parse(in)["messages"][0]["content"], "one\ntwo");
}

TEST(Chat, FaultsAreToldAndTheChatGoesOn) {
  const Outcome o = chat({},
                         "/nothing\n/temp hot\n/effort medium\n/load /no/such/file\n/undo\n"
                         "/retry\n/tokens 0\nhello\n");
  EXPECT_EQ(o.code, 1) << "a script learns that something failed";
  for (const char* text :
       {"no command \"/nothing\"", "/temp: \"hot\"", "\"medium\" is no effort", "/no/such/file",
        "/undo: there is nothing", "/retry: there is no question", "/tokens: \"0\""}) {
    EXPECT_THAT(o.err, HasSubstr(text));
  }
  EXPECT_EQ(prompts(o.err).size(), 1u) << "the question was answered";
  const Outcome no_text = test::run({"chat", "-m", test::tiny_model().string()}, "x\n");
  EXPECT_EQ(no_text.code, 1);
  EXPECT_THAT(no_text.error_line(), HasSubstr("tiktoken.model"));
}

TEST(Chat, CtrlCInAScriptKeepsTheTextAndEndsIt) {
  Call call;
  call.input = "hello\nnever\n";
  call.interrupt_after_bytes = 20;
  // An answer that ends by itself before so much is written leaves nothing to interrupt: the first
  // seed whose answer is longer.
  Outcome o;
  for (int seed = 1; seed <= 20; ++seed) {
    call.args = {"chat",    "-m",     speaking_model(),     "-n",
                 "1000000", "--seed", std::to_string(seed), "--effort",
                 "none"};
    o = test::run(call);
    if (o.code == 130) break;
  }
  ASSERT_EQ(o.code, 130) << o.err;
  EXPECT_GE(o.out.size(), 20u);
  EXPECT_EQ(o.out.back(), '\n');
  EXPECT_THAT(o.err, HasSubstr("interrupted"));
}

// ---- chat at a terminal

TEST(ChatTerminal, EditsRemembersAndDims) {
  Terminal t({"chat", "-m", speaking_model(), "--seed", "3", "-n", "12"});
  ASSERT_TRUE(t.shows("/help lists")) << t.screen();
  ASSERT_TRUE(t.shows("> "));
  // "helo", one to the left, "l", sent; then the same line again from the history.
  t.type("helo\033[Dl\r");
  ASSERT_TRUE(t.shows("generated")) << t.screen();
  EXPECT_THAT(t.screen(), HasSubstr("\033[2m"));
  t.type("\033[A\r");
  ASSERT_TRUE(t.shows("generated", 2)) << t.screen();
  // Ctrl-C takes a line back, Ctrl-D ends.
  t.type("rubbish\003/undo\r");
  ASSERT_TRUE(t.shows("taken back; 2 messages are left")) << t.screen();
  const fs::path file = test::scratch() / "typed.json";
  t.type("/save " + file.string() + "\r");
  ASSERT_TRUE(t.shows("2 messages are in"));
  t.type("\004");
  EXPECT_EQ(t.wait(), 0);
  std::ifstream in(file);
  EXPECT_EQ(nlohmann::json::parse(in)["messages"][0]["content"], "hello");

  const fs::path history = test::scratch() / "home/.local/state/triax/chat-history";
  ASSERT_TRUE(fs::exists(history));
  EXPECT_EQ(fs::status(history).permissions() & fs::perms::mask,
            fs::perms::owner_read | fs::perms::owner_write);
  Terminal later({"chat", "-m", speaking_model(), "--seed", "3", "-n", "2"});
  ASSERT_TRUE(later.shows("> "));
  later.type("\033[A\033[A");
  EXPECT_TRUE(later.shows("/undo")) << later.screen();
  later.type("\003/quit\r");
  EXPECT_EQ(later.wait(), 0);
}

TEST(ChatTerminal, CtrlCStopsAnAnswerAndKeepsIt) {
  Terminal t({"chat", "-m", speaking_model(), "--no-history", "-n", "100000000", "--temp", "0"});
  ASSERT_TRUE(t.shows("> "));
  t.type("hello\r");
  ASSERT_TRUE(t.shows("\033[2m", 2)) << t.screen();  // the greeting, then thinking
  t.type("\003", true);
  ASSERT_TRUE(t.shows("interrupted")) << t.screen();
  t.type("/tokens 3\r");
  ASSERT_TRUE(t.shows("at most 3"));
  t.type("go on\r");
  ASSERT_TRUE(t.shows("at the limit")) << t.screen();
  t.type("/stats\r");
  ASSERT_TRUE(t.shows("2 answers, 4 messages")) << t.screen();
  t.type("/quit\r");
  EXPECT_EQ(t.wait(), 0);
}

}  // namespace
}  // namespace triax
