// Reads a generated turn by token id: thinking, answer and tool calls, as they come.
//
// Structure is by id alone: text that is spelled like a marker is text. Layouts that served models
// were seen to write (channels not closed, tags without <|sep|>, calls outside `tools`) are read as
// they were meant; docs/formats.md has the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/chat/conversation.h"
#include "triax/chat/render.h"
#include "triax/tokenizer/tokenizer.h"

namespace triax::chat {

struct TurnEvent {
  enum class Kind : std::uint8_t {
    reasoning,
    content,
    call,       // a tool call begins: `text` is the function's name
    arguments,  // `text` continues the arguments of call `index`
  };
  Kind kind;
  std::size_t index = 0;  // of call and arguments, from 0
  std::string text;

  bool operator==(const TurnEvent&) const = default;
};

enum class TurnFinish : std::uint8_t { stop, length, tool_calls };
const char* finish_name(TurnFinish finish);  // "stop", "length", "tool_calls"

struct Turn {
  struct Call {
    std::string name;
    std::string arguments;  // JSON text, unless cut or written otherwise by the model
  };
  std::string content;
  std::optional<std::string> reasoning;  // there in thinking mode, or when some was written
  std::vector<Call> calls;
  TurnFinish finish = TurnFinish::stop;

  // The API's null: tool calls and no text.
  bool content_null() const { return content.empty() && !calls.empty(); }
};

struct ReaderOptions {
  Channel opened = Channel::think;  // by the prompt
  bool ignore_end = false;          // end tokens do not end the turn
  bool strict_json = false;         // NaN and Infinity are no literals, but strings
};

// One turn. The tokenizer must outlive the reader. All events of a turn, joined, are its result;
// streaming or not makes no difference. Any sequence of ids is read without error.
class TurnReader {
 public:
  explicit TurnReader(const Tokenizer& tokenizer, const ReaderOptions& options = {});

  // What the next id completes; valid until the next call. Incomplete UTF-8 is held.
  const std::vector<TurnEvent>& push(std::int32_t id);
  // The end: closes what is open, unless the token limit cut the turn. Call once.
  const std::vector<TurnEvent>& finish(bool hit_length);

  // The end of the message was read; further ids are ignored.
  bool ended() const { return ended_; }
  // In the text of this channel now, outside any tag: what closing() can close.
  Channel in_text() const;
  const Turn& turn() const { return turn_; }

 private:
  enum class Place : std::uint8_t { outside, think, response, tools, call, argument, json };
  enum class Tag : std::uint8_t { none, open, close };

  void structure(Role role);
  void text_id(std::int32_t id);
  void text(std::string_view piece);
  void outside_text(std::string_view piece);
  void flush_decoder();
  void end_tag();
  void open_tag(std::string_view header);
  void close_tag(std::string_view name);
  void leave_channel();
  void end_turn();
  void open_call(std::string_view header);
  void open_argument(std::string_view header);
  void open_json();
  void end_value();
  void end_call();
  void emit(TurnEvent::Kind kind, std::string_view piece);

  const Tokenizer* tokenizer_;
  ReaderOptions options_;
  StreamDecoder decoder_;
  std::int32_t open_, close_, sep_, end_of_msg_;
  std::vector<std::int32_t> stop_ids_;

  Turn turn_;
  std::vector<TurnEvent> events_;
  Place place_;
  bool in_tools_ = false;  // where a call returns to
  Tag tag_ = Tag::none;
  std::string header_;  // bytes of a tag, up to <|sep|>
  std::string spaces_;  // white space outside all channels, held until text follows
  bool ended_ = false;
  bool named_ = false;  // the open call has a name; else it is dropped
  bool raw_ = false;    // a json block was read: the call's arguments are complete
  std::size_t arguments_ = 0;
  bool string_ = false;   // the open argument streams
  bool dropped_ = false;  // the open argument is not written
  std::string value_;     // an argument that is held to its end
};

// The turn as a message of the conversation. Calls get the ids call_0, call_1, ...
Message message_of(const Turn& turn);

}  // namespace triax::chat
