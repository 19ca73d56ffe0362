// What the engine's tests share: a small model, an engine that runs, and what a request heard.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/test_model.h"
#include "triax/engine/engine.h"
#include "triax/engine/event_queue.h"

namespace triax::test {

inline const TestModel& tiny(const std::string& variant = "a") {
  static std::map<std::string, std::unique_ptr<TestModel>> models;
  auto& slot = models[variant];
  if (!slot) {
    slot = std::make_unique<TestModel>(std::string(TRIAX_GOLDEN_DIR) + "/text/tiny-" + variant);
  }
  return *slot;
}

// What a request was told.
struct Heard {
  std::size_t starts = 0, ends = 0;
  std::size_t cached = 0;
  std::vector<std::size_t> progress;
  std::map<std::size_t, std::vector<TokenOut>> tokens;  // by choice
  std::map<std::size_t, ChoiceEnd> choices;
  RequestEnd end;

  std::vector<std::int32_t> ids(std::size_t choice = 0) const {
    std::vector<std::int32_t> out;
    const auto found = tokens.find(choice);
    if (found == tokens.end()) return out;
    for (const TokenOut& t : found->second) out.push_back(t.id);
    return out;
  }
  // The drawn tokens' log probabilities and those of their rivals: a shadow of every logit's bits.
  std::vector<float> logprobs(std::size_t choice = 0) const {
    std::vector<float> out;
    const auto found = tokens.find(choice);
    if (found == tokens.end()) return out;
    for (const TokenOut& t : found->second) {
      out.push_back(t.logprob);
      for (const TokenLogprob& other : t.top) out.push_back(other.logprob);
    }
    return out;
  }
  FinishReason reason(std::size_t choice = 0) const { return choices.at(choice).reason; }
};

inline void note(Heard& heard, const Event& event) {
  EXPECT_EQ(heard.ends, 0u) << "nothing comes after the end";
  if (const auto* e = std::get_if<Started>(&event)) {
    ++heard.starts;
    heard.cached = e->cached_tokens;
  } else if (const auto* p = std::get_if<PromptProgress>(&event)) {
    heard.progress.push_back(p->done);
  } else if (const auto* t = std::get_if<TokenOut>(&event)) {
    EXPECT_FALSE(heard.choices.contains(t->choice)) << "a token after its choice ended";
    heard.tokens[t->choice].push_back(*t);
  } else if (const auto* c = std::get_if<ChoiceEnd>(&event)) {
    EXPECT_TRUE(heard.choices.emplace(c->choice, *c).second) << "a choice ends once";
  } else {
    heard.end = std::get<RequestEnd>(event);
    ++heard.ends;
  }
}

// An engine over a small model.
class Serving {
 public:
  explicit Serving(EngineOptions options = {}, const TestModel& model = tiny(),
                   const Tokenizer* tokenizer = nullptr, std::size_t threads = 1)
      : pool_(threads), engine_(model.model(), pool_, tokenizer, std::move(options)) {
    engine_.start();
  }
  Engine* operator->() { return &engine_; }

  RequestId submit(Request request) {
    auto queue = std::make_unique<EventQueue>();
    const Submitted out = engine_.submit(std::move(request), queue->sink());
    EXPECT_TRUE(out.accepted());
    return (queues_[out.id] = std::move(queue), out.id);
  }
  Heard wait(RequestId id) {
    Heard heard;
    while (heard.ends == 0) note(heard, queues_.at(id)->pop());
    return heard;
  }
  Event next(RequestId id) { return queues_.at(id)->pop(); }
  // The counts once nothing runs any more: they are told after the last event.
  EngineStats settled() {
    for (int i = 0; i < 5000; ++i) {
      const EngineStats stats = engine_.stats();
      if (stats.running == 0 && stats.queued == 0 && stats.sequences_bytes == 0) return stats;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return engine_.stats();
  }
  Heard run(Request request) { return wait(submit(std::move(request))); }

 private:
  std::map<RequestId, std::unique_ptr<EventQueue>> queues_;
  ThreadPool pool_;
  Engine engine_;
};

// Small pieces, so that a short prompt has several.
inline EngineOptions small_options(Precision precision = Precision::f32) {
  EngineOptions o;
  o.precision = precision;
  o.chunk = 64;
  o.prompt_budget = 128;
  o.max_context = 4096;
  o.max_sequences = 16;
  o.state_bytes = std::size_t{64} << 20;
  return o;
}

inline Request greedy(std::vector<std::int32_t> prompt, std::size_t max_tokens = 12) {
  Request r;
  r.prompt = std::move(prompt);
  r.sampling.temperature = 0;
  r.max_tokens = max_tokens;
  return r;
}

inline std::vector<std::int32_t> joined(std::vector<std::int32_t> a,
                                        const std::vector<std::int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace triax::test
