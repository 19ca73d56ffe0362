// From a conversation to what the engine is given: ids, cuts, and a grammar of the turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "triax/chat/conversation.h"
#include "triax/chat/render.h"
#include "triax/engine/turn_memory.h"
#include "triax/sampling/grammar/grammar.h"
#include "triax/tokenizer/tokenizer.h"

namespace triax::server {

struct ChatPrompt {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> cuts;  // ends of messages that were not generated
  std::size_t history_end = 0;    // one of the cuts, or 0
  std::size_t pending = 0;        // ids at the end that open the answer's channel
  chat::Channel opened = chat::Channel::none;
  bool thinking = true;
  std::string partial;  // text that already stands in the opened channel
  bool is_partial = false;
  std::size_t history_tokens = 0;  // ids up to the end of the history
  std::size_t messages_end = 0;    // and of all messages: what follows opens the answer

  std::size_t prompt_tokens() const { return ids.size() - pending; }
  // The ids that will stand before the answer in a next turn's prompt.
  std::vector<std::int32_t> before() const;
};

// Turns that `turns` remembers stand with the ids that they were generated with. `turns` may be
// null. Throws chat::RequestError, also for pictures and video, which need a vision tower.
ChatPrompt make_prompt(const chat::Conversation& conversation, const Tokenizer& tokenizer,
                       TurnMemory* turns);

// What a turn is remembered by: all that its ids say, whatever the white space of its arguments.
std::string turn_key(const chat::Message& assistant, bool thinking);

// Grammars of turns, compiled once for equal tools, choice and format. Thread-safe.
class GrammarCache {
 public:
  explicit GrammarCache(const Tokenizer& tokenizer, std::size_t most = 64)
      : index_(std::make_shared<grammar::TokenIndex>(tokenizer)), most_(most) {}

  // The constraint of an answer; null when anything may come: no tools, no format. Tools whose
  // parameters cannot be enforced take any object (unless they are strict or a call is forced: then
  // this throws); `warnings` says so. Throws Error.
  std::unique_ptr<TokenConstraint> constraint(const chat::Conversation& conversation,
                                              const ChatPrompt& prompt, bool parallel_calls,
                                              std::vector<std::string>& warnings);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const grammar::Grammar> grammar;
    std::vector<std::string> warnings;
  };
  Entry compile(std::string key, grammar::TurnRules rules, const std::vector<bool>& strict) const;

  std::shared_ptr<const grammar::TokenIndex> index_;
  std::size_t most_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // used last in front
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace triax::server
