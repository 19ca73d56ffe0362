// Requests and answers as text, without sockets and without a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "triax/chat/chat_testing.h"
#include "triax/server/access_log.h"
#include "triax/server/chat_prompt.h"
#include "triax/server/chat_request.h"
#include "triax/server/framing.h"

namespace triax::server {
namespace {

using chat::testing::byte_tokenizer;
using chat::testing::script;
using ::testing::HasSubstr;
using ::testing::Not;

JsonValue json(const std::string& text) {
  return JsonValue::parse(text);
}

std::string field_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& fault) {
    const ApiError error = api_error_of(fault);
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    return error.field();
  }
  return "(none)";
}

// Ids through a reader; all pieces and the choice.
ChoiceDone read(const std::vector<std::int32_t>& ids, std::vector<AnswerPiece>& pieces,
                std::vector<std::string> stop = {}, FinishReason reason = FinishReason::stop) {
  ChatAnswerReader reader(byte_tokenizer(), {0, chat::Channel::think, false, std::move(stop), false,
                                             [] { return std::string("call_1"); }});
  ChoiceEnd end;
  end.reason = reason;
  for (const std::int32_t id : ids) {
    TokenOut token;
    token.id = id;
    end.ids.push_back(id);
    if (!reader.push(token, pieces)) break;
  }
  reader.finish(end, pieces);
  return reader.done();
}

const std::string kTurn =
    "why{C}think{S}{O}response{S}the answer{C}response{S}{O}tools{S}{O}call tool=\"f\" "
    "index=\"1\"{S}{O}argument key=\"s\" type=\"string\"{S}a\"b{C}argument{S}{C}call{S}{C}tools{S}"
    "{C}message{S}{E}";

TEST(Requests, SettingsOfTheOpenProfile) {
  const Settings s = parse_settings(
      json(R"({"temperature":0,"top_p":0.5,"n":2,"max_tokens":5,"max_completion_tokens":7,
               "stop":"x","seed":-1,"logit_bias":{"3":-100},"stream":true,
               "stream_options":{"include_usage":true}})"),
      Profile::open);
  EXPECT_EQ(s.sampling.temperature, 0);
  EXPECT_EQ(s.n, 2u);
  EXPECT_EQ(s.max_tokens, 7u) << "the newer field wins";
  EXPECT_EQ(s.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(s.sampling.seed, ~std::uint64_t{0});
  EXPECT_EQ(s.logit_bias.at(0).id, 3);
  EXPECT_TRUE(s.stream && s.include_usage);
  const Settings d = parse_settings(json("{}"), Profile::open);
  EXPECT_EQ(d.sampling.temperature, 1);
  EXPECT_FLOAT_EQ(d.sampling.top_p, 0.95f);
  EXPECT_FALSE(d.max_tokens);
}

TEST(Requests, TheKimiProfileTakesWhatTheHostedApiTakes) {
  for (const char* good : {"temperature\":0.6", "temperature\":1.0", "top_p\":0.95", "n\":1",
                           "presence_penalty\":0"}) {
    EXPECT_EQ(
        field_of([&] { parse_settings(json(std::string("{\"") + good + "}"), Profile::kimi); }),
        "(none)")
        << good;
  }
  for (const char* key : {"temperature", "top_p", "n", "presence_penalty"}) {
    const char* value = std::string_view(key) == "n"       ? "2"
                        : std::string_view(key) == "top_p" ? "0.8"
                                                           : "1.1";
    EXPECT_EQ(field_of([&] {
                parse_settings(json(fmt::format("{{\"{}\":{}}}", key, value)), Profile::kimi);
              }),
              key);
  }
}

TEST(Requests, FaultsNameTheirField) {
  const auto chat_field = [](const std::string& members) {
    return field_of([&] {
      chat_request(json(R"({"messages":[{"role":"user","content":"x"}],)" + members + "}"),
                   Profile::open);
    });
  };
  EXPECT_EQ(chat_field(R"("chat_template":"x")"), "chat_template");
  EXPECT_EQ(chat_field(R"("functions":[])"), "functions");
  EXPECT_EQ(chat_field(R"("thinking":{"depth":1})"), "thinking");
  EXPECT_EQ(chat_field(R"("tool_choice":"required")"), "tool_choice");
  EXPECT_EQ(chat_field(R"("unheard_of":1)"), "(none)") << "a warning";
  EXPECT_EQ(field_of([] { parse_body("[]"); }), "");
  const auto messages = [](const std::string& body) {
    return field_of([&] { messages_request(json(body), Profile::open); });
  };
  EXPECT_EQ(messages(R"({"messages":[]})"), "max_tokens");
  EXPECT_EQ(messages(R"({"max_tokens":1,"messages":[]})"), "messages");
  EXPECT_EQ(
      messages(R"({"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image"}]}]})"),
      "messages[0].content[0][0]");
  EXPECT_EQ(field_of([] { responses_request(json("{}"), Profile::open); }), "input");
}

TEST(Requests, TheThreeProtocolsSayTheSame) {
  const auto a = chat_request(
      json(R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},
        {"role":"assistant","reasoning_content":"r","content":"t","tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"o"}],
        "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]})"),
      Profile::open);
  const auto b = messages_request(
      json(R"({"max_tokens":9,"thinking":{"type":"enabled"},"system":"s","messages":[
        {"role":"user","content":"u"},{"role":"assistant","content":[
        {"type":"thinking","thinking":"r","signature":""},{"type":"text","text":"t"},
        {"type":"tool_use","id":"c1","name":"f","input":{"x":1}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"o"}]}],
        "tools":[{"name":"f","input_schema":{"type":"object"}}]})"),
      Profile::open);
  const auto c =
      responses_request(json(R"({"instructions":"s","input":[{"role":"user","content":"u"},
        {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"r"}]},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"t"}]},
        {"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1}"},
        {"type":"function_call_output","call_id":"c1","output":"o"}],
        "tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]})"),
                        Profile::open);
  const std::string text = chat::render(a.conversation).text();
  EXPECT_EQ(chat::render(b.conversation).text(), text);
  EXPECT_EQ(chat::render(c.conversation).text(), text);
  EXPECT_THAT(text, HasSubstr("tool=\"f\""));
}

TEST(Prompts, ARememberedTurnStandsAsItWasWritten) {
  chat::Conversation conversation;
  conversation.messages.push_back(chat::user_message("hi"));
  const ChatPrompt first = make_prompt(conversation, byte_tokenizer(), nullptr);
  ASSERT_EQ(first.cuts.size(), 1u);
  EXPECT_EQ(first.history_end, first.cuts[0]);
  EXPECT_EQ(first.before(), first.ids);
  EXPECT_EQ(first.pending, 7u) << "open, five bytes, sep";
}

TEST(Prompts, KeysOfTurnsDoNotSeeWhiteSpaceOfArguments) {
  chat::Message a;
  a.author = chat::Author::assistant;
  a.tool_calls.push_back({"1", "f", JsonValue::string("{\"x\": 1e2}")});
  chat::Message b = a;
  b.tool_calls[0].arguments = json("{\"x\":1e2}");
  EXPECT_EQ(turn_key(a, true), turn_key(b, true));
  b.tool_calls[0].name = "g";
  EXPECT_NE(turn_key(a, true), turn_key(b, true));
}

TEST(Prompts, PicturesAreRefused) {
  const auto request =
      chat_request(json(R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":
        {"url":"data:image/png;base64,AA=="}}]}]})"),
                   Profile::open);
  EXPECT_EQ(field_of([&] { make_prompt(request.conversation, byte_tokenizer(), nullptr); }),
            "messages[0].content[0]");
}

TEST(Answers, StopStringsAreLookedForInTheAnswerAlone) {
  std::vector<AnswerPiece> pieces;
  const ChoiceDone done = read(script(kTurn, byte_tokenizer()), pieces, {"w"});
  EXPECT_EQ(done.turn.reasoning, "why");
  EXPECT_EQ(done.turn.content, "the ans");
  EXPECT_EQ(done.stop, "w");
  EXPECT_EQ(done.turn.finish, chat::TurnFinish::stop);
  EXPECT_TRUE(done.turn.calls.empty());
}

TEST(Answers, PiecesAddUpWithAndWithoutStopStrings) {
  std::vector<AnswerPiece> a, b;
  const ChoiceDone plain = read(script(kTurn, byte_tokenizer()), a);
  const ChoiceDone watched = read(script(kTurn, byte_tokenizer()), b, {"swer?", "zzz"});
  EXPECT_EQ(plain.turn.content, "the answer");
  EXPECT_EQ(watched.turn.content, plain.turn.content);
  ASSERT_EQ(plain.turn.calls.size(), 1u);
  EXPECT_EQ(plain.turn.calls[0].arguments, R"({"s": "a\"b"})");
  EXPECT_EQ(watched.turn.calls[0].arguments, plain.turn.calls[0].arguments);
  EXPECT_EQ(plain.turn.finish, chat::TurnFinish::tool_calls);
  EXPECT_EQ(plain.reasoning_tokens, 3u + 1u);
}

TEST(Framings, ChatStreamsCarryUsageAndNoMarkers) {
  std::vector<AnswerPiece> pieces;
  const ChoiceDone done = read(script(kTurn, byte_tokenizer()), pieces);
  const AnswerUsage usage{10, 4, 6, 2};
  auto framing = chat_framing({{"id", "m", 1}, 1, true, false, true});
  std::string text = framing->open(usage);
  for (const AnswerPiece& p : pieces) text += framing->piece(p);
  text += framing->close({done}, usage);
  EXPECT_THAT(text, Not(HasSubstr("<|")));
  EXPECT_THAT(text, HasSubstr("\"finish_reason\":\"tool_calls\""));
  EXPECT_THAT(text, HasSubstr("\"choices\":[],\"usage\""));
  EXPECT_THAT(text, HasSubstr("\"cached_tokens\":4"));
  EXPECT_TRUE(text.ends_with("data: [DONE]\n\n"));
  const JsonValue whole = json(framing->whole({done}, usage));
  const JsonValue& message = *whole.find("choices")->items()[0].find("message");
  EXPECT_EQ(message.find("reasoning_content")->text(), "why");
  EXPECT_EQ(message.find("tool_calls")->items()[0].find("id")->text(), "call_1");
  EXPECT_EQ(whole.find("usage")->find("total_tokens")->text(), "16");
}

TEST(Framings, AnthropicBlocksOpenAndClose) {
  std::vector<AnswerPiece> pieces;
  const ChoiceDone done = read(script(kTurn, byte_tokenizer()), pieces);
  auto framing = messages_framing({"id", "m", 1});
  std::string text = framing->open({});
  for (const AnswerPiece& p : pieces) text += framing->piece(p);
  text += framing->close({done}, {10, 4, 6, 2});
  const auto times = [&](const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++n;
    return n;
  };
  EXPECT_EQ(times("event: content_block_start\n"), 3u);
  EXPECT_EQ(times("event: content_block_stop\n"), 3u);
  EXPECT_EQ(times("signature_delta"), 1u);
  EXPECT_THAT(text, HasSubstr("\"stop_reason\":\"tool_use\""));
  EXPECT_THAT(text, HasSubstr("\"cache_read_input_tokens\":4"));
  const JsonValue whole = json(framing->whole({done}, {10, 4, 6, 2}));
  EXPECT_EQ(whole.find("content")->items()[2].find("input")->find("s")->text(), "a\"b");
  EXPECT_EQ(whole.find("usage")->find("input_tokens")->text(), "6");
}

TEST(Framings, ResponsesEndAsTheyWouldWithoutStreaming) {
  std::vector<AnswerPiece> pieces;
  const ChoiceDone done = read(script(kTurn, byte_tokenizer()), pieces);
  auto framing = responses_framing({"id", "m", 1}, object());
  std::string text = framing->open({});
  for (const AnswerPiece& p : pieces) text += framing->piece(p);
  text += framing->close({done}, {10, 4, 6, 2});
  EXPECT_THAT(text, HasSubstr("event: response.function_call_arguments.done\n"));
  EXPECT_THAT(text, HasSubstr("event: response.completed\n"));
  const JsonValue whole = json(framing->whole({done}, {10, 4, 6, 2}));
  ASSERT_EQ(whole.find("output")->items().size(), 3u);
  EXPECT_EQ(whole.find("output")->items()[2].find("arguments")->text(), R"({"s": "a\"b"})");
}

TEST(Errors, HaveTheFormOfTheirProtocol) {
  const ApiError error(400, "invalid_request_error", "", "n", "n: is 0");
  EXPECT_EQ(
      error_body(error),
      R"({"error":{"message":"n: is 0","type":"invalid_request_error","param":"n","code":null}})");
  EXPECT_EQ(anthropic_error_body(error),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"n: is 0"}})");
}

TEST(Log, OneLineOfJson) {
  Record record;
  record.id = "a";
  record.path = "/v1/x\n";
  record.status = 200;
  const std::string line = record_json(record, 1234);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(json(line).find("time")->text(), "1.234");
}

}  // namespace
}  // namespace triax::server
