// A conversation as K3 reads it: XTML segments, their text and their token ids.
//
//   open(T, k=v...) = <|open|> T { " k" `="` escaped(v) `"` } <|sep|>     close(T) = <|close|> T
//   <|sep|> prompt  = [tools] [effort] message* [tool choice] [response format] [open assistant,
//   channel] message = open(message, role=R [, name=N]) body close(message) <|end_of_msg|>
//
// Spec: K3's chat encoder (released Hugging Face files); docs/formats.md has the whole grammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "triax/chat/conversation.h"
#include "triax/tokenizer/tokenizer.h"

namespace triax::chat {

// Each segment is encoded by itself: merging neighbours would give other ids.
enum class SegmentKind : std::uint8_t {
  structure,  // one of <|open|>, <|close|>, <|sep|>, <|end_of_msg|>: `role`'s id
  text,       // ordinary text: no name in it becomes a special token
  control,    // the program's own text with names of special tokens: pictures
};

struct Segment {
  SegmentKind kind = SegmentKind::text;
  Role role = Role::Open;  // of structure
  bool generated = false;  // the assistant writes it
  std::string text;        // of structure: K3's name of the token

  bool operator==(const Segment&) const = default;
};

enum class Channel : std::uint8_t { none, think, response };

// Where messages lie, in segments. Messages that the settings add have no index.
struct MessageSpan {
  std::size_t begin = 0, end = 0;
  std::optional<std::size_t> index;  // into Conversation::messages
  // Of an assistant's: its first generated segment, which comes after the opened channel.
  std::size_t body = 0;
};

struct Rendered {
  std::vector<Segment> segments;
  std::vector<MessageSpan> messages;  // in the order of the prompt; a partial one is the last
  // Segments up to the end of the last message of the history: what a next turn's prompt starts
  // with. Messages on tool choice and response format come after it.
  std::size_t history_end = 0;
  // The channel that the prompt leaves open, and the segments at the end that open it (pending: not
  // counted as prompt tokens by the hosted API).
  Channel opened = Channel::none;
  std::size_t pending = 0;
  bool thinking = true;

  std::string text() const;
};

struct RenderOptions {
  bool add_generation_prompt = true;
  // Control text of each picture, in order of appearance; none: pictures stand as placeholders.
  // As many as picture parts, or as these and the placeholder's name in texts together.
  std::optional<std::vector<std::string>> image_prompts;
};

inline constexpr std::string_view kImagePlaceholder = "<|kimi_image_placeholder|>";

// Throws RequestError for what cannot be rendered: an effort other than low, high and max, a tool
// result that belongs to nothing, arguments that are no object, pictures that do not match.
Rendered render(const Conversation& conversation, const RenderOptions& options = {});

// The rest of an assistant's message after its opened channel, as it would be generated:
// [reasoning, close, open response] content, close, calls, close, end of message.
std::vector<Segment> render_body(const Message& assistant, bool thinking);

// What closes the message of an assistant that was stopped within `open` channel's text.
std::vector<Segment> closing(Channel open);

struct Encoded {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> generated;  // per id: 1 where the assistant writes it, its end included
  std::vector<std::size_t> message_ends;  // ids up to the end of each of Rendered::messages
  std::size_t history_end = 0;            // ids
  std::size_t pending = 0;                // ids

  std::size_t prompt_tokens() const { return ids.size() - pending; }  // as the hosted API counts
};

// Ids of generated turns, to stand where the same message is rendered again: what a model wrote
// need not be the canonical encoding of its text.
struct KnownBody {
  std::size_t message;            // index into Conversation::messages
  std::vector<std::int32_t> ids;  // from the opened channel to <|end_of_msg|>
};

// Throws Error when the tokenizer lacks a structure token.
Encoded encode(const Rendered& rendered, const Tokenizer& tokenizer,
               const std::vector<KnownBody>& known = {});
std::vector<std::int32_t> encode_segments(const std::vector<Segment>& segments,
                                          const Tokenizer& tokenizer);

// Has the tokenizer what the chat format needs?
bool has_chat_tokens(const Tokenizer& tokenizer);

}  // namespace triax::chat
