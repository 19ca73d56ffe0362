// Inside the engine: a request under way, and one choice of it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "triax/engine/cuts.h"
#include "triax/engine/prefix_cache.h"
#include "triax/engine/request.h"
#include "triax/engine/stop_text.h"

namespace triax {

// A request; its choices point to it.
struct Group {
  // Throws Error when the cuts do not fit the prompt.
  Group(Request r, EventSink s, std::size_t chunk)
      : request(std::move(r)),
        sink(std::move(s)),
        plan(request.prompt.size(), request.cuts, chunk) {}

  RequestId id = 0;
  Request request;
  EventSink sink;
  CutPlan plan;
  EngineClock::time_point arrived = {}, started = {}, first_token = {};
  bool has_started = false, has_token = false;
  bool cancelled = false;
  Usage usage;
  std::size_t open_choices = 0;

  std::size_t prompt_tokens() const { return request.prompt.size(); }
};

struct Sequence {
  Sequence(std::shared_ptr<Group> g, std::size_t number, std::uint64_t seed)
      : group(std::move(g)),
        choice(number),
        sampler(seeded(*group, seed), group->request.prompt, group->request.logit_bias) {
    ids = group->request.prompt;
    if (!group->request.stop_strings.empty()) stop_text.emplace(group->request.stop_strings);
  }

  static SamplingParams seeded(const Group& g, std::uint64_t seed) {
    SamplingParams out = g.request.sampling;
    out.seed = seed;
    return out;
  }

  std::size_t fed() const { return state ? state->tokens() : 0; }
  std::size_t generated() const { return ids.size() - group->prompt_tokens(); }
  bool in_prompt() const { return fed() < group->prompt_tokens(); }
  // End of the tokens that the next pass feeds.
  std::size_t next_end() const { return in_prompt() ? group->plan.next(fed()) : fed() + 1; }
  // Sequences that it becomes: the first choice stands for all until the prompt is done.
  std::size_t width() const { return leads ? group->request.n : 1; }

  std::shared_ptr<Group> group;
  std::size_t choice = 0;
  bool leads = false;             // the other choices are still to be made from it
  std::vector<std::int32_t> ids;  // prompt and generated tokens; the last may not be fed yet
  std::optional<SequenceState> state;
  Trail trail;
  std::size_t free_from = kNone;
  std::vector<float> start_logits;   // when the cache held the whole prompt
  std::map<std::size_t, bool> keep;  // where a state is kept; true: for others as well
  std::size_t last_kept = 0;
  std::size_t furthest = 0;         // most tokens ever fed: behind it they are fed again
  std::span<const float> last_row;  // logits after the last token fed, during a pass

  Sampler sampler;
  std::unique_ptr<TokenConstraint> constraint;
  std::vector<std::uint64_t> mask;
  std::optional<StopText> stop_text;
  std::deque<TokenOut> held;  // tokens in which a stop string may begin

  std::size_t reserved_tokens = 0, reserved_bytes = 0;
  std::uint64_t waited = 0;  // passes, while in the prompt
  std::uint64_t order = 0;
  int faults = 0;
  bool done = false;

  // While it waits for a place:
  bool loading = false, disk_tried = false;
  std::shared_ptr<const Snapshot> loaded;
};

}  // namespace triax
