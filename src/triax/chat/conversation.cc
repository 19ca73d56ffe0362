#include "triax/chat/conversation.h"

#include "triax/chat/fields.h"

namespace triax::chat {
namespace {

Author parse_author(const JsonValue& message, const std::string& field, const ParseRules& rules) {
  const JsonValue* role = message.find("role");
  if (role == nullptr) bad_field(field + ".role", "is missing");
  if (!role->is_string()) {
    bad_field(field + ".role", "should be a string, is {}", role->kind_name());
  }
  const std::string& name = role->text();
  if (name == "developer" && rules.developer_is_system) return Author::system;
  for (const Author author : {Author::system, Author::user, Author::assistant, Author::tool}) {
    if (name == author_name(author)) return author;
  }
  bad_field(field + ".role", "{} is no role; there are system, user, assistant and tool",
            in_quotes(name));
}

// Where a picture or video is: {"url": ...}, or the URL alone.
std::string parse_url(const JsonValue& part, const std::string& type, const std::string& field) {
  const JsonValue* at = present(part, type);
  if (at == nullptr) bad_field(field + "." + type, "is missing");
  if (at->is_string()) return at->text();
  if (!at->is_object()) {
    bad_field(field + "." + type, "should be an object with a url, is {}", at->kind_name());
  }
  const std::string url = string_field(*at, "url", field + "." + type);
  if (url.empty()) bad_field(field + "." + type + ".url", "is missing");
  return url;
}

Part parse_part(const JsonValue& part, const std::string& field) {
  if (part.is_string()) return {Part::Kind::text, part.text()};
  if (!part.is_object()) bad_field(field, "should be an object, is {}", part.kind_name());
  const std::string type = string_field(part, "type", field);
  if (type == "text") {
    const JsonValue* text = part.find("text");
    if (text == nullptr || !text->is_string()) {
      bad_field(field + ".text", "should be a string, {}",
                text == nullptr ? "is missing" : text->kind_name());
    }
    return {Part::Kind::text, text->text()};
  }
  if (type == "image_url" || type == "image") {
    return {Part::Kind::image, parse_url(part, type, field)};
  }
  if (type == "video_url" || type == "video") {
    return {Part::Kind::video, parse_url(part, type, field)};
  }
  bad_field(field + ".type", "{} is no kind of content; there are text, image_url and video_url",
            in_quotes(type));
}

std::vector<Part> parse_content(const JsonValue& message, const std::string& field) {
  std::vector<Part> parts;
  const JsonValue* content = present(message, "content");
  if (content == nullptr) return parts;
  if (content->is_string()) {
    parts.push_back({Part::Kind::text, content->text()});
    return parts;
  }
  if (!content->is_array()) {
    bad_field(field + ".content", "should be a string or an array of parts, is {}",
              content->kind_name());
  }
  for (std::size_t i = 0; i < content->items().size(); ++i) {
    parts.push_back(parse_part(content->items()[i], at_index(field + ".content", i)));
  }
  return parts;
}

ToolCall parse_call(const JsonValue& call, const std::string& field) {
  if (!call.is_object()) bad_field(field, "should be an object, is {}", call.kind_name());
  ToolCall out;
  out.id = string_field(call, "id", field);
  const JsonValue* function = present(call, "function");
  std::string where = field;
  if (function != nullptr) where += ".function";
  const JsonValue& holder = function != nullptr ? *function : call;
  if (!holder.is_object()) bad_field(where, "should be an object, is {}", holder.kind_name());
  out.name = string_field(holder, "name", where);
  if (out.name.empty()) bad_field(where + ".name", "is missing");
  if (const JsonValue* arguments = present(holder, "arguments")) {
    if (!arguments->is_string() && !arguments->is_object()) {
      bad_field(where + ".arguments", "should be an object as JSON text, is {}",
                arguments->kind_name());
    }
    out.arguments = *arguments;
  }
  return out;
}

JsonValue parse_tools(const JsonValue& holder, const std::string& field) {
  const JsonValue* tools = present(holder, "tools");
  if (tools == nullptr) return {};
  if (!tools->is_array()) bad_field(field, "should be an array, is {}", tools->kind_name());
  for (std::size_t i = 0; i < tools->items().size(); ++i) {
    const JsonValue& tool = tools->items()[i];
    if (!tool.is_object()) {
      bad_field(at_index(field, i), "should be an object, is {}", tool.kind_name());
    }
  }
  return *tools;
}

Message parse_message(const JsonValue& message, const std::string& field, const ParseRules& rules) {
  if (!message.is_object()) bad_field(field, "should be an object, is {}", message.kind_name());
  Message out;
  out.author = parse_author(message, field, rules);
  out.name = string_field(message, "name", field);
  out.content = parse_content(message, field);
  switch (out.author) {
    case Author::user:
      break;
    case Author::system:
      out.tools = parse_tools(message, field + ".tools");
      break;
    case Author::tool:
      out.tool_call_id = string_field(message, "tool_call_id", field);
      out.tool = string_field(message, "tool", field);
      break;
    case Author::assistant:
      out.reasoning = string_field(message, "reasoning_content", field);
      if (out.reasoning.empty()) out.reasoning = string_field(message, "reasoning", field);
      out.partial = flag_field(message, "partial", field, false);
      if (const JsonValue* calls = present(message, "tool_calls")) {
        const std::string where = field + ".tool_calls";
        if (!calls->is_array()) bad_field(where, "should be an array, is {}", calls->kind_name());
        for (std::size_t i = 0; i < calls->items().size(); ++i) {
          out.tool_calls.push_back(parse_call(calls->items()[i], at_index(where, i)));
        }
      }
      break;
  }
  return out;
}

// thinking: {"type": "enabled" | "disabled", "effort": ...}, or true or false. Says whether the
// request decided about thinking itself.
bool parse_thinking(const JsonValue& value, Conversation& out) {
  if (value.is_boolean()) {
    out.thinking = value.is_true();
    return true;
  }
  if (!value.is_object()) bad_field("thinking", "should be an object, is {}", value.kind_name());
  const std::string type = string_field(value, "type", "thinking");
  if (!type.empty() && type != "enabled" && type != "disabled") {
    bad_field("thinking.type", "{} is neither enabled nor disabled", in_quotes(type));
  }
  out.thinking = type != "disabled";
  const std::string effort = string_field(value, "effort", "thinking");
  if (!effort.empty()) out.effort = effort;
  return !type.empty();
}

void parse_thinking_fields(const JsonValue& request, Conversation& out) {
  bool decided = false;
  if (const JsonValue* thinking = present(request, "thinking")) {
    decided = parse_thinking(*thinking, out);
  }
  if (const JsonValue* effort = present(request, "reasoning_effort")) {
    if (!effort->is_string()) {
      bad_field("reasoning_effort", "should be a string, is {}", effort->kind_name());
    }
    if (!out.effort) {
      if (effort->text() != "none") {
        out.effort = effort->text();
      } else if (!decided) {
        out.thinking = false;
        decided = true;
      }
    }
  }
  if (const JsonValue* kwargs = present(request, "chat_template_kwargs")) {
    const std::string field = "chat_template_kwargs";
    if (!kwargs->is_object()) bad_field(field, "should be an object, is {}", kwargs->kind_name());
    const bool thinking = flag_field(*kwargs, "thinking", field, out.thinking);
    if (!decided) out.thinking = thinking;
    const std::string effort = string_field(*kwargs, "thinking_effort", field);
    if (!out.effort && !effort.empty()) out.effort = effort;
  }
}

void add_declared(const JsonValue& tools, std::vector<const JsonValue*>& out) {
  for (const JsonValue& tool : tools.items()) out.push_back(&tool);
}

}  // namespace

const char* author_name(Author author) {
  switch (author) {
    case Author::system:
      return "system";
    case Author::user:
      return "user";
    case Author::assistant:
      return "assistant";
    case Author::tool:
      break;
  }
  return "tool";
}

std::string Message::text() const {
  std::string out;
  for (const Part& part : content) {
    if (part.kind == Part::Kind::text) out += part.text;
  }
  return out;
}

Message user_message(std::string text) {
  Message out;
  out.content.push_back({Part::Kind::text, std::move(text)});
  return out;
}

Message system_message(std::string text) {
  Message out = user_message(std::move(text));
  out.author = Author::system;
  return out;
}

std::vector<const JsonValue*> Conversation::declared_tools() const {
  std::vector<const JsonValue*> out;
  add_declared(tools, out);
  for (const Message& message : messages) add_declared(message.tools, out);
  return out;
}

std::vector<Message> parse_messages(const JsonValue& messages, const std::string& field,
                                    const ParseRules& rules) {
  if (!messages.is_array()) bad_field(field, "should be an array, is {}", messages.kind_name());
  std::vector<Message> out;
  for (std::size_t i = 0; i < messages.items().size(); ++i) {
    out.push_back(parse_message(messages.items()[i], at_index(field, i), rules));
  }
  return out;
}

void parse_tool_choice(const JsonValue& value, Conversation& out) {
  if (value.is_string()) {
    if (value.text() == "auto") {
      out.tool_choice = ToolChoice::automatic;
    } else if (value.text() == "none") {
      out.tool_choice = ToolChoice::none;
    } else if (value.text() == "required") {
      out.tool_choice = ToolChoice::required;
    } else {
      bad_field("tool_choice", "{} is none of auto, none, required and a named function",
                in_quotes(value.text()));
    }
    return;
  }
  if (!value.is_object()) {
    bad_field("tool_choice", "should be a string or an object, is {}", value.kind_name());
  }
  if (string_field(value, "type", "tool_choice") != "function") {
    bad_field("tool_choice.type", "should be function");
  }
  const JsonValue* function = present(value, "function");
  if (function == nullptr || !function->is_object()) {
    bad_field("tool_choice.function", "should be an object with a name");
  }
  out.tool_choice = ToolChoice::named;
  out.tool_choice_name = string_field(*function, "name", "tool_choice.function");
  if (out.tool_choice_name.empty()) bad_field("tool_choice.function.name", "is missing");
}

void parse_response_format(const JsonValue& value, Conversation& out) {
  const std::string field = "response_format";
  if (!value.is_string() && !value.is_object()) {
    bad_field(field, "should be an object, is {}", value.kind_name());
  }
  const std::string type = value.is_string() ? value.text() : string_field(value, "type", field);
  if (type == "text") {
    out.response_format = ResponseFormat::text;
  } else if (type == "json_object") {
    out.response_format = ResponseFormat::json_object;
  } else if (type == "json_schema") {
    out.response_format = ResponseFormat::json_schema;
    out.response_schema = {};
    const JsonValue* wrapped = present(value, "json_schema");
    if (wrapped == nullptr) return;
    if (wrapped->is_object()) {
      out.response_strict = flag_field(*wrapped, "strict", field + ".json_schema", true);
    }
    // The schema stands under `schema`; it was seen under `json_schema`, and alone.
    const JsonValue* schema = present(*wrapped, "schema");
    if (schema == nullptr) schema = present(*wrapped, "json_schema");
    out.response_schema = schema != nullptr ? *schema : *wrapped;
  } else {
    bad_field(field + ".type", "{} is none of text, json_object and json_schema", in_quotes(type));
  }
}

Conversation parse_conversation(const JsonValue& request, const ParseRules& rules) {
  if (!request.is_object()) {
    bad_field("", "a request should be a JSON object, is {}", request.kind_name());
  }
  Conversation out;
  const JsonValue* messages = present(request, "messages");
  if (messages == nullptr) bad_field("messages", "is missing");
  out.messages = parse_messages(*messages, "messages", rules);
  out.tools = parse_tools(request, "tools");
  if (const JsonValue* choice = present(request, "tool_choice")) parse_tool_choice(*choice, out);
  if (const JsonValue* format = present(request, "response_format")) {
    parse_response_format(*format, out);
  }
  parse_thinking_fields(request, out);
  if (!out.effort && out.thinking) out.effort = rules.effort;
  return out;
}

Conversation parse_conversation(std::string_view json, const ParseRules& rules) {
  JsonValue request;
  try {
    request = JsonValue::parse(json);
  } catch (const Error& error) {
    throw RequestError("", error.what());
  }
  return parse_conversation(request, rules);
}

}  // namespace triax::chat
