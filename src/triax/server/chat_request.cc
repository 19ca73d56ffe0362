// /v1/chat/completions.
#include "triax/server/chat_request.h"

#include <algorithm>
#include <array>

#include "triax/server/api_error.h"

namespace triax::server {
namespace {

using chat::JsonValue;

void check_thinking(const JsonValue& body) {
  static constexpr std::array kKeys = {"type", "effort", "keep", "budget_tokens"};
  const JsonValue* thinking = body.find("thinking");
  if (thinking == nullptr) return;
  for (const auto& [key, value] : thinking->members()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      bad_request("thinking", "{} is not known; there are type, effort and keep", in_quotes(key));
    }
  }
}

// `partial` stands on the last message, or nowhere.
void check_partial(const chat::Conversation& c) {
  for (std::size_t i = 0; i + 1 < c.messages.size(); ++i) {
    if (!c.messages[i].partial) continue;
    bad_request(fmt::format("messages[{}].partial", i), "only the last message may be partial");
  }
  if (!c.messages.empty() && c.messages.back().partial && !c.messages.back().tool_calls.empty()) {
    bad_request(fmt::format("messages[{}].tool_calls", c.messages.size() - 1),
                "a partial message has no tool calls");
  }
}

}  // namespace

JsonValue parse_body(const std::string& body) {
  if (chat::json_trim(body).empty()) bad_request("", "the body is empty; send a JSON object");
  JsonValue out;
  try {
    out = JsonValue::parse(body);
  } catch (const Error& error) {
    bad_request("", "the body is no JSON: {}", error.what());
  }
  if (!out.is_object()) bad_request("", "the body should be a JSON object, is {}", out.kind_name());
  return out;
}

ChatRequest chat_request(const JsonValue& body, Profile profile) {
  ChatRequest out;
  for (const std::string& name : unknown_fields(body)) {
    out.warnings.push_back("not known, not looked at: " + in_quotes(name));
  }
  check_thinking(body);
  out.settings = parse_settings(body, profile);
  out.parallel_calls = flag_field(body, "parallel_tool_calls").value_or(true);
  out.conversation = chat::parse_conversation(body);
  chat::check_contract(out.conversation, body);
  check_partial(out.conversation);
  return out;
}

}  // namespace triax::server
