// What a model is asked: messages, tools and settings, in the form that OpenAI's API made common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/chat/json.h"
#include "triax/core/error.h"

namespace triax::chat {

// A fault of a request. `field()` names the place ("messages[2].role").
class RequestError : public Error {
 public:
  enum class Code : std::uint8_t { bad_request, unsupported_effort };
  RequestError(std::string field, const std::string& message, Code code = Code::bad_request)
      : Error(field.empty() ? message : field + ": " + message),
        field_(std::move(field)),
        code_(code) {}
  const std::string& field() const { return field_; }
  Code code() const { return code_; }

 private:
  std::string field_;
  Code code_;
};

enum class Author : std::uint8_t { system, user, assistant, tool };
const char* author_name(Author author);

// A piece of content. A plain string is one text part.
struct Part {
  enum class Kind : std::uint8_t { text, image, video };
  Kind kind = Kind::text;
  std::string text;  // the text, or where the picture is (the URL as it was given)
};

struct ToolCall {
  std::string id;  // empty: none
  std::string name;
  JsonValue arguments;  // null, a string (any text), or an object
};

struct Message {
  Author author = Author::user;
  std::string name;
  std::vector<Part> content;
  std::string reasoning;             // assistant
  std::vector<ToolCall> tool_calls;  // assistant
  bool partial = false;              // assistant, last: the answer goes on from here
  std::string tool_call_id;          // tool; empty: none
  std::string tool;                  // tool: the function's name where it is given
  JsonValue tools;                   // system: tools declared here; null, or an array

  std::string text() const;  // the text parts, joined
};

Message user_message(std::string text);
Message system_message(std::string text);

enum class ToolChoice : std::uint8_t { automatic, none, required, named };

enum class ResponseFormat : std::uint8_t { text, json_object, json_schema };

struct Conversation {
  std::vector<Message> messages;
  JsonValue tools;  // null, or an array of {"type": "function", "function": {...}}
  ToolChoice tool_choice = ToolChoice::automatic;
  std::string tool_choice_name;  // of `named`
  ResponseFormat response_format = ResponseFormat::text;
  JsonValue response_schema;  // of json_schema; null where it was missing
  bool response_strict = true;
  bool thinking = true;
  // low, high or max; none: nothing is said about effort. Not looked at without thinking.
  std::optional<std::string> effort;

  // Of tools and of system messages with tools, in order of appearance.
  std::vector<const JsonValue*> declared_tools() const;
};

struct ParseRules {
  bool developer_is_system = true;  // else the role is an error
  // What `effort` is when the request says nothing and thinks.
  std::optional<std::string> effort = "max";
};

// Reads a request body: messages, tools, tool_choice, response_format, thinking {type, effort},
// reasoning_effort ("none": thinking off), chat_template_kwargs {thinking, thinking_effort};
// thinking.effort goes before reasoning_effort, and that before chat_template_kwargs. Fields that
// do not concern the prompt are not looked at. Throws RequestError naming the field.
Conversation parse_conversation(std::string_view json, const ParseRules& rules = {});
Conversation parse_conversation(const JsonValue& request, const ParseRules& rules = {});

// Its parts, `field` being their name in messages.
std::vector<Message> parse_messages(const JsonValue& messages, const std::string& field,
                                    const ParseRules& rules = {});
void parse_tool_choice(const JsonValue& value, Conversation& out);
void parse_response_format(const JsonValue& value, Conversation& out);

// The stricter rules of the hosted API, on top of what can be rendered: names of functions, no
// duplicates among all declared tools, `required` only with tools, tools in system messages only
// with empty content, tool results with an id, response_format with its fields. `request` is what
// the conversation was read from. Throws RequestError.
void check_contract(const Conversation& conversation, const JsonValue& request);

// As a request body again: messages, tools, thinking and effort.
JsonValue request_json(const Conversation& conversation);
JsonValue message_json(const Message& message);

}  // namespace triax::chat
