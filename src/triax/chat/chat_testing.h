// What the tests of this module share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "triax/chat/conversation.h"
#include "triax/chat/reader.h"
#include "triax/chat/render.h"
#include "triax/tokenizer/rank_file.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax::chat::testing {

inline const Tokenizer& k3_tokenizer() {
  static const Tokenizer tokenizer =
      Tokenizer::load(std::filesystem::path(TRIAX_SOURCE_DIR) / "src/triax/tokenizer/k3");
  return tokenizer;
}

// Single bytes and K3's special tokens.
inline const Tokenizer& byte_tokenizer() {
  static const Tokenizer tokenizer = [] {
    const std::vector<std::string> tokens = byte_tokens(0);
    RankTable ranks = RankTable::parse(rank_file_text(tokens), "bytes");
    const auto first = static_cast<std::int32_t>(ranks.size());
    return Tokenizer(std::move(ranks), SpecialTokens::standard(first));
  }();
  return tokenizer;
}

// Entries of a file of tests/golden/xtml.
inline std::vector<JsonValue> golden(const std::string& file) {
  return JsonValue::parse(read_text_file(std::filesystem::path(TRIAX_GOLDEN_DIR) / "xtml" / file))
      .items();
}

inline std::vector<std::int32_t> golden_ids(const JsonValue& entry) {
  std::vector<std::int32_t> ids;
  for (const JsonValue& id : entry.find("ids")->items()) ids.push_back(std::stoi(id.text()));
  return ids;
}

inline std::string golden_text(const JsonValue& entry, const char* key) {
  const JsonValue* value = entry.find(key);
  return value == nullptr ? "" : value->text();
}

// A conversation as render.json writes it: settings beside the messages, none of them implied.
inline Conversation golden_conversation(const JsonValue& entry, RenderOptions& options) {
  ParseRules rules;
  rules.developer_is_system = false;
  Conversation out;
  out.messages = parse_messages(*entry.find("messages"), "messages", rules);
  for (const auto& [key, value] : entry.find("options")->members()) {
    if (key == "tools") {
      out.tools = value;
    } else if (key == "thinking") {
      out.thinking = value.is_true();
    } else if (key == "thinking_effort") {
      out.effort = value.text();
    } else if (key == "tool_choice") {
      parse_tool_choice(value, out);
    } else if (key == "response_format") {
      parse_response_format(value, out);
    } else if (key == "add_generation_prompt") {
      options.add_generation_prompt = value.is_true();
    } else if (key == "image_prompts") {
      options.image_prompts.emplace();
      for (const JsonValue& prompt : value.items()) options.image_prompts->push_back(prompt.text());
    } else {
      ADD_FAILURE() << "option " << key;
    }
  }
  return out;
}

// Ids of a short notation: O C S E are structure, the rest is text, words in {} stand for
// themselves: "r{C}think{S}".
inline std::vector<std::int32_t> script(const std::string& text, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids;
  std::string held;
  const auto flush = [&] {
    const auto more = tokenizer.encode(held);
    ids.insert(ids.end(), more.begin(), more.end());
    held.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{' || i + 2 >= text.size() || text[i + 2] != '}') {
      held += text[i];
      continue;
    }
    flush();
    const char mark = text[i + 1];
    const Role role = mark == 'O'   ? Role::Open
                      : mark == 'C' ? Role::Close
                      : mark == 'S' ? Role::Sep
                                    : Role::EndOfMsg;
    ids.push_back(tokenizer.required_id(role));
    i += 2;
  }
  flush();
  return ids;
}

// A turn read id by id; what the events say is checked to be what the result says.
inline Turn read_turn(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                      const ReaderOptions& options = {}, bool hit_length = false) {
  TurnReader reader(tokenizer, options);
  Turn joined;
  if (options.opened == Channel::think) joined.reasoning.emplace();
  const auto take = [&](const std::vector<TurnEvent>& events) {
    for (const TurnEvent& event : events) {
      EXPECT_FALSE(event.kind != TurnEvent::Kind::call && event.text.empty());
      if (event.kind == TurnEvent::Kind::reasoning) {
        joined.reasoning = joined.reasoning.value_or("") + event.text;
      } else if (event.kind == TurnEvent::Kind::content) {
        joined.content += event.text;
      } else if (event.kind == TurnEvent::Kind::call) {
        EXPECT_EQ(event.index, joined.calls.size());
        joined.calls.push_back({event.text, ""});
      } else {
        EXPECT_EQ(event.index + 1, joined.calls.size()) << "only the last call goes on";
        if (event.index < joined.calls.size()) joined.calls[event.index].arguments += event.text;
      }
    }
  };
  for (const std::int32_t id : ids) take(reader.push(id));
  take(reader.finish(hit_length));
  const Turn& turn = reader.turn();
  EXPECT_EQ(joined.content, turn.content);
  EXPECT_EQ(joined.reasoning.value_or(""), turn.reasoning.value_or(""));
  EXPECT_EQ(joined.calls.size(), turn.calls.size());
  for (std::size_t i = 0; i < std::min(joined.calls.size(), turn.calls.size()); ++i) {
    EXPECT_EQ(joined.calls[i].name, turn.calls[i].name);
    EXPECT_EQ(joined.calls[i].arguments, turn.calls[i].arguments);
  }
  return turn;
}

// The field and the line of the RequestError that `action` throws.
struct Refusal {
  std::string field, line;
  RequestError::Code code = RequestError::Code::bad_request;
};
inline Refusal refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const RequestError& error) {
    const std::string line = error.what();
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    return {error.field(), line, error.code()};
  }
  ADD_FAILURE() << "no RequestError thrown";
  return {};
}

}  // namespace triax::chat::testing
