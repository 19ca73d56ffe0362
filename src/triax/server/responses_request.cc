// OpenAI's /v1/responses as a conversation.
#include <algorithm>

#include "triax/chat/fields.h"
#include "triax/server/api_error.h"
#include "triax/server/chat_request.h"
#include "triax/server/json_out.h"

namespace triax::server {
namespace {

using chat::at_index;
using chat::Author;
using chat::Message;
using chat::Part;
using chat::present;
using chat::string_field;

std::vector<Part> parts_of(const JsonValue& content, const std::string& field) {
  std::vector<Part> out;
  if (content.is_string()) {
    out.push_back({Part::Kind::text, content.text()});
    return out;
  }
  if (!content.is_array()) {
    bad_request(field, "should be a string or an array of parts, is {}", content.kind_name());
  }
  for (std::size_t i = 0; i < content.items().size(); ++i) {
    const JsonValue& part = content.items()[i];
    const std::string where = at_index(field, i);
    if (!part.is_object()) bad_request(where, "should be an object, is {}", part.kind_name());
    const std::string type = string_field(part, "type", where);
    if (type == "input_image" || type == "input_file") {
      bad_request(where, "{} cannot be read: no vision tower is loaded; send text",
                  type == "input_image" ? "pictures" : "files");
    }
    if (type == "refusal") {
      out.push_back({Part::Kind::text, string_field(part, "refusal", where)});
    } else if (type == "input_text" || type == "output_text" || type == "text") {
      out.push_back({Part::Kind::text, string_field(part, "text", where)});
    } else {
      bad_request(where + ".type", "{} is not known here", in_quotes(type));
    }
  }
  return out;
}

// Items in a row that the assistant made are one message.
class Items {
 public:
  explicit Items(std::vector<Message>& out) : out_(out) {}

  void add(const JsonValue& item, const std::string& field) {
    if (!item.is_object()) bad_request(field, "should be an object, is {}", item.kind_name());
    const std::string type = string_field(item, "type", field);
    if (type.empty() || type == "message") {
      add_message(item, field);
    } else if (type == "function_call") {
      chat::ToolCall call;
      call.id = string_field(item, "call_id", field);
      call.name = string_field(item, "name", field);
      if (call.name.empty()) bad_request(field + ".name", "is missing");
      call.arguments = str(string_field(item, "arguments", field));
      assistant().tool_calls.push_back(std::move(call));
    } else if (type == "function_call_output") {
      Message result;
      result.author = Author::tool;
      result.tool_call_id = string_field(item, "call_id", field);
      if (result.tool_call_id.empty()) bad_request(field + ".call_id", "is missing");
      if (const JsonValue* output = present(item, "output")) {
        result.content = parts_of(*output, field + ".output");
      }
      flush();
      out_.push_back(std::move(result));
    } else if (type == "reasoning") {
      add_reasoning(item, field);
    } else {
      bad_request(field + ".type", "{} is not known here", in_quotes(type));
    }
  }

  void flush() {
    if (open_) out_.push_back(std::move(message_));
    message_ = Message{};
    open_ = false;
  }

 private:
  Message& assistant() {
    open_ = true;
    message_.author = Author::assistant;
    return message_;
  }

  void add_message(const JsonValue& item, const std::string& field) {
    const std::string role = string_field(item, "role", field);
    const JsonValue* content = present(item, "content");
    if (content == nullptr) bad_request(field + ".content", "is missing");
    std::vector<Part> parts = parts_of(*content, field + ".content");
    if (role == "assistant") {
      // What follows thinking or calls of the same turn belongs to it; a second text does not.
      if (open_ && !message_.content.empty()) flush();
      std::string text;
      for (const Part& part : parts) text += part.text;
      if (!text.empty())
        assistant().content.push_back({Part::Kind::text, text});
      else
        assistant();
      return;
    }
    Message message;
    message.author = role == "user" ? Author::user : Author::system;
    if (role != "user" && role != "system" && role != "developer") {
      bad_request(field + ".role", "{} is no role; there are user, assistant, system and developer",
                  in_quotes(role));
    }
    message.content = std::move(parts);
    flush();
    out_.push_back(std::move(message));
  }

  void add_reasoning(const JsonValue& item, const std::string& field) {
    if (open_) flush();  // a turn begins with its thinking
    Message& message = assistant();
    const JsonValue* content = present(item, "content");
    if (content == nullptr) return;
    for (std::size_t i = 0; i < content->items().size(); ++i) {
      message.reasoning +=
          string_field(content->items()[i], "text", at_index(field + ".content", i));
    }
  }

  std::vector<Message>& out_;
  Message message_;
  bool open_ = false;
};

void add_tools(const JsonValue& body, chat::Conversation& out) {
  const JsonValue* tools = present(body, "tools");
  if (tools == nullptr) return;
  if (!tools->is_array()) bad_request("tools", "should be an array, is {}", tools->kind_name());
  out.tools = JsonValue::array();
  for (std::size_t i = 0; i < tools->items().size(); ++i) {
    const JsonValue& tool = tools->items()[i];
    const std::string field = at_index("tools", i);
    if (!tool.is_object()) bad_request(field, "should be an object, is {}", tool.kind_name());
    const std::string type = string_field(tool, "type", field);
    if (type != "function") {
      bad_request(field + ".type", "{} is a tool of another server; declare functions",
                  in_quotes(type));
    }
    JsonValue function = object();
    for (const char* key : {"name", "description", "parameters", "strict"}) {
      if (const JsonValue* value = present(tool, key)) function.set(key, *value);
    }
    out.tools.push(object({{"type", str("function")}, {"function", function}}));
  }
}

void add_choice(const JsonValue& body, chat::Conversation& out) {
  const JsonValue* choice = present(body, "tool_choice");
  if (choice == nullptr) return;
  if (choice->is_object() && string_field(*choice, "type", "tool_choice") == "function" &&
      choice->find("function") == nullptr) {
    out.tool_choice = chat::ToolChoice::named;
    out.tool_choice_name = string_field(*choice, "name", "tool_choice");
    return;
  }
  chat::parse_tool_choice(*choice, out);
}

void add_format(const JsonValue& body, chat::Conversation& out) {
  const JsonValue* text = present(body, "text");
  const JsonValue* format = text == nullptr ? nullptr : present(*text, "format");
  if (format == nullptr) return;
  const std::string type = string_field(*format, "type", "text.format");
  if (type == "json_schema") {
    const JsonValue* schema = present(*format, "schema");
    if (schema == nullptr || !schema->is_object()) {
      bad_request("text.format.schema", "should be a JSON schema");
    }
    out.response_format = chat::ResponseFormat::json_schema;
    out.response_schema = *schema;
    out.response_strict = chat::flag_field(*format, "strict", "text.format", true);
  } else if (type == "json_object") {
    out.response_format = chat::ResponseFormat::json_object;
  } else if (type != "text") {
    bad_request("text.format.type", "{} is none of text, json_object and json_schema",
                in_quotes(type));
  }
}

void add_reasoning(const JsonValue& body, chat::Conversation& out) {
  out.effort = "max";
  const JsonValue* reasoning = present(body, "reasoning");
  if (reasoning == nullptr) return;
  if (!reasoning->is_object()) {
    bad_request("reasoning", "should be an object, is {}", reasoning->kind_name());
  }
  const std::string effort = string_field(*reasoning, "effort", "reasoning");
  if (effort == "none") {
    out.thinking = false;
    out.effort.reset();
  } else if (effort == "minimal" || effort == "low") {
    out.effort = "low";
  } else if (effort == "medium" || effort == "high") {
    out.effort = "high";
  } else if (!effort.empty() && effort != "max" && effort != "xhigh") {
    bad_request("reasoning.effort", "{} is no effort; there are none, low, high and max",
                in_quotes(effort));
  }
}

void add_input(const JsonValue& body, chat::Conversation& out) {
  const std::string instructions = text_field(body, "instructions").value_or("");
  if (!instructions.empty()) out.messages.push_back(chat::system_message(instructions));
  const JsonValue* input = present(body, "input");
  if (input == nullptr) bad_request("input", "is missing");
  if (input->is_string()) {
    out.messages.push_back(chat::user_message(input->text()));
    return;
  }
  if (!input->is_array()) {
    bad_request("input", "should be a string or an array of items, is {}", input->kind_name());
  }
  Items items(out.messages);
  for (std::size_t i = 0; i < input->items().size(); ++i) {
    items.add(input->items()[i], at_index("input", i));
  }
  items.flush();
}

}  // namespace

ChatRequest responses_request(const JsonValue& body, Profile profile) {
  ChatRequest out;
  for (const std::string& name : unknown_fields(body)) {
    out.warnings.push_back("not known, not looked at: " + in_quotes(name));
  }
  for (const char* key : {"previous_response_id", "conversation"}) {
    if (present(body, key) != nullptr) {
      bad_request(key, "answers are not kept here; send the whole conversation as input");
    }
  }
  if (chat::flag_field(body, "background", "", false))
    bad_request("background", "is not supported");
  out.settings = parse_settings(body, profile);
  if (const auto most = whole_field(body, "max_output_tokens", 1, std::int64_t{1} << 20)) {
    out.settings.max_tokens = static_cast<std::size_t>(*most);
  }
  out.parallel_calls = flag_field(body, "parallel_tool_calls").value_or(true);
  add_input(body, out.conversation);
  add_tools(body, out.conversation);
  add_choice(body, out.conversation);
  add_format(body, out.conversation);
  add_reasoning(body, out.conversation);
  const JsonValue same = chat::request_json(out.conversation);
  chat::check_contract(out.conversation, same);
  return out;
}

JsonValue responses_settings(const JsonValue& body, const ChatRequest& request) {
  const auto copy = [&](const char* key, JsonValue otherwise) {
    const JsonValue* value = present(body, key);
    return value == nullptr ? otherwise : *value;
  };
  const Settings& s = request.settings;
  const chat::Conversation& c = request.conversation;
  return object(
      {{"instructions", copy("instructions", {})},
       {"max_output_tokens", copy("max_output_tokens", {})},
       {"max_tool_calls", {}},
       {"metadata", copy("metadata", object())},
       {"parallel_tool_calls", flag(request.parallel_calls)},
       {"previous_response_id", {}},
       {"reasoning", object({{"effort", c.effort && c.thinking ? str(*c.effort) : str("none")},
                             {"summary", {}}})},
       {"store", flag(false)},
       {"temperature", real(s.sampling.temperature)},
       {"text", copy("text", object({{"format", object({{"type", str("text")}})}}))},
       {"tool_choice", copy("tool_choice", str("auto"))},
       {"tools", copy("tools", list())},
       {"top_logprobs", num(s.top_logprobs)},
       {"top_p", real(s.sampling.top_p)},
       {"truncation", str("disabled")},
       {"user", copy("user", {})}});
}

}  // namespace triax::server
