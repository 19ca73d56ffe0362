// A conversation with a model in memory: what was computed stays, so that a next turn only adds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "triax/chat/conversation.h"
#include "triax/chat/reader.h"
#include "triax/chat/render.h"
#include "triax/cli/answer_out.h"
#include "triax/cli/load_model.h"
#include "triax/engine/generate.h"

namespace triax::cli {

// Throws Error that says what to do when the model's folder has no chat format.
const Tokenizer& required_chat_tokenizer(const LoadedModel& model);

struct AnswerResult {
  GenerateResult generated;
  std::size_t prompt_tokens = 0;  // of the whole conversation
  std::size_t reused_tokens = 0;  // that were computed before
  double prompt_seconds = 0;
  chat::TurnFinish finish = chat::TurnFinish::stop;
  bool interrupted = false;
};

class ChatSession {
 public:
  explicit ChatSession(Session& session);

  const std::vector<chat::Message>& messages() const { return conversation_.messages; }
  const chat::Conversation& conversation() const { return conversation_; }
  // Another conversation, or the same with other settings.
  void replace(chat::Conversation conversation);
  void set_effort(const std::string& effort);  // low, high, max; none: no thinking
  std::string effort() const;
  void set_system(const std::string& text);  // the first message; empty: none
  void clear();                              // all but the system message
  void ask(std::string text);
  // Takes back the last answer, or the last question and its answer; false when there is none.
  bool take_back_answer();
  bool take_back_turn();

  // The model's answer to the conversation as it stands, added to it; also when it is interrupted
  // (that much is kept). Nothing changes when this throws.
  AnswerResult answer(const GenerateOptions& options, const AnswerStyle& style);

  bool recompute = false;  // every turn from its first token on: to compare with
  std::size_t state_bytes() const;

 private:
  // Ids of an answer as they were generated, with what closes it.
  struct Body {
    std::vector<std::int32_t> ids;  // empty: not known
    bool thinking = false;
  };

  SequenceState state_for(const std::vector<std::int32_t>& ids);
  Body body_of(const AnswerOut& out, const std::vector<std::int32_t>& ids,
               chat::Channel open) const;
  std::vector<chat::KnownBody> known() const;

  Session& session_;
  const Tokenizer& tokenizer_;
  chat::Conversation conversation_;
  std::vector<Body> bodies_;  // of messages; by their index
  // After all of the last turn, and after its prompt's history: an answer that is taken back, cut
  // or read otherwise than it was written costs no more than itself.
  std::optional<SequenceState> live_, base_;
};

}  // namespace triax::cli
