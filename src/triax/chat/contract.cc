// The stricter rules of the hosted API, and conversations as request bodies again.
#include <algorithm>
#include <unordered_set>

#include "triax/chat/conversation.h"
#include "triax/chat/fields.h"

namespace triax::chat {
namespace {

constexpr std::size_t kLongestName = 256;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_function_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

using Names = std::unordered_set<std::string>;

void check_tool(const JsonValue& tool, const std::string& field, Names& names) {
  const std::string type = string_field(tool, "type", field);
  if (type != "function") {
    bad_field(field + ".type", "should be function, is {}",
              type.empty() ? "missing" : in_quotes(type));
  }
  const JsonValue* function = present(tool, "function");
  if (function == nullptr || !function->is_object()) {
    bad_field(field + ".function", "should be an object, is {}",
              function == nullptr ? "missing" : function->kind_name());
  }
  const std::string where = field + ".function";
  const std::string name = string_field(*function, "name", where);
  if (name.empty()) bad_field(where + ".name", "is missing or empty");
  if (!is_function_name(name)) {
    bad_field(where + ".name",
              "{} is no function name: a letter or _, then letters, digits, _ and -, at most {} "
              "characters",
              in_quotes(name), kLongestName);
  }
  const JsonValue* parameters = present(*function, "parameters");
  if (parameters != nullptr && !parameters->is_object()) {
    bad_field(where + ".parameters", "should be a JSON schema, is {}", parameters->kind_name());
  }
  if (!names.insert(name).second) {
    bad_field(where + ".name", "a tool {} is declared already; give each its own name",
              in_quotes(name));
  }
}

void check_tools(const JsonValue& tools, const std::string& field, Names& names) {
  for (std::size_t i = 0; i < tools.items().size(); ++i) {
    check_tool(tools.items()[i], at_index(field, i), names);
  }
}

void check_message(const Message& message, const JsonValue& json, const std::string& field,
                   Names& names) {
  const JsonValue* tools = present(json, "tools");
  if (tools != nullptr) {
    if (message.author != Author::system) {
      bad_field(field + ".tools", "only system messages declare tools");
    }
    if (!tools->is_array()) {
      bad_field(field + ".tools", "should be an array, is {}", tools->kind_name());
    }
    if (!message.text().empty()) {
      bad_field(field + ".content", "should be empty in a message that declares tools");
    }
    check_tools(message.tools, field + ".tools", names);
  }
  if (message.author == Author::tool && message.tool_call_id.empty()) {
    bad_field(field + ".tool_call_id", "is missing");
  }
}

void check_response_format(const JsonValue& format) {
  const std::string field = "response_format";
  if (!format.is_object()) bad_field(field, "should be an object, is {}", format.kind_name());
  if (string_field(format, "type", field) != "json_schema") return;
  const std::string where = field + ".json_schema";
  const JsonValue* wrapped = present(format, "json_schema");
  if (wrapped == nullptr || !wrapped->is_object()) {
    bad_field(where, "should be an object with name and schema, is {}",
              wrapped == nullptr ? "missing" : wrapped->kind_name());
  }
  if (string_field(*wrapped, "name", where).empty()) bad_field(where + ".name", "is missing");
  const JsonValue* schema = present(*wrapped, "schema");
  if (schema == nullptr || !schema->is_object()) {
    bad_field(where + ".schema", "should be a JSON schema, is {}",
              schema == nullptr ? "missing" : schema->kind_name());
  }
}

JsonValue content_json(const Message& message) {
  const auto& parts = message.content;
  if (parts.empty()) return JsonValue::string("");
  if (parts.size() == 1 && parts[0].kind == Part::Kind::text) {
    return JsonValue::string(parts[0].text);
  }
  JsonValue out = JsonValue::array();
  for (const Part& part : parts) {
    const char* key = part.kind == Part::Kind::text    ? "text"
                      : part.kind == Part::Kind::image ? "image_url"
                                                       : "video_url";
    JsonValue item = JsonValue::object();
    item.set("type", JsonValue::string(key));
    JsonValue value = JsonValue::string(part.text);
    if (part.kind != Part::Kind::text) {
      value = JsonValue::object();
      value.set("url", JsonValue::string(part.text));
    }
    item.set(key, std::move(value));
    out.push(std::move(item));
  }
  return out;
}

JsonValue call_json(const ToolCall& call) {
  JsonValue function = JsonValue::object();
  function.set("name", JsonValue::string(call.name));
  function.set("arguments", call.arguments);
  JsonValue out = JsonValue::object();
  if (!call.id.empty()) out.set("id", JsonValue::string(call.id));
  out.set("type", JsonValue::string("function"));
  out.set("function", std::move(function));
  return out;
}

}  // namespace

void check_contract(const Conversation& conversation, const JsonValue& request) {
  if (conversation.messages.empty()) bad_field("messages", "should hold at least one message");
  Names names;
  check_tools(conversation.tools, "tools", names);
  const auto& messages = request.find("messages")->items();
  TRIAX_CHECK(messages.size() == conversation.messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    check_message(conversation.messages[i], messages[i], at_index("messages", i), names);
  }
  if (conversation.tool_choice == ToolChoice::required && names.empty()) {
    bad_field("tool_choice", "required needs tools, and none are declared");
  }
  if (conversation.tool_choice == ToolChoice::named &&
      !names.contains(conversation.tool_choice_name)) {
    bad_field("tool_choice.function.name", "no tool {} is declared",
              in_quotes(conversation.tool_choice_name));
  }
  if (const JsonValue* format = present(request, "response_format")) {
    check_response_format(*format);
  }
}

JsonValue message_json(const Message& message) {
  JsonValue out = JsonValue::object();
  out.set("role", JsonValue::string(author_name(message.author)));
  if (!message.name.empty()) out.set("name", JsonValue::string(message.name));
  out.set("content", content_json(message));
  if (message.author == Author::assistant) {
    out.set("reasoning_content", JsonValue::string(message.reasoning));
    if (!message.tool_calls.empty()) {
      JsonValue calls = JsonValue::array();
      for (const ToolCall& call : message.tool_calls) calls.push(call_json(call));
      out.set("tool_calls", std::move(calls));
    }
    if (message.partial) out.set("partial", JsonValue::boolean(true));
  }
  if (!message.tool_call_id.empty()) {
    out.set("tool_call_id", JsonValue::string(message.tool_call_id));
  }
  if (!message.tool.empty()) out.set("tool", JsonValue::string(message.tool));
  if (!message.tools.is_null()) out.set("tools", message.tools);
  return out;
}

JsonValue request_json(const Conversation& conversation) {
  JsonValue out = JsonValue::object();
  JsonValue messages = JsonValue::array();
  for (const Message& message : conversation.messages) messages.push(message_json(message));
  out.set("messages", std::move(messages));
  if (!conversation.tools.is_null()) out.set("tools", conversation.tools);
  JsonValue thinking = JsonValue::object();
  thinking.set("type", JsonValue::string(conversation.thinking ? "enabled" : "disabled"));
  if (conversation.effort) thinking.set("effort", JsonValue::string(*conversation.effort));
  out.set("thinking", std::move(thinking));
  return out;
}

}  // namespace triax::chat
