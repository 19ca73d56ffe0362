// Prompt passes and decode passes under a stopwatch.
#include "triax/cli/bench_runner.h"

#include <time.h>

#include "triax/cli/interrupt.h"
#include "triax/cli/progress.h"
#include "triax/engine/generate.h"

namespace triax::cli {
namespace {

constexpr std::size_t kWarmTokens = 64;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The clocks of a sample, and the context's profile, run while it lives.
class Timed {
 public:
  Timed(Context& ctx, std::size_t tokens, Sample& sample)
      : ctx_(ctx), tokens_(tokens), sample_(sample), processor_before_(processor_seconds()) {
    ctx_.profile = &profile_;
    watch_.restart();
    profile_.start();
  }
  ~Timed() {
    profile_.stop();
    sample_.passes = {profile_, watch_.seconds(), tokens_};
    sample_.processor_seconds = processor_seconds() - processor_before_;
    ctx_.profile = nullptr;
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Context& ctx_;
  std::size_t tokens_;
  Sample& sample_;
  Profile profile_;
  double processor_before_;
  Stopwatch watch_;
};

// Feeds the ids under a status line.
void feed(Session& session, SequenceState& state, std::span<const std::int32_t> ids,
          std::size_t chunk, std::span<float> logits, const std::string& label) {
  Progress progress(label, Unit::tokens, ids.size());
  const bool done = prefill(session.ctx, session.model(), state, ids, chunk, logits,
                            [&](std::size_t n, std::size_t) {
                              progress.update(n);
                              return !interrupted();
                            });
  if (!done || interrupted()) throw Interrupted();
}

}  // namespace

BenchRunner::BenchRunner(Session& session, std::size_t chunk, std::uint64_t seed)
    : session_(session), chunk_(chunk), rng_(seed), logits_(session.config().vocab_size) {}

std::vector<std::int32_t> BenchRunner::random_ids(std::size_t count) {
  std::vector<std::int32_t> out(count);
  for (std::int32_t& id : out) {
    id = static_cast<std::int32_t>(rng_.next() % session_.config().vocab_size);
  }
  return out;
}

void BenchRunner::warm_up() {
  SequenceState state(session_.config(), session_.ctx.precision);
  feed(session_, state, random_ids(kWarmTokens), chunk_, logits_, "first pass");
}

Sample BenchRunner::measure(const Measurement& what, const std::string& label) {
  return what.prompt ? measure_prompt(what, label) : measure_decode(what, label);
}

Sample BenchRunner::measure_prompt(const Measurement& what, const std::string& label) {
  Sample out;
  const std::vector<std::int32_t> ids = random_ids(what.tokens);
  SequenceState state(session_.config(), session_.ctx.precision);
  {
    const Timed timed(session_.ctx, what.all_tokens(), out);
    feed(session_, state, ids, chunk_, {logits_.data(), session_.config().vocab_size}, label);
  }
  out.state_bytes = state.bytes();
  return out;
}

SequenceState BenchRunner::at_depth(std::size_t depth, std::size_t number,
                                    const std::string& label) {
  const auto key = std::pair(depth, number);
  const auto found = states_.find(key);
  if (found != states_.end()) return found->second.fork();
  SequenceState state(session_.config(), session_.ctx.precision);
  feed(session_, state, random_ids(depth), chunk_, {}, label + ", before it a prompt");
  return states_.emplace(key, std::move(state)).first->second.fork();
}

Sample BenchRunner::measure_decode(const Measurement& what, const std::string& label) {
  Sample out;
  const std::size_t vocab = session_.config().vocab_size;
  logits_.resize(checked_mul(what.sequences, vocab));
  const std::vector<std::int32_t> ids = random_ids(what.all_tokens());
  std::vector<SequenceState> states;
  std::vector<BatchEntry> entries;
  states.reserve(what.sequences);  // entries point into it
  for (std::size_t s = 0; s < what.sequences; ++s) {
    states.push_back(at_depth(what.depth, s, label));
    entries.push_back({&states.back(), {}, LogitRows::last});
  }
  {
    Progress progress(label, Unit::tokens, what.all_tokens());
    const Timed timed(session_.ctx, what.all_tokens(), out);
    for (std::size_t step = 0; step < what.tokens && !interrupted(); ++step) {
      for (std::size_t s = 0; s < what.sequences; ++s) {
        entries[s].ids = std::span(ids).subspan(step * what.sequences + s, 1);
      }
      forward(session_.ctx, session_.model(), entries,
              Mat<float>(logits_.data(), {what.sequences, vocab}));
      progress.update((step + 1) * what.sequences);
    }
  }
  if (interrupted()) throw Interrupted();
  for (const SequenceState& state : states) out.state_bytes += state.bytes();
  return out;
}

}  // namespace triax::cli
