// What a caller asks of the engine, and what it hears while that is done. All in tokens.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "triax/sampling/logprobs.h"
#include "triax/sampling/sampler.h"
#include "triax/sampling/token_constraint.h"

namespace triax {

using RequestId = std::uint64_t;  // from 1
using EngineClock = std::chrono::steady_clock;
inline constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// Why a sequence ended.
enum class FinishReason : std::uint8_t {
  stop,       // a stop id, a stop string, or the sink said so
  length,     // max_tokens, or the longest sequence that the engine allows
  cancelled,  // by cancel(), by the sink, or because the engine stops
  expired,    // past its deadline
  failed      // ChoiceEnd::error says why
};

// Which remembered states a request may go on from. The pieces in which a prompt is fed depend on
// the request alone (cuts.h); a state that came about by other pieces differs in the last bits.
enum class CacheUse : std::uint8_t {
  none,   // compute everything
  exact,  // only states made by the very pieces that this request would use: the answer's bits do
          // not depend on what is cached
  turns,  // and states that contain tokens as they were generated (fed one by one)
  any     // and states cut anywhere else
};

struct Request {
  std::vector<std::int32_t> prompt;  // at least one token
  // Where pieces must end: ascending positions in (0, prompt.size()]. Give the ends of messages
  // that were not generated (system, tools, user, tool results). They must follow from the tokens
  // before them, so that prompts with a common start have common cuts.
  std::vector<std::size_t> cuts = {};
  // End of the last message of the history, one of the cuts: what comes after it (opened channels,
  // a tool choice) is no part of the next turn's prompt. 0: there is none.
  std::size_t history_end = 0;

  SamplingParams sampling = {};  // choice i draws with seed + i
  std::vector<LogitBias> logit_bias = {};
  std::size_t n = 1;             // choices, from one prompt
  std::size_t max_tokens = 256;  // at least 1; the stop id counts
  std::size_t min_tokens = 0;    // no stop id before so many
  std::vector<std::int32_t> stop_ids = {};
  std::vector<std::string> stop_strings = {};  // need a tokenizer in the engine's options
  bool logprobs = false;
  std::size_t top_logprobs = 0;  // at most kMaxTopLogprobs
  std::unique_ptr<TokenConstraint> constraint = nullptr;

  int priority = 0;  // -8..8; each step doubles the share of a busy machine
  std::optional<EngineClock::time_point> deadline = {};
  std::string client = {};  // whose request: no client holds up the others
  CacheUse cache = CacheUse::turns;
  bool keep = true;  // leave states in the cache
};

// Token counts of one request.
struct Usage {
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;      // of them, not computed for this request
  std::size_t completion_tokens = 0;  // over all choices, stop ids included
};

// The request left the queue.
struct Started {
  std::size_t cached_tokens = 0;
  double queue_seconds = 0;
};
// After a piece of the prompt.
struct PromptProgress {
  std::size_t done = 0;  // tokens, cached ones included
  std::size_t total = 0;
};
// A token of the answer; never a stop id. With stop strings a token is told when it is certain that
// its bytes are no part of one.
struct TokenOut {
  std::size_t choice = 0;
  std::int32_t id = 0;
  std::size_t keep_bytes = kNone;      // bytes of the token before a stop string; kNone: all
  float logprob = 0;                   // with Request::logprobs
  std::vector<TokenLogprob> top = {};  // likeliest first
};
struct ChoiceEnd {
  std::size_t choice = 0;
  FinishReason reason = FinishReason::stop;
  std::optional<std::int32_t> stop_id = {};
  std::optional<std::size_t> stop_string = {};  // index into Request::stop_strings
  std::vector<std::int32_t> ids = {};           // all that was generated, a stop id not included
  std::string error = {};
};
// The last event of every request, told exactly once.
struct RequestEnd {
  Usage usage;
  double prompt_seconds = 0;  // from leaving the queue to the first token
  double decode_seconds = 0;  // from there to the end
};
using Event = std::variant<Started, PromptProgress, TokenOut, ChoiceEnd, RequestEnd>;

// What a sink wants after an event.
enum class Verdict : std::uint8_t {
  go_on,
  stop,   // after a TokenOut: the choice ends here, as if by a stop id
  cancel  // the whole request
};

// Called on the engine's thread, in order, without a lock held. It must be quick, must not throw
// and must not wait; it may call submit() and cancel().
using EventSink = std::function<Verdict(const Event&)>;

// What submit() answers.
struct Submitted {
  RequestId id = 0;  // 0: busy, no event will follow
  double retry_after_seconds = 0;
  bool accepted() const { return id != 0; }
};

}  // namespace triax
