// How an answer is written: one class for each protocol, as text, without sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "triax/chat/conversation.h"
#include "triax/server/answer_reader.h"
#include "triax/server/api_error.h"
#include "triax/server/json_out.h"
#include "triax/server/settings.h"

namespace triax::server {

// Counts of one answer. `prompt` is without the ids that open the answer's channel.
struct AnswerUsage {
  std::size_t prompt = 0, cached = 0, completion = 0, reasoning = 0;
};
JsonValue usage_json(const AnswerUsage& usage);  // OpenAI's, and Kimi's cached_tokens

// What is the same in all parts of an answer.
struct AnswerName {
  std::string id, model;
  std::int64_t created = 0;  // Unix seconds
};

class Framing {
 public:
  virtual ~Framing() = default;
  // The whole answer.
  virtual std::string whole(const std::vector<ChoiceDone>& choices, const AnswerUsage& usage) = 0;
  // A stream: open() before the first piece, close() after the last.
  virtual std::string open(const AnswerUsage& prompt) = 0;
  virtual std::string piece(const AnswerPiece& piece) = 0;
  virtual std::string close(const std::vector<ChoiceDone>& choices, const AnswerUsage& usage) = 0;
  // Within a stream that has begun.
  virtual std::string error(const ApiError& error) = 0;
  // Says that the stream is alive.
  virtual std::string idle() const { return ": waiting\n\n"; }
};

std::string error_body(const ApiError& error);            // OpenAI's error object
std::string anthropic_error_body(const ApiError& error);  // of /v1/messages

struct ChatForm {
  AnswerName name;
  std::size_t choices = 1;
  bool thinking = true, logprobs = false, include_usage = false;
};
std::unique_ptr<Framing> chat_framing(ChatForm form);

struct CompletionForm {
  AnswerName name;
  std::size_t choices = 1;
  bool logprobs = false, include_usage = false;
  std::vector<std::string> echo;  // what each choice's text begins with; may be empty
};
std::unique_ptr<Framing> completion_framing(CompletionForm form);

std::unique_ptr<Framing> messages_framing(AnswerName name);

// `settings` are the members of a response object that repeat the request.
std::unique_ptr<Framing> responses_framing(AnswerName name, JsonValue settings);

// "prefix-" and 24 characters that were not given out before.
std::string fresh_id(std::string_view prefix);

}  // namespace triax::server
