// Generated turns: the golden files by id, the way back to the prompt, cuts, and random ids.
#include "triax/chat/reader.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "triax/chat/chat_testing.h"
#include "triax/core/rng.h"

namespace triax::chat {
namespace {

using testing::byte_tokenizer;
using testing::golden;
using testing::golden_conversation;
using testing::golden_ids;
using testing::golden_text;
using testing::k3_tokenizer;
using testing::read_turn;
using testing::script;

ReaderOptions opened(const std::string& channel) {
  ReaderOptions options;
  options.opened = channel == "think"      ? Channel::think
                   : channel == "response" ? Channel::response
                                           : Channel::none;
  return options;
}

// As parse.json writes a message.
std::string message_text(const Turn& turn) {
  JsonValue out = JsonValue::object();
  out.set("content", turn.content_null() ? JsonValue() : JsonValue::string(turn.content));
  if (turn.reasoning) out.set("reasoning_content", JsonValue::string(*turn.reasoning));
  if (!turn.calls.empty()) {
    JsonValue calls = JsonValue::array();
    for (const Turn::Call& call : turn.calls) {
      JsonValue one = JsonValue::object();
      one.set("name", JsonValue::string(call.name));
      one.set("arguments", JsonValue::string(call.arguments));
      calls.push(std::move(one));
    }
    out.set("tool_calls", std::move(calls));
  }
  return json_text(out, kJsonCompact);
}

TEST(ReaderGolden, Messages) {
  std::size_t count = 0;
  for (const JsonValue& entry : golden("parse.json")) {
    const bool cut = entry.find("hit_length")->is_true();
    const Turn turn = read_turn(k3_tokenizer(), golden_ids(entry),
                                opened(golden_text(entry, "prompt_opened")), cut);
    EXPECT_EQ(message_text(turn), json_text(*entry.find("message"), kJsonCompact))
        << golden_text(entry, "name");
    EXPECT_EQ(finish_name(turn.finish), golden_text(entry, "finish_reason"))
        << golden_text(entry, "name");
    ++count;
  }
  EXPECT_EQ(count, 75u);
}

std::string events_text(const std::vector<TurnEvent>& events) {
  JsonValue out = JsonValue::array();
  for (const TurnEvent& event : events) {
    JsonValue one = JsonValue::object();
    const bool call = event.kind == TurnEvent::Kind::call;
    one.set("kind", JsonValue::string(event.kind == TurnEvent::Kind::reasoning ? "reasoning"
                                      : event.kind == TurnEvent::Kind::content ? "content"
                                      : call                                   ? "call"
                                                                               : "arguments"));
    if (call || event.kind == TurnEvent::Kind::arguments) {
      one.set("index", JsonValue::number(static_cast<std::int64_t>(event.index)));
    }
    one.set(call ? "name" : "text", JsonValue::string(event.text));
    out.push(std::move(one));
  }
  return json_text(out, kJsonCompact);
}

TEST(ReaderGolden, EventsOfEachToken) {
  const std::vector<JsonValue> turns = golden("parse.json");
  std::size_t count = 0;
  for (const JsonValue& entry : golden("stream.json")) {
    const std::string name = golden_text(entry, "name");
    const auto turn = std::find_if(turns.begin(), turns.end(), [&](const JsonValue& t) {
      return golden_text(t, "name") == name;
    });
    ASSERT_NE(turn, turns.end()) << name;
    const auto ids = golden_ids(entry);
    EXPECT_EQ(ids, golden_ids(*turn)) << name;
    TurnReader reader(k3_tokenizer(), opened(golden_text(*turn, "prompt_opened")));
    const auto& events = entry.find("events")->items();
    ASSERT_EQ(events.size(), ids.size()) << name;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(events_text(reader.push(ids[i])), json_text(events[i], kJsonCompact))
          << name << ", token " << i;
    }
    EXPECT_EQ(events_text(reader.finish(turn->find("hit_length")->is_true())),
              json_text(*entry.find("events_at_end"), kJsonCompact))
        << name;
    ++count;
  }
  EXPECT_EQ(count, 10u);
}

std::string joined(const std::vector<Segment>& segments) {
  std::string out;
  for (const Segment& segment : segments) out += segment.text;
  return out;
}

// Every turn of an assistant in render.json, read and rendered again.
TEST(ReaderGolden, WhatWasReadRendersAsItWas) {
  std::size_t same_segments = 0, same_text = 0, turns = 0;
  for (const JsonValue& entry : golden("render.json")) {
    if (entry.find("error") != nullptr) continue;
    RenderOptions options;
    const Conversation c = golden_conversation(entry, options);
    const Rendered r = render(c, options);
    for (const MessageSpan& span : r.messages) {
      if (span.body == span.end) continue;
      ++turns;
      const std::vector<Segment> body(r.segments.begin() + static_cast<std::ptrdiff_t>(span.body),
                                      r.segments.begin() + static_cast<std::ptrdiff_t>(span.end));
      ReaderOptions how;
      how.opened = c.thinking ? Channel::think : Channel::response;
      const Turn turn = read_turn(k3_tokenizer(), encode_segments(body, k3_tokenizer()), how);
      const std::vector<Segment> again = render_body(message_of(turn), c.thinking);
      if (again == body) ++same_segments;
      if (joined(again) == joined(body)) ++same_text;
      EXPECT_EQ(joined(again), joined(body)) << golden_text(entry, "name");
    }
  }
  EXPECT_EQ(turns, 56u);
  EXPECT_EQ(same_segments, 55u) << "all but the one whose content has two parts";
  EXPECT_EQ(same_text, 56u);
}

// ---- channels

TEST(Reader, ChannelsOfTheAnswer) {
  for (const Tokenizer* t : {&k3_tokenizer(), &byte_tokenizer()}) {
    const auto read = [&](const std::string& text, const std::string& channel = "think",
                          bool cut = false) {
      return read_turn(*t, script(text, *t), opened(channel), cut);
    };
    for (const char* text : {"r1{C}think{S}{O}response{S}hi{C}response{S}{C}message{S}{E}",
                             "r1{O}response{S}hi{C}response{S}{C}message{S}{E}"}) {
      const Turn turn = read(text);
      EXPECT_EQ(turn.reasoning, "r1");
      EXPECT_EQ(turn.content, "hi");
      EXPECT_EQ(turn.finish, TurnFinish::stop);
    }
    const Turn called =
        read("r1{O}tools{S}{O}call tool=\"f\" index=\"1\"{S}{C}call{S}{C}tools{S}{C}message{S}{E}");
    EXPECT_EQ(called.reasoning, "r1");
    EXPECT_EQ(called.content, "");
    EXPECT_TRUE(called.content_null());
    ASSERT_EQ(called.calls.size(), 1u);
    EXPECT_EQ(called.calls[0].arguments, "{}");
    EXPECT_EQ(called.finish, TurnFinish::tool_calls);
    EXPECT_EQ(read("a <|close|>think<|sep|> b").reasoning, "a <|close|>think<|sep|> b");
    const Turn cut = read("half a", "think", true);
    EXPECT_EQ(cut.reasoning, "half a");
    EXPECT_EQ(cut.content, "");
    EXPECT_EQ(cut.finish, TurnFinish::length);
    const Turn plain = read("hi{C}response{S}{C}message{S}{E}", "response");
    EXPECT_FALSE(plain.reasoning);
    EXPECT_EQ(plain.content, "hi");
  }
}

TEST(Reader, EveryEndIdEndsTheTurn) {
  for (const Role end : {Role::EndOfMsg, Role::Eos, Role::Eot}) {
    std::vector<std::int32_t> ids = script("r{C}think{S}{O}response{S}exact ", k3_tokenizer());
    ids.push_back(k3_tokenizer().required_id(end));
    for (const std::int32_t id : script("more", k3_tokenizer())) ids.push_back(id);
    const Turn turn = read_turn(k3_tokenizer(), ids);
    EXPECT_EQ(turn.content, "exact ");
    EXPECT_EQ(turn.finish, TurnFinish::stop);
    ReaderOptions on;
    on.ignore_end = true;
    const Turn longer = read_turn(k3_tokenizer(), ids, on, true);
    EXPECT_EQ(longer.content, "exact more");
    EXPECT_EQ(longer.finish, TurnFinish::length);
  }
  const Turn nothing =
      read_turn(k3_tokenizer(), script("r{C}think{S}{O}response{S}a", k3_tokenizer()));
  EXPECT_EQ(nothing.content, "a") << "an end without any token";
}

TEST(Reader, AMessageOfSomebodyElseIsNotTheAnswer) {
  const Turn turn = read_turn(
      k3_tokenizer(),
      script("r{C}think{S}{O}response{S}a{C}response{S}{O}message role=\"user\"{S}b{C}message{S}",
             k3_tokenizer()));
  EXPECT_EQ(turn.content, "a");
}

TEST(Reader, OtherSpecialTokensAndForeignIdsSayNothing) {
  std::vector<std::int32_t> ids = script("a", k3_tokenizer());
  for (const Role role : {Role::Bos, Role::Pad, Role::Unk, Role::StartHeader, Role::MediaPad}) {
    ids.push_back(k3_tokenizer().required_id(role));
  }
  for (const std::int32_t id :
       {k3_tokenizer().rank_count() + 200, k3_tokenizer().vocab_size(), -1}) {
    ids.push_back(id);
  }
  for (const std::int32_t id : script("b", k3_tokenizer())) ids.push_back(id);
  EXPECT_EQ(read_turn(k3_tokenizer(), ids).reasoning, "ab");
}

TEST(Reader, SaysWhichChannelItIsIn) {
  TurnReader reader(k3_tokenizer(), opened("think"));
  EXPECT_EQ(reader.in_text(), Channel::think);
  for (const std::int32_t id : script("r{C}think", k3_tokenizer())) reader.push(id);
  EXPECT_EQ(reader.in_text(), Channel::none);
  for (const std::int32_t id : script("{S}{O}response{S}a", k3_tokenizer())) reader.push(id);
  EXPECT_EQ(reader.in_text(), Channel::response);
  for (const std::int32_t id : script("{C}response{S}{E}", k3_tokenizer())) reader.push(id);
  EXPECT_EQ(reader.in_text(), Channel::none);
  EXPECT_TRUE(reader.ended());
}

TEST(Reader, StrictJsonTakesNoNan) {
  const auto ids =
      script("{O}call tool=\"f\"{S}{O}argument key=\"a\" type=\"number\"{S}NaN{E}", k3_tokenizer());
  EXPECT_EQ(read_turn(k3_tokenizer(), ids).calls.at(0).arguments, "{\"a\": NaN}");
  ReaderOptions strict;
  strict.strict_json = true;
  EXPECT_EQ(read_turn(k3_tokenizer(), ids, strict).calls.at(0).arguments, "{\"a\": \"NaN\"}");
}

// ---- streaming a tool call

std::string long_text() {
  static const std::string piece = "say \"hi\" \\ and\n<|close|>argument<|sep|> 😀é\t";
  std::string out;
  while (out.size() < 2000) out += piece;
  return out;
}

std::vector<std::int32_t> two_calls(const Tokenizer& t) {
  return script(
      "r{C}think{S}{O}response{S}{C}response{S}{O}tools{S}{O}call tool=\"write_file\" "
      "index=\"1\"{S}{O}argument key=\"path\" type=\"string\"{S}a.txt{C}argument{S}{O}argument "
      "key=\"content\" type=\"string\"{S}" +
          long_text() +
          "{C}argument{S}{C}call{S}{O}call tool=\"wait\" index=\"2\"{S}{O}argument key=\"seconds\" "
          "type=\"number\"{S}3{C}argument{S}{C}call{S}{C}tools{S}{C}message{S}{E}",
      t);
}

TEST(Reader, StreamsAToolCall) {
  for (const Tokenizer* t : {&k3_tokenizer(), &byte_tokenizer()}) {
    const auto ids = two_calls(*t);
    TurnReader reader(*t, opened("think"));
    std::vector<std::string> arguments(2);
    std::vector<std::size_t> deltas(2, 0);
    std::size_t calls = 0, first = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      for (const TurnEvent& event : reader.push(ids[i])) {
        if (event.kind == TurnEvent::Kind::call) {
          EXPECT_EQ(event.index, calls++);
        } else if (event.kind == TurnEvent::Kind::arguments) {
          if (event.index == 0 && deltas[0] == 0) first = i;
          ++deltas.at(event.index);
          arguments.at(event.index) += event.text;
        }
      }
    }
    EXPECT_TRUE(reader.finish(false).empty());
    EXPECT_EQ(calls, 2u);
    EXPECT_GE(deltas[0], 50u);
    // The text before the call is spelled byte by byte in the small vocabulary.
    EXPECT_LT(first, t == &k3_tokenizer() ? ids.size() / 10 : ids.size() / 5);
    const auto parsed = nlohmann::json::parse(arguments[0]);
    EXPECT_EQ(parsed["path"], "a.txt");
    EXPECT_EQ(parsed["content"], long_text());
    EXPECT_EQ(arguments[1], "{\"seconds\": 3}");
    EXPECT_EQ(reader.turn().finish, TurnFinish::tool_calls);
  }
}

TEST(Reader, ACutAtAnyTokenIsAPrefix) {
  const auto ids = two_calls(k3_tokenizer());
  const Turn whole = read_turn(k3_tokenizer(), ids);
  for (std::size_t cut = 0; cut + 4 < ids.size(); ++cut) {
    TurnReader reader(k3_tokenizer(), opened("think"));
    for (std::size_t i = 0; i < cut; ++i) reader.push(ids[i]);
    EXPECT_TRUE(reader.finish(true).empty());
    const Turn& turn = reader.turn();
    EXPECT_EQ(turn.finish, TurnFinish::length);
    ASSERT_LE(turn.calls.size(), whole.calls.size());
    for (std::size_t i = 0; i < turn.calls.size(); ++i) {
      EXPECT_EQ(turn.calls[i].name, whole.calls[i].name);
      EXPECT_TRUE(whole.calls[i].arguments.starts_with(turn.calls[i].arguments))
          << "cut at " << cut;
    }
  }
}

// ---- any ids

TEST(Reader, RandomIdsNeverLeakAMarker) {
  const Tokenizer& t = byte_tokenizer();
  const std::vector<std::string> words = {"think",
                                          "response",
                                          "tools",
                                          "message",
                                          "call",
                                          "call tool=\"f\"",
                                          "argument key=\"k\" type=\"string\"",
                                          "argument key=\"k\"",
                                          "json",
                                          "argument",
                                          "x",
                                          " ",
                                          "\xC3",
                                          "1",
                                          "{}",
                                          "message role=\"user\""};
  Rng rng(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::int32_t> ids;
    const std::size_t length = rng.next() % 60;
    while (ids.size() < length) {
      const std::uint64_t pick = rng.next() % 10;
      if (pick < 5) {
        static constexpr std::array<Role, 6> kRoles = {Role::Open, Role::Close,    Role::Sep,
                                                       Role::Sep,  Role::MediaPad, Role::Bos};
        ids.push_back(t.required_id(kRoles[rng.next() % kRoles.size()]));
      } else if (pick == 5 && rng.next() % 8 == 0) {
        ids.push_back(t.required_id(Role::EndOfMsg));
      } else {
        // Bytes as they are: some end within a code point.
        for (const char c : words[rng.next() % words.size()]) {
          ids.push_back(t.ranks().find_byte(c));
        }
      }
    }
    const Channel channel = static_cast<Channel>(rng.next() % 3);
    ReaderOptions options;
    options.opened = channel;
    const Turn turn = read_turn(t, ids, options, rng.next() % 2 == 0);
    std::string all = turn.content + turn.reasoning.value_or("");
    for (const Turn::Call& call : turn.calls) all += call.name + call.arguments;
    // No word holds one of these, so only a name of a special token could bring it in.
    EXPECT_EQ(all.find_first_of("<|"), std::string::npos) << all;
  }
}

}  // namespace
}  // namespace triax::chat
