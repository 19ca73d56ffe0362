// Anthropic's /v1/messages as a conversation.
#include <algorithm>
#include <array>

#include "triax/chat/fields.h"
#include "triax/server/api_error.h"
#include "triax/server/chat_request.h"
#include "triax/server/json_out.h"

namespace triax::server {
namespace {

using chat::at_index;
using chat::Author;
using chat::Conversation;
using chat::Message;
using chat::Part;
using chat::present;
using chat::string_field;

// The text of a string, or of text blocks.
std::vector<Part> text_parts(const JsonValue& content, const std::string& field) {
  std::vector<Part> out;
  if (content.is_string()) {
    out.push_back({Part::Kind::text, content.text()});
    return out;
  }
  if (!content.is_array()) {
    bad_request(field, "should be a string or an array of blocks, is {}", content.kind_name());
  }
  for (std::size_t i = 0; i < content.items().size(); ++i) {
    const JsonValue& block = content.items()[i];
    const std::string where = at_index(field, i);
    if (!block.is_object()) bad_request(where, "should be an object, is {}", block.kind_name());
    const std::string type = string_field(block, "type", where);
    if (type == "image" || type == "document") {
      bad_request(where, "{} cannot be read: no vision tower is loaded; send text",
                  type == "image" ? "pictures" : "documents");
    }
    if (type != "text") bad_request(where + ".type", "{} is not known here", in_quotes(type));
    out.push_back({Part::Kind::text, string_field(block, "text", where)});
  }
  return out;
}

void add_result(const JsonValue& block, const std::string& where, Conversation& out) {
  Message result;
  result.author = Author::tool;
  result.tool_call_id = string_field(block, "tool_use_id", where);
  if (result.tool_call_id.empty()) bad_request(where + ".tool_use_id", "is missing");
  if (const JsonValue* content = present(block, "content")) {
    result.content = text_parts(*content, where + ".content");
  }
  out.messages.push_back(std::move(result));
}

// Blocks of a user: results of tools are messages of their own.
void add_user(const JsonValue& content, const std::string& field, Conversation& out) {
  Message message;
  const auto flush = [&] {
    if (!message.content.empty()) out.messages.push_back(std::move(message));
    message = Message{};
  };
  if (content.is_string()) {
    message.content = text_parts(content, field);
    return flush();
  }
  if (!content.is_array()) {
    bad_request(field, "should be a string or an array of blocks, is {}", content.kind_name());
  }
  for (std::size_t i = 0; i < content.items().size(); ++i) {
    const JsonValue& block = content.items()[i];
    const std::string where = at_index(field, i);
    if (block.is_object() && string_field(block, "type", where) == "tool_result") {
      flush();
      add_result(block, where, out);
      continue;
    }
    const auto parts = text_parts(list({block}), where);
    message.content.insert(message.content.end(), parts.begin(), parts.end());
  }
  flush();
}

void add_assistant(const JsonValue& content, const std::string& field, bool last,
                   Conversation& out) {
  Message message;
  message.author = Author::assistant;
  std::string text;
  if (content.is_string()) {
    text = content.text();
  } else if (!content.is_array()) {
    bad_request(field, "should be a string or an array of blocks, is {}", content.kind_name());
  }
  for (std::size_t i = 0; i < content.items().size(); ++i) {
    const JsonValue& block = content.items()[i];
    const std::string where = at_index(field, i);
    if (!block.is_object()) bad_request(where, "should be an object, is {}", block.kind_name());
    const std::string type = string_field(block, "type", where);
    if (type == "thinking") {
      message.reasoning += string_field(block, "thinking", where);
    } else if (type == "redacted_thinking") {
      continue;
    } else if (type == "tool_use") {
      chat::ToolCall call;
      call.id = string_field(block, "id", where);
      call.name = string_field(block, "name", where);
      if (call.name.empty()) bad_request(where + ".name", "is missing");
      if (const JsonValue* input = present(block, "input")) {
        if (!input->is_object()) {
          bad_request(where + ".input", "should be an object, is {}", input->kind_name());
        }
        // As a model writes it: an object given as text keeps its literals.
        call.arguments = str(compact(*input));
      }
      message.tool_calls.push_back(std::move(call));
    } else {
      for (const Part& part : text_parts(list({block}), where)) text += part.text;
    }
  }
  if (!text.empty()) message.content.push_back({Part::Kind::text, text});
  message.partial = last;  // an answer that is to be gone on with
  out.messages.push_back(std::move(message));
}

JsonValue tool_of(const JsonValue& tool, const std::string& field) {
  if (!tool.is_object()) bad_request(field, "should be an object, is {}", tool.kind_name());
  const std::string type = string_field(tool, "type", field);
  if (!type.empty() && type != "custom") {
    bad_request(field + ".type", "{} is a tool of another server; declare your own with a schema",
                in_quotes(type));
  }
  JsonValue function = object({{"name", str(string_field(tool, "name", field))}});
  const std::string about = string_field(tool, "description", field);
  if (!about.empty()) function.set("description", str(about));
  if (const JsonValue* schema = present(tool, "input_schema")) {
    function.set("parameters", *schema);
  }
  if (const JsonValue* strict = present(tool, "strict")) function.set("strict", *strict);
  return object({{"type", str("function")}, {"function", function}});
}

void add_tools(const JsonValue& body, ChatRequest& out) {
  if (const JsonValue* tools = present(body, "tools")) {
    if (!tools->is_array()) bad_request("tools", "should be an array, is {}", tools->kind_name());
    out.conversation.tools = JsonValue::array();
    for (std::size_t i = 0; i < tools->items().size(); ++i) {
      out.conversation.tools.push(tool_of(tools->items()[i], at_index("tools", i)));
    }
  }
  const JsonValue* choice = present(body, "tool_choice");
  if (choice == nullptr) return;
  const std::string type = string_field(*choice, "type", "tool_choice");
  if (type == "any") {
    out.conversation.tool_choice = chat::ToolChoice::required;
  } else if (type == "tool") {
    out.conversation.tool_choice = chat::ToolChoice::named;
    out.conversation.tool_choice_name = string_field(*choice, "name", "tool_choice");
  } else if (type == "none") {
    out.conversation.tool_choice = chat::ToolChoice::none;
  } else if (type != "auto") {
    bad_request("tool_choice.type", "{} is none of auto, any, tool and none", in_quotes(type));
  }
  out.parallel_calls =
      !chat::flag_field(*choice, "disable_parallel_tool_use", "tool_choice", false);
}

// K3 knows three efforts; what lies between goes to the next higher one.
std::string effort_of(const std::string& effort) {
  if (effort == "low" || effort == "high" || effort == "max") return effort;
  if (effort == "minimal") return "low";
  if (effort == "medium") return "high";
  if (effort == "xhigh") return "max";
  bad_request("output_config.effort", "{} is no effort; there are low, high and max",
              in_quotes(effort));
}

// Thinking is off unless it is asked for, as Anthropic has it.
void add_thinking(const JsonValue& body, Conversation& out) {
  out.thinking = false;
  if (const JsonValue* thinking = present(body, "thinking")) {
    const std::string type = string_field(*thinking, "type", "thinking");
    if (type != "enabled" && type != "disabled" && type != "adaptive") {
      bad_request("thinking.type", "{} is none of enabled, adaptive and disabled", in_quotes(type));
    }
    out.thinking = type != "disabled";
  }
  if (!out.thinking) return;
  out.effort = "max";
  if (const JsonValue* config = present(body, "output_config")) {
    const std::string effort = string_field(*config, "effort", "output_config");
    if (!effort.empty()) out.effort = effort_of(effort);
  }
}

void add_format(const JsonValue& body, Conversation& out) {
  const JsonValue* config = present(body, "output_config");
  const JsonValue* format = config == nullptr ? nullptr : present(*config, "format");
  if (format == nullptr) return;
  if (string_field(*format, "type", "output_config.format") != "json_schema") {
    bad_request("output_config.format.type", "should be json_schema");
  }
  const JsonValue* schema = present(*format, "schema");
  if (schema == nullptr || !schema->is_object()) {
    bad_request("output_config.format.schema", "should be a JSON schema");
  }
  out.response_format = chat::ResponseFormat::json_schema;
  out.response_schema = *schema;
}

void add_messages(const JsonValue& body, Conversation& out) {
  if (const JsonValue* system = present(body, "system")) {
    Message message;
    message.author = Author::system;
    message.content = text_parts(*system, "system");
    out.messages.push_back(std::move(message));
  }
  const JsonValue* messages = present(body, "messages");
  if (messages == nullptr || !messages->is_array() || messages->items().empty()) {
    bad_request("messages", "should be an array of at least one message");
  }
  for (std::size_t i = 0; i < messages->items().size(); ++i) {
    const JsonValue& message = messages->items()[i];
    const std::string field = at_index("messages", i);
    if (!message.is_object()) bad_request(field, "should be an object, is {}", message.kind_name());
    const std::string role = string_field(message, "role", field);
    const JsonValue* content = present(message, "content");
    if (content == nullptr) bad_request(field + ".content", "is missing");
    if (role == "user") {
      add_user(*content, field + ".content", out);
    } else if (role == "assistant") {
      add_assistant(*content, field + ".content", i + 1 == messages->items().size(), out);
    } else if (role == "system") {
      Message system;
      system.author = Author::system;
      system.content = text_parts(*content, field + ".content");
      out.messages.push_back(std::move(system));
    } else {
      bad_request(field + ".role", "{} is neither user nor assistant", in_quotes(role));
    }
  }
}

}  // namespace

ChatRequest messages_request(const JsonValue& body, Profile profile) {
  ChatRequest out;
  for (const std::string& name : unknown_fields(body)) {
    out.warnings.push_back("not known, not looked at: " + in_quotes(name));
  }
  out.settings = parse_settings(body, profile);
  if (!out.settings.max_tokens || present(body, "max_tokens") == nullptr) {
    bad_request("max_tokens", "is missing");
  }
  out.settings.stop = texts_field(body, "stop_sequences", 16, 256);
  add_messages(body, out.conversation);
  add_tools(body, out);
  add_thinking(body, out.conversation);
  add_format(body, out.conversation);
  // The same rules as for OpenAI's form, on the same conversation.
  const JsonValue same = chat::request_json(out.conversation);
  chat::check_contract(out.conversation, same);
  return out;
}

}  // namespace triax::server
