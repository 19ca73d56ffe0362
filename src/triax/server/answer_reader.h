// Generated tokens as the pieces of an answer, the same for streaming and not.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "triax/chat/reader.h"
#include "triax/engine/request.h"
#include "triax/engine/stop_text.h"
#include "triax/server/json_out.h"

namespace triax::server {

// Something to tell a client.
struct AnswerPiece {
  std::size_t choice = 0;
  chat::TurnEvent event{};
  std::string call_id = {};              // of a call
  std::vector<JsonValue> logprobs = {};  // of tokens whose text is in here
};

// A choice as a whole: all its pieces, joined.
struct ChoiceDone {
  std::size_t choice = 0;
  chat::Turn turn;
  std::vector<std::string> call_ids;  // of turn.calls
  std::optional<std::string> stop;    // the stop string that ended it
  std::vector<JsonValue> logprobs;
  std::size_t tokens = 0, reasoning_tokens = 0;
};

// One choice. push() and finish() append what can be told now.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  // False: the choice ends here.
  virtual bool push(const TokenOut& token, std::vector<AnswerPiece>& out) = 0;
  virtual void finish(const ChoiceEnd& end, std::vector<AnswerPiece>& out) = 0;
  const ChoiceDone& done() const { return done_; }

 protected:
  void tell(AnswerPiece piece, std::vector<AnswerPiece>& out);
  ChoiceDone done_;
};

// An answer in chat form. Stop strings are looked for in the answer's text alone, not in thinking
// or in calls.
class ChatAnswerReader final : public AnswerReader {
 public:
  struct Options {
    std::size_t choice = 0;
    chat::Channel opened = chat::Channel::think;
    bool ignore_end = false;
    std::vector<std::string> stop;
    bool logprobs = false;
    std::function<std::string()> call_id;
  };
  ChatAnswerReader(const Tokenizer& tokenizer, Options options);

  bool push(const TokenOut& token, std::vector<AnswerPiece>& out) override;
  void finish(const ChoiceEnd& end, std::vector<AnswerPiece>& out) override;

  // Ids from the opened channel to <|end_of_msg|>, for later prompts; empty when what was generated
  // cannot stand in one. After finish().
  const std::vector<std::int32_t>& body() const { return body_; }

 private:
  bool take(const std::vector<chat::TurnEvent>& events, std::vector<AnswerPiece>& out);
  bool content(AnswerPiece piece, std::vector<AnswerPiece>& out);
  void let_go(std::size_t count, std::vector<AnswerPiece>& out);

  const Tokenizer& tokenizer_;
  Options options_;
  chat::TurnReader reader_;
  std::optional<StopText> stop_text_;
  std::deque<AnswerPiece> held_;     // content in which a stop string may begin
  std::vector<JsonValue> logprobs_;  // of tokens whose text has not come yet
  std::vector<std::int32_t> body_;
};

// Plain text (completions). Stop strings are the engine's.
class TextAnswerReader final : public AnswerReader {
 public:
  TextAnswerReader(const Tokenizer& tokenizer, std::size_t choice, bool logprobs,
                   std::vector<std::string> stop)
      : tokenizer_(tokenizer), decoder_(tokenizer), logprobs_(logprobs), stop_(std::move(stop)) {
    done_.choice = choice;
  }
  bool push(const TokenOut& token, std::vector<AnswerPiece>& out) override;
  void finish(const ChoiceEnd& end, std::vector<AnswerPiece>& out) override;

 private:
  const Tokenizer& tokenizer_;
  StreamDecoder decoder_;
  bool logprobs_;
  std::vector<std::string> stop_;
};

// {"token", "logprob", "bytes", "top_logprobs"}.
JsonValue logprob_json(const Tokenizer& tokenizer, const TokenOut& token);

}  // namespace triax::server
