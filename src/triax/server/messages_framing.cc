// Anthropic's form of answers.
#include <algorithm>

#include "triax/server/framing.h"

namespace triax::server {
namespace {

using chat::TurnEvent;

std::string event(const char* kind, JsonValue value) {
  JsonValue out = object({{"type", str(kind)}});
  for (const auto& [key, member] : value.members()) out.set(key, member);
  return fmt::format("event: {}\ndata: {}\n\n", kind, compact(out));
}

JsonValue usage(const AnswerUsage& u) {
  const std::size_t cached = std::min(u.cached, u.prompt);
  return object({{"input_tokens", num(u.prompt - cached)},
                 {"cache_creation_input_tokens", num(0)},
                 {"cache_read_input_tokens", num(cached)},
                 {"output_tokens", num(u.completion)},
                 {"server_tool_use", {}},
                 {"service_tier", str("standard")}});
}

const char* stop_reason(const ChoiceDone& c) {
  if (c.stop) return "stop_sequence";
  switch (c.turn.finish) {
    case chat::TurnFinish::length:
      return "max_tokens";
    case chat::TurnFinish::tool_calls:
      return "tool_use";
    case chat::TurnFinish::stop:
      break;
  }
  return "end_turn";
}

// Arguments that a limit cut are no object: then the input is empty.
JsonValue input_of(const std::string& arguments) {
  try {
    JsonValue value = JsonValue::parse(arguments.empty() ? "{}" : arguments);
    if (value.is_object()) return value;
  } catch (const Error&) {
    return object();
  }
  return object();
}

class MessagesFraming final : public Framing {
 public:
  explicit MessagesFraming(AnswerName name) : name_(std::move(name)) {}

  std::string whole(const std::vector<ChoiceDone>& choices, const AnswerUsage& u) override {
    const ChoiceDone& c = choices.front();
    JsonValue content = list();
    if (c.turn.reasoning && !c.turn.reasoning->empty()) {
      content.push(object({{"type", str("thinking")},
                           {"thinking", str(*c.turn.reasoning)},
                           {"signature", str(kSignature)}}));
    }
    if (!c.turn.content.empty()) content.push(text_block(c.turn.content));
    for (std::size_t i = 0; i < c.turn.calls.size(); ++i) {
      content.push(object({{"type", str("tool_use")},
                           {"id", str(c.call_ids[i])},
                           {"name", str(c.turn.calls[i].name)},
                           {"input", input_of(c.turn.calls[i].arguments)}}));
    }
    JsonValue out = message(usage(u));
    out.set("content", std::move(content));
    out.set("stop_reason", str(stop_reason(c)));
    out.set("stop_sequence", c.stop ? str(*c.stop) : JsonValue());
    return compact(out);
  }

  std::string open(const AnswerUsage& prompt) override {
    return event("message_start", object({{"message", message(usage(prompt))}})) +
           event("ping", object());
  }

  std::string piece(const AnswerPiece& p) override {
    std::string out;
    const std::string& text = p.event.text;
    switch (p.event.kind) {
      case TurnEvent::Kind::reasoning:
        out = enter(
            Block::thinking,
            object({{"type", str("thinking")}, {"thinking", str("")}, {"signature", str("")}}));
        return out + delta(object({{"type", str("thinking_delta")}, {"thinking", str(text)}}));
      case TurnEvent::Kind::content:
        out = enter(Block::text, text_block(""));
        return out + delta(object({{"type", str("text_delta")}, {"text", str(text)}}));
      case TurnEvent::Kind::call:
        out = leave();
        return out + enter(Block::tool, object({{"type", str("tool_use")},
                                                {"id", str(p.call_id)},
                                                {"name", str(text)},
                                                {"input", object()}}));
      case TurnEvent::Kind::arguments:
        break;
    }
    return delta(object({{"type", str("input_json_delta")}, {"partial_json", str(text)}}));
  }

  std::string close(const std::vector<ChoiceDone>& choices, const AnswerUsage& u) override {
    const ChoiceDone& c = choices.front();
    std::string out = leave();
    out +=
        event("message_delta",
              object({{"delta", object({{"stop_reason", str(stop_reason(c))},
                                        {"stop_sequence", c.stop ? str(*c.stop) : JsonValue()}})},
                      {"usage", usage(u)}}));
    return out + event("message_stop", object());
  }

  std::string error(const ApiError& e) override {
    return "event: error\ndata: " + anthropic_error_body(e) + "\n\n";
  }
  std::string idle() const override { return event("ping", object()); }

 private:
  enum class Block : std::uint8_t { none, thinking, text, tool };
  // Clients send it back; here any one is taken.
  static constexpr const char* kSignature = "triax";

  static JsonValue text_block(const std::string& text) {
    return object({{"type", str("text")}, {"text", str(text)}, {"citations", {}}});
  }
  JsonValue message(const JsonValue& counts) const {
    return object({{"id", str(name_.id)},
                   {"type", str("message")},
                   {"role", str("assistant")},
                   {"model", str(name_.model)},
                   {"content", list()},
                   {"stop_reason", {}},
                   {"stop_sequence", {}},
                   {"usage", counts}});
  }
  std::string delta(JsonValue value) const {
    return event("content_block_delta", object({{"index", num(index_)}, {"delta", value}}));
  }
  // Begins a block unless one of that kind is open.
  std::string enter(Block block, JsonValue start) {
    if (open_ == block) return "";
    std::string out = leave();
    open_ = block;
    return out +
           event("content_block_start", object({{"index", num(index_)}, {"content_block", start}}));
  }
  std::string leave() {
    if (open_ == Block::none) return "";
    std::string out;
    if (open_ == Block::thinking) {
      out = delta(object({{"type", str("signature_delta")}, {"signature", str(kSignature)}}));
    }
    out += event("content_block_stop", object({{"index", num(index_)}}));
    open_ = Block::none;
    ++index_;
    return out;
  }

  AnswerName name_;
  Block open_ = Block::none;
  std::size_t index_ = 0;
};

const char* error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

std::string anthropic_error_body(const ApiError& e) {
  return compact(object(
      {{"type", str("error")},
       {"error", object({{"type", str(error_type(e.status()))}, {"message", str(e.what())}})}}));
}

std::unique_ptr<Framing> messages_framing(AnswerName name) {
  return std::make_unique<MessagesFraming>(std::move(name));
}

}  // namespace triax::server
