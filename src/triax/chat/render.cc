#include "triax/chat/render.h"

#include <algorithm>
#include <array>

#include "triax/chat/fields.h"
#include "triax/chat/segment_writer.h"

namespace triax::chat {
namespace {

constexpr std::string_view kToolsHead =
    "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n";
constexpr std::string_view kNewToolsHead =
    "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\nYou "
    "have "
    "access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n"
    "```json\n";
constexpr std::string_view kFence = "\n```";
constexpr std::string_view kEffort =
    "`thinking_effort` guides on how much to think in your thinking channel (not including the "
    "response channel), supported values include `low`, `medium`, `high`, and `max`.\nNow the "
    "system "
    "is invoked with `thinking_effort=";
constexpr std::string_view kNoTools =
    "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next "
    "message.";
constexpr std::string_view kMustCall =
    "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message.";
constexpr std::string_view kRawJson =
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional "
    "formatting.";

// Efforts that are understood; the prompt's text advertises a fourth one.
constexpr std::array<std::string_view, 3> kEfforts = {"low", "high", "max"};

std::size_t placeholders_in(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(kImagePlaceholder); at != std::string_view::npos;
       at = text.find(kImagePlaceholder, at + kImagePlaceholder.size())) {
    ++count;
  }
  return count;
}

// The control text of each picture, in order.
class Pictures {
 public:
  Pictures(const Conversation& conversation, const std::optional<std::vector<std::string>>& prompts)
      : prompts_(prompts) {
    std::size_t parts = 0, names = 0;
    for (std::size_t i = 0; i < conversation.messages.size(); ++i) {
      const Message& message = conversation.messages[i];
      if (!message.tools.items().empty()) continue;  // its content is not rendered
      for (std::size_t j = 0; j < message.content.size(); ++j) {
        const Part& part = message.content[j];
        if (part.kind == Part::Kind::image) ++parts;
        if (part.kind == Part::Kind::text) names += placeholders_in(part.text);
        if (part.kind == Part::Kind::video) {
          bad_field(at_index(at_index("messages", i) + ".content", j), "video is not supported");
        }
      }
    }
    if (!prompts) return;
    if (prompts->size() != parts && prompts->size() != parts + names) {
      bad_field("messages", "{} pictures stand in the messages, {} were prepared", parts,
                prompts->size());
    }
    in_text_ = prompts->size() != parts;
  }

  // Are names of the placeholder in texts pictures too?
  bool in_text() const { return in_text_; }
  std::string_view next() { return prompts_ ? (*prompts_)[used_++] : kImagePlaceholder; }

 private:
  const std::optional<std::vector<std::string>>& prompts_;
  std::size_t used_ = 0;
  bool in_text_ = false;
};

void write_text(SegmentWriter& to, std::string_view text, Pictures& pictures) {
  if (pictures.in_text()) {
    for (std::size_t at = text.find(kImagePlaceholder); at != std::string_view::npos;
         at = text.find(kImagePlaceholder)) {
      to.text(text.substr(0, at));
      to.control(pictures.next());
      text.remove_prefix(at + kImagePlaceholder.size());
    }
  }
  to.text(text);
}

void write_content(SegmentWriter& to, const Message& message, Pictures& pictures) {
  for (const Part& part : message.content) {
    if (part.kind == Part::Kind::text) {
      write_text(to, part.text, pictures);
    } else {
      to.control(pictures.next());
    }
  }
}

const char* type_name(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return "boolean";
    case JsonValue::Kind::number:
      return "number";
    case JsonValue::Kind::string:
      return "string";
    case JsonValue::Kind::array:
      return "array";
    case JsonValue::Kind::object:
      break;
  }
  return "object";
}

void write_argument(SegmentWriter& to, std::string_view key, JsonValue::Kind kind,
                    std::string_view text) {
  to.open("argument", {{"key", key}, {"type", type_name(kind)}});
  to.text(text);
  to.close("argument");
}

// An object given as text is taken apart one level deep, its literals kept; text that is no object
// stands in a json block.
void write_arguments(SegmentWriter& to, const JsonValue& arguments) {
  if (arguments.is_object()) {
    for (const auto& [key, value] : arguments.members()) {
      write_argument(to, key, value.kind(),
                     value.is_string() ? value.text() : json_text(value, kJsonPython));
    }
    return;
  }
  if (!arguments.is_string() || arguments.text().empty()) return;
  std::vector<RawMember> members;
  if (read_raw_object(arguments.text(), members)) {
    for (const RawMember& member : members) {
      write_argument(to, member.key, member.kind, member.text);
    }
    return;
  }
  to.open("json", {{"type", "object"}});
  to.text(arguments.text());
  to.close("json");
}

void write_calls(SegmentWriter& to, const std::vector<ToolCall>& calls) {
  if (calls.empty()) return;
  to.open("tools");
  for (std::size_t i = 0; i < calls.size(); ++i) {
    to.open("call", {{"tool", calls[i].name}, {"index", std::to_string(i + 1)}});
    write_arguments(to, calls[i].arguments);
    to.close("call");
  }
  to.close("tools");
}

// After the opened channel.
void write_body(SegmentWriter& to, const Message& message, bool thinking, Pictures& pictures) {
  if (thinking) {
    to.text(message.reasoning);
    to.close("think");
    to.open("response");
  }
  write_content(to, message, pictures);
  to.close("response");
  write_calls(to, message.tool_calls);
  to.end_message();
}

class Renderer {
 public:
  Renderer(const Conversation& conversation, const RenderOptions& options)
      : conversation_(conversation),
        options_(options),
        pictures_(conversation, options.image_prompts),
        to_(out_.segments, false) {}

  Rendered run() {
    out_.thinking = conversation_.thinking;
    write_tools(conversation_.tools, kToolsHead, std::nullopt);
    write_effort();
    const auto& messages = conversation_.messages;
    const bool partial =
        !messages.empty() && messages.back().author == Author::assistant && messages.back().partial;
    write_history(messages.size() - (partial ? 1 : 0));
    out_.history_end = to_.size();
    write_tool_choice();
    write_response_format();
    if (partial) {
      write_partial(messages.size() - 1);
    } else if (options_.add_generation_prompt) {
      to_.open("message", {{"role", "assistant"}});
      const std::size_t before = to_.size();
      to_.open(conversation_.thinking ? "think" : "response");
      out_.opened = conversation_.thinking ? Channel::think : Channel::response;
      out_.pending = to_.size() - before;
    }
    return std::move(out_);
  }

 private:
  void begin_message(std::optional<std::size_t> index, SegmentWriter::Attributes attributes) {
    span_ = {to_.size(), 0, index, 0};
    if (index && !conversation_.messages[*index].name.empty() &&
        conversation_.messages[*index].author != Author::tool) {
      attributes.emplace_back("name", conversation_.messages[*index].name);
    }
    to_.open("message", attributes);
  }

  void end_span() {
    span_.end = to_.size();
    if (span_.body == 0) span_.body = span_.end;
    out_.messages.push_back(span_);
  }

  void internal(std::string_view type, std::string_view text, std::optional<std::size_t> index) {
    span_ = {to_.size(), 0, index, 0};
    to_.open("message", {{"role", "system"}, {"type", type}});
    to_.text(text);
    to_.end_message();
    end_span();
  }

  void write_tools(const JsonValue& tools, std::string_view head,
                   std::optional<std::size_t> index) {
    if (tools.items().empty()) return;
    internal("tool-declare",
             std::string(head) + json_text(tools, kJsonSorted) + std::string(kFence), index);
  }

  void write_effort() {
    if (!conversation_.thinking || !conversation_.effort) return;
    const std::string& effort = *conversation_.effort;
    if (std::find(kEfforts.begin(), kEfforts.end(), effort) == kEfforts.end()) {
      throw RequestError(
          "reasoning_effort",
          fmt::format("{} is no effort; there are low, high and max", in_quotes(effort)),
          RequestError::Code::unsupported_effort);
    }
    internal("thinking-effort", std::string(kEffort) + effort + "`.", std::nullopt);
  }

  void write_tool_choice() {
    if (conversation_.tool_choice == ToolChoice::none) {
      internal("tool-choice", kNoTools, std::nullopt);
    }
    if (conversation_.tool_choice == ToolChoice::required) {
      internal("tool-choice", kMustCall, std::nullopt);
    }
  }

  void write_response_format() {
    if (conversation_.response_format == ResponseFormat::text) return;
    const bool schema = conversation_.response_format == ResponseFormat::json_schema;
    std::string text = fmt::format("The system is invoked with `response_format={}`.\n{}",
                                   schema ? "json_schema" : "json_object", kRawJson);
    if (schema) {
      text += "\nThe JSON data must match the following schema:\n```json\n" +
              json_text(conversation_.response_schema, kJsonSorted) + std::string(kFence);
    }
    internal("response-format", text, std::nullopt);
  }

  void write_history(std::size_t count) {
    const auto& messages = conversation_.messages;
    for (std::size_t i = 0; i < count; ++i) {
      if (messages[i].author != Author::tool) {
        write_message(i);
        continue;
      }
      std::size_t end = i;
      while (end < count && messages[end].author == Author::tool) ++end;
      write_results(i, end);
      i = end - 1;
    }
  }

  void write_message(std::size_t i) {
    const Message& message = conversation_.messages[i];
    if (message.author == Author::system && !message.tools.items().empty()) {
      write_tools(message.tools, kNewToolsHead, i);
      return;
    }
    begin_message(i, {{"role", author_name(message.author)}});
    if (message.author == Author::assistant) {
      calls_ = &message.tool_calls;
      results_ = 0;
      to_.open(conversation_.thinking ? "think" : "response");
      span_.body = to_.size();
      to_.set_generated(true);
      write_body(to_, message, conversation_.thinking, pictures_);
      to_.set_generated(false);
    } else {
      write_content(to_, message, pictures_);
      to_.end_message();
    }
    end_span();
  }

  // Which call of the last assistant a result belongs to, by id.
  std::optional<std::size_t> call_of(const Message& result) const {
    if (result.tool_call_id.empty() || calls_ == nullptr) return std::nullopt;
    for (std::size_t i = 0; i < calls_->size(); ++i) {
      if ((*calls_)[i].id == result.tool_call_id) return i;
    }
    return std::nullopt;
  }

  // A run of tool results goes into the order of its calls; when one id is not known, it stays.
  void write_results(std::size_t begin, std::size_t end) {
    std::vector<std::pair<std::size_t, std::size_t>> order;  // call, message
    for (std::size_t i = begin; i < end; ++i) {
      const auto call = call_of(conversation_.messages[i]);
      if (!call) break;
      order.emplace_back(*call, i);
    }
    const bool known = order.size() == end - begin;
    if (known) {
      std::sort(order.begin(), order.end());
      for (const auto& [call, i] : order) write_result(i, (*calls_)[call].name);
    } else {
      for (std::size_t i = begin; i < end; ++i) write_result(i, "");
    }
  }

  void write_result(std::size_t i, std::string name) {
    const Message& message = conversation_.messages[i];
    const std::size_t position = results_++;
    if (name.empty()) name = message.tool;
    if (name.empty()) name = message.name;
    if (name.empty() && calls_ != nullptr && position < calls_->size()) {
      name = (*calls_)[position].name;
    }
    if (name.empty()) {
      bad_field(at_index("messages", i),
                "this tool result belongs to no call: its tool_call_id is in no message before it");
    }
    const std::string index = std::to_string(position + 1);
    begin_message(i, {{"role", "tool"}, {"tool", name}, {"index", index}});
    write_content(to_, message, pictures_);
    to_.end_message();
    end_span();
  }

  // The answer goes on where the last message stops: nothing is closed.
  void write_partial(std::size_t i) {
    const Message& message = conversation_.messages[i];
    begin_message(i, {{"role", "assistant"}});
    const bool reasoning = conversation_.thinking && !message.reasoning.empty();
    if (reasoning) {
      to_.open("think");
      to_.text(message.reasoning);
      out_.opened = Channel::think;
    }
    const bool content = std::any_of(
        message.content.begin(), message.content.end(),
        [](const Part& part) { return part.kind != Part::Kind::text || !part.text.empty(); });
    if (content || !conversation_.thinking) {
      if (reasoning) to_.close("think");
      to_.open("response");
      write_content(to_, message, pictures_);
      out_.opened = Channel::response;
    }
    end_span();
  }

  const Conversation& conversation_;
  const RenderOptions& options_;
  Rendered out_;
  Pictures pictures_;
  SegmentWriter to_;
  MessageSpan span_;
  const std::vector<ToolCall>* calls_ = nullptr;  // of the last assistant
  std::size_t results_ = 0;                       // since then
};

}  // namespace

std::string Rendered::text() const {
  std::string out;
  for (const Segment& segment : segments) out += segment.text;
  return out;
}

Rendered render(const Conversation& conversation, const RenderOptions& options) {
  return Renderer(conversation, options).run();
}

std::vector<Segment> render_body(const Message& assistant, bool thinking) {
  std::vector<Segment> out;
  SegmentWriter to(out, true);
  const std::optional<std::vector<std::string>> none;
  const Conversation empty;
  Pictures pictures(empty, none);
  write_body(to, assistant, thinking, pictures);
  return out;
}

std::vector<Segment> closing(Channel open) {
  std::vector<Segment> out;
  SegmentWriter to(out, true);
  if (open == Channel::think) {
    to.close("think");
    to.open("response");
  }
  if (open != Channel::none) to.close("response");
  to.end_message();
  return out;
}

}  // namespace triax::chat
