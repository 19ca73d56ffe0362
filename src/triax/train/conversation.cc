// Conversations through the chat module.
#include "triax/train/conversation.h"

#include <algorithm>

#include "triax/chat/conversation.h"
#include "triax/chat/json.h"
#include "triax/chat/render.h"
#include "triax/core/error.h"

namespace triax::train {
namespace {

// A data line as a request: "thinking_effort" may stand beside "messages".
chat::Conversation parse(std::string_view line, std::string_view where) {
  try {
    chat::JsonValue request = chat::JsonValue::parse(line);
    const chat::JsonValue* effort = request.find("thinking_effort");
    if (effort != nullptr && !effort->is_null()) {
      chat::JsonValue more = chat::JsonValue::object();
      more.set("thinking_effort", *effort);
      request.set("chat_template_kwargs", more);
    }
    return chat::parse_conversation(request);
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
}

}  // namespace

std::vector<std::int32_t> render_conversation(std::string_view line, std::string_view where,
                                              const Tokenizer& tokenizer,
                                              std::vector<std::uint8_t>& learn) {
  const chat::Conversation conversation = parse(line, where);
  try {
    chat::RenderOptions options;
    options.add_generation_prompt = false;
    chat::Encoded encoded = chat::encode(chat::render(conversation, options), tokenizer);
    learn = std::move(encoded.generated);
    return std::move(encoded.ids);
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
}

std::string conversation_text(std::string_view line, std::string_view where) {
  const chat::Conversation conversation = parse(line, where);
  std::string out;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) out.append(text).append("\n");
  };
  for (const chat::JsonValue* tools : conversation.declared_tools()) {
    add(chat::json_text(*tools, chat::kJsonSorted));
  }
  for (const chat::Message& m : conversation.messages) {
    add(m.reasoning);
    add(m.text());
    for (const chat::ToolCall& call : m.tool_calls) {
      add(call.name);
      add(call.arguments.is_string() ? call.arguments.text()
                                     : chat::json_text(call.arguments, chat::kJsonCompact));
    }
  }
  return out;
}

}  // namespace triax::train
