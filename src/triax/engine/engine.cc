// The engine's outside, and the loop of its thread.
#include "triax/engine/engine.h"

#include <algorithm>
#include <cmath>

#include "triax/engine/engine_impl.h"

namespace triax {
namespace {

constexpr int kMaxPriority = 8;
constexpr std::size_t kMaxChoices = 128;

double seconds_between(EngineClock::time_point a, EngineClock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

std::size_t longest_that_fits(const StateCost& cost, const EngineOptions& o) {
  if (o.chunk == 0 || o.chunk % 64 != 0) {
    fail("a piece of {} tokens: expected a multiple of 64", o.chunk);
  }
  if (o.prompt_budget < o.chunk) {
    fail("{} prompt tokens a pass: expected at least a piece, {}", o.prompt_budget, o.chunk);
  }
  if (o.max_context < 2 || o.max_sequences == 0) {
    fail("{} tokens of context and {} sequences: expected at least 2 and 1", o.max_context,
         o.max_sequences);
  }
  const std::size_t least = cost.of(std::min(o.chunk, o.max_context));
  if (o.state_bytes < least) {
    fail("{} bytes for states: one sequence needs at least {}; raise the budget", o.state_bytes,
         least);
  }
  if (cost.page_bytes == 0) return o.max_context;
  return std::min(o.max_context, (o.state_bytes - cost.fixed) / cost.page_bytes * kPageTokens);
}

// A state costs as much as so many tokens of latent rows: kept that far apart, states along a
// prompt take at most as much memory as its rows.
std::size_t interval_of(const StateCost& cost, const EngineOptions& o) {
  if (o.cache_interval != 0) return o.cache_interval;
  const std::size_t tokens = cost.page_bytes == 0 ? 16 * o.chunk : cost.snapshot_in_tokens();
  return std::max(o.chunk, (tokens + o.chunk - 1) / o.chunk * o.chunk);
}

}  // namespace

Engine::Impl::Impl(const Model& m, ThreadPool& p, const Tokenizer* t, EngineOptions o)
    : model(m),
      pool(p),
      tokenizer(t),
      options(std::move(o)),
      plan(plan_capacity(m.config, options.precision, options.state_bytes, options.max_context,
                         options.max_sequences)),
      cost(plan.cost),
      longest(longest_that_fits(cost, options)),
      interval(interval_of(cost, options)),
      turns(options.turn_memory_tokens),
      ctx{p, arena, options.precision, nullptr, nullptr},
      cache(m.config, options.precision) {
  if (options.cache_folder.empty()) return;
  disk = std::make_unique<DiskCache>(
      options.cache_folder, options.cache_disk_bytes, m.config, options.precision,
      fmt::format("{}; pieces {}", options.model_identity, options.chunk),
      [this] {
        {
          const std::lock_guard lock(shared.mutex);
          shared.woken = true;
        }
        shared.work.notify_one();
      },
      options.warn);
  turns.keep_in(disk->folder() / "turns");
}

Engine::Impl::~Impl() {
  stop();
}

void Engine::Impl::check(const Request& r) const {
  const std::size_t vocab = model.config.vocab_size;
  if (r.prompt.empty()) fail("the prompt has no tokens: give at least one");
  for (std::size_t i = 0; i < r.prompt.size(); ++i) {
    if (r.prompt[i] < 0 || static_cast<std::size_t>(r.prompt[i]) >= vocab) {
      fail("token id {} at position {} is outside the vocabulary (0..{})", r.prompt[i], i,
           vocab - 1);
    }
  }
  if (r.prompt.size() >= longest) {
    fail("the prompt has {} tokens: at most {} can be served ({})", r.prompt.size(), longest - 1,
         longest < options.max_context ? "memory for states binds" : "the context limit");
  }
  if (r.history_end != 0 && !std::binary_search(r.cuts.begin(), r.cuts.end(), r.history_end)) {
    fail("the history ends at {}, which is not among the cuts", r.history_end);
  }
  if (r.n == 0 || r.n > std::min(kMaxChoices, options.max_sequences)) {
    fail("n is {}: expected 1 to {}", r.n, std::min(kMaxChoices, options.max_sequences));
  }
  if (checked_mul(cost.of(r.prompt.size() + 1), r.n) > options.state_bytes) {
    fail("{} choices of a prompt of {} tokens do not fit in the memory for states; ask for fewer",
         r.n, r.prompt.size());
  }
  if (r.max_tokens == 0) fail("max_tokens is 0: expected at least 1");
  if (r.top_logprobs > kMaxTopLogprobs) {
    fail("top_logprobs is {}: expected at most {}", r.top_logprobs, kMaxTopLogprobs);
  }
  if (std::abs(r.priority) > kMaxPriority) {
    fail("priority {} is out of range: expected {} to {}", r.priority, -kMaxPriority, kMaxPriority);
  }
  if (!r.stop_strings.empty() && tokenizer == nullptr) {
    fail("stop strings need a tokenizer, which this model folder lacks; use stop ids");
  }
  for (const std::string& s : r.stop_strings) {
    if (s.empty()) fail("a stop string is empty: expected at least one byte");
  }
  check_sampling(r.sampling);
  check_bias(r.logit_bias);
  for (const LogitBias& b : r.logit_bias) {
    if (b.id < 0 || static_cast<std::size_t>(b.id) >= vocab) {
      fail("logit bias for token id {}, which is outside the vocabulary (0..{})", b.id, vocab - 1);
    }
  }
}

Submitted Engine::Impl::submit(Request request, EventSink sink) {
  check(request);
  auto group = std::make_shared<Group>(std::move(request), std::move(sink), options.chunk);
  group->arrived = EngineClock::now();
  group->usage.prompt_tokens = group->prompt_tokens();
  group->open_choices = group->request.n;
  Submitted out;
  {
    const std::lock_guard lock(shared.mutex);
    if (shared.closed || shared.waiting >= options.max_queue) {
      ++shared.refused;
      out.retry_after_seconds = shared.retry_after;
      return out;
    }
    out.id = group->id = shared.next_id++;
    ++shared.waiting;
    ++shared.open;
    ++shared.requests;
    shared.inbox.push_back(std::move(group));
  }
  shared.work.notify_one();
  return out;
}

void Engine::Impl::cancel(RequestId id) {
  {
    const std::lock_guard lock(shared.mutex);
    shared.cancelled.push_back(id);
  }
  shared.work.notify_one();
}

void Engine::Impl::drain(std::chrono::milliseconds grace) {
  std::unique_lock lock(shared.mutex);
  shared.closed = true;
  if (!shared.started || shared.ended) return;
  shared.idle.wait_for(lock, grace, [&] { return shared.open == 0; });
}

void Engine::Impl::stop() {
  bool never_ran = false;
  {
    const std::lock_guard lock(shared.mutex);
    shared.closed = true;
    shared.stopping = true;
    never_ran = !shared.started && !shared.ended;
    if (never_ran) shared.ended = true;
  }
  shared.work.notify_one();
  if (never_ran) run();  // ends what was accepted
  if (thread.joinable()) thread.join();
}

// Sleeps until there is something to do.
bool Engine::Impl::wait_for_work() {
  std::unique_lock lock(shared.mutex);
  const auto ready = [&] {
    return shared.stopping || shared.woken || !shared.inbox.empty() || !shared.cancelled.empty();
  };
  // Whoever waits for a place gets one, or an end, when nobody runs; only a load from disk keeps
  // it.
  const bool idle = running.empty() && std::all_of(queue.begin(), queue.end(),
                                                   [](const auto& s) { return s->loading; });
  if (idle) {
    std::optional<EngineClock::time_point> until;
    for (const auto& s : queue) {
      const auto& deadline = s->group->request.deadline;
      if (deadline && (!until || *deadline < *until)) until = deadline;
    }
    if (until) {
      shared.work.wait_until(lock, *until, ready);
    } else {
      shared.work.wait(lock, ready);
    }
  }
  shared.woken = false;
  return !shared.stopping;
}

void Engine::Impl::take_inbox() {
  std::deque<std::shared_ptr<Group>> fresh;
  std::vector<RequestId> cancelled;
  {
    const std::lock_guard lock(shared.mutex);
    fresh.swap(shared.inbox);
    cancelled.swap(shared.cancelled);
  }
  for (std::shared_ptr<Group>& group : fresh) {
    auto s = std::make_unique<Sequence>(group, 0, group->request.sampling.seed);
    s->leads = true;
    s->order = ++order;
    s->constraint = std::move(group->request.constraint);
    groups.emplace(group->id, std::move(group));
    queue.push_back(std::move(s));
  }
  for (const RequestId id : cancelled) {
    const auto found = groups.find(id);
    if (found != groups.end()) found->second->cancelled = true;
  }
}

void Engine::Impl::sweep() {
  const auto now = EngineClock::now();
  for (auto* list : {&queue, &running}) {
    for (const auto& s : *list) {
      if (s->done) continue;
      const Group& group = *s->group;
      if (group.cancelled) {
        finish(*s, {.reason = FinishReason::cancelled});
      } else if (group.request.deadline && *group.request.deadline <= now) {
        finish(*s, {.reason = FinishReason::expired});
      }
    }
  }
  drop_done();
}

Verdict Engine::Impl::emit(Group& group, const Event& event) {
  Verdict verdict = Verdict::cancel;
  try {
    verdict = group.sink(event);
  } catch (...) {  // a sink that throws has nobody left to tell
  }
  if (verdict == Verdict::cancel) group.cancelled = true;
  return verdict;
}

// Ends a choice, and with a leader all those it stands for.
void Engine::Impl::finish(Sequence& s, ChoiceEnd end) {
  TRIAX_CHECK(!s.done);
  s.done = true;
  const std::shared_ptr<Group> group = s.group;
  const bool wanted = end.reason != FinishReason::failed && end.reason != FinishReason::cancelled;
  if (wanted && !end.stop_string) tell_held(s, s.held.size());
  keep_turn(s);
  release(s);
  const auto first = s.ids.begin() + static_cast<std::ptrdiff_t>(group->prompt_tokens());
  end.ids.assign(first, s.ids.end());
  for (std::size_t i = 0; i < s.width(); ++i) {
    end.choice = s.choice + i;
    end_choice(*group, end);
  }
}

void Engine::Impl::end_choice(Group& group, ChoiceEnd end) {
  ++counts.finished[static_cast<std::size_t>(end.reason)];
  emit(group, end);
  if (--group.open_choices > 0) return;
  const auto now = EngineClock::now();
  RequestEnd last{group.usage, 0, 0};
  if (group.has_started) {
    const auto first = group.has_token ? group.first_token : now;
    last.prompt_seconds = seconds_between(group.started, first);
    last.decode_seconds = seconds_between(first, now);
    request_seconds += 0.2 * (seconds_between(group.started, now) - request_seconds);
  }
  emit(group, last);
  groups.erase(group.id);
  {
    const std::lock_guard lock(shared.mutex);
    --shared.open;
    if (!group.has_started) --shared.waiting;
  }
  shared.idle.notify_all();
}

void Engine::Impl::drop_done() {
  std::erase_if(queue, [](const auto& s) { return s->done; });
  std::erase_if(running, [](const auto& s) { return s->done; });
}

void Engine::Impl::publish() {
  counts.queued = queue.size();
  counts.running = running.size();
  counts.sequences_bytes = reserved;
  counts.cache_bytes = cache.bytes();
  counts.cache_entries = cache.entries();
  counts.cache_evictions = cache.evictions();
  const double ahead = static_cast<double>(queue.size()) /
                       static_cast<double>(std::max<std::size_t>(running.size(), 1));
  const std::lock_guard lock(shared.mutex);
  shared.stats = counts;
  shared.retry_after = std::clamp(std::ceil((1 + ahead) * request_seconds / 2), 1.0, 60.0);
}

// What the disk has to say: states that were loaded, and those that need not be kept for it.
void Engine::Impl::take_from_disk() {
  if (!disk) return;
  disk->release_saved();
  for (DiskCache::Loaded& loaded : disk->take_loaded()) {
    for (const auto& s : queue) {
      if (s->group->id != loaded.tag) continue;
      s->loading = false;
      s->loaded = loaded.snapshot;
    }
    if (loaded.snapshot) cache.insert(std::move(loaded.snapshot));
  }
  cache.shrink(cache_limit());
}

// A fault that nobody could be found for, such as no memory for the engine's own lists.
void Engine::Impl::fail_all(const std::string& what) {
  std::erase_if(queue, [](const auto& s) { return s == nullptr; });
  for (auto* list : {&queue, &running}) {
    for (const auto& s : *list) {
      if (s != nullptr && !s->done) {
        finish(*s, {.reason = FinishReason::failed, .error = what});
      }
    }
  }
  drop_done();
}

void Engine::Impl::run() {
  while (wait_for_work()) {
    try {
      take_inbox();
      take_from_disk();
      sweep();
      admit();
      publish();  // who runs is told before its first token is
      if (!running.empty()) pass();
      sweep();
    } catch (const std::exception& e) {
      fail_all(e.what());
    }
    publish();
  }
  take_inbox();
  for (auto& [id, group] : groups) group->cancelled = true;
  sweep();
  publish();
  if (disk) disk->flush();
  {
    const std::lock_guard lock(shared.mutex);
    shared.ended = true;
  }
  shared.idle.notify_all();
}

Engine::Engine(const Model& model, ThreadPool& pool, const Tokenizer* tokenizer,
               EngineOptions options)
    : impl_(std::make_unique<Impl>(model, pool, tokenizer, std::move(options))) {}
Engine::~Engine() = default;

void Engine::start() {
  {
    const std::lock_guard lock(impl_->shared.mutex);
    TRIAX_CHECK(!impl_->shared.started && !impl_->shared.stopping, "an engine starts once");
    impl_->shared.started = true;
  }
  impl_->thread = std::thread([this] { impl_->run(); });
}

void Engine::drain(std::chrono::milliseconds grace) {
  impl_->drain(grace);
  impl_->stop();
}
void Engine::stop() {
  impl_->stop();
}
Submitted Engine::submit(Request request, EventSink sink) {
  return impl_->submit(std::move(request), std::move(sink));
}
void Engine::cancel(RequestId id) {
  impl_->cancel(id);
}
TurnMemory& Engine::turns() {
  return impl_->turns;
}
const EngineOptions& Engine::options() const {
  return impl_->options;
}
const CapacityPlan& Engine::capacity() const {
  return impl_->plan;
}
std::size_t Engine::longest_sequence() const {
  return impl_->longest;
}

EngineStats Engine::stats() const {
  EngineStats out;
  {
    const std::lock_guard lock(impl_->shared.mutex);
    out = impl_->shared.stats;
    out.queued = impl_->shared.waiting;
    out.requests = impl_->shared.requests;
    out.refused = impl_->shared.refused;
  }
  if (impl_->disk) {
    const DiskStats d = impl_->disk->stats();
    out.disk_bytes = d.bytes;
    out.disk_entries = d.entries;
    out.disk_writes = d.writes;
    out.disk_reads = d.reads;
    out.disk_faults = d.faults;
    out.disk_bytes_written = d.bytes_written;
    out.disk_bytes_read = d.bytes_read;
    out.disk_write_seconds = d.write_seconds;
    out.disk_read_seconds = d.read_seconds;
  }
  return out;
}

}  // namespace triax
