// Who gets a place, from which state it goes on, and what happens when memory is short.
#include <algorithm>

#include "triax/engine/engine_impl.h"

namespace triax {
namespace {

constexpr std::size_t kReserveTokens = 256;  // generated tokens that a new sequence has room for
constexpr std::size_t kGrowTokens = 1024;
constexpr std::size_t kWorthTokens = 64;  // a longer start is worth a wait, or a state of its own
constexpr double kSecondsPerPriority = 10;
constexpr double kSecondsPerRunning = 2;  // of the same client
// A request that does not fit lets smaller ones pass it for so long.
constexpr double kPatienceSeconds = 5;

}  // namespace

std::size_t Engine::Impl::cache_limit() const {
  return std::min(options.cache_bytes,
                  options.state_bytes - std::min(options.state_bytes, reserved));
}

// Of one choice, up to where it first asks for more.
std::size_t Engine::Impl::tokens_wanted(const Sequence& s) const {
  const std::size_t left =
      s.group->request.max_tokens - std::min(s.group->request.max_tokens, s.generated());
  return std::min(longest, s.ids.size() + std::clamp<std::size_t>(left, 1, kReserveTokens));
}

// Takes memory for `tokens` tokens of each sequence that s stands for; states that nobody runs make
// room.
bool Engine::Impl::reserve(Sequence& s, std::size_t tokens) {
  const std::size_t bytes = checked_mul(cost.of(tokens), s.width());
  const std::size_t others = reserved - s.reserved_bytes;
  if (bytes > options.state_bytes - std::min(options.state_bytes, others)) return false;
  reserved = others + bytes;
  s.reserved_bytes = bytes;
  s.reserved_tokens = tokens;
  cache.shrink(cache_limit());
  return true;
}

void Engine::Impl::release(Sequence& s) {
  reserved -= s.reserved_bytes;
  s.reserved_bytes = s.reserved_tokens = 0;
  s.state.reset();
}

void Engine::Impl::admit() {
  if (queue.empty()) return;
  const auto now = EngineClock::now();
  std::unordered_map<std::string_view, std::size_t> by_client;
  for (const auto& s : running) ++by_client[s->group->request.client];
  struct Place {
    double rank;
    double waited;
    Sequence* s;
  };
  std::vector<Place> places;
  for (const auto& s : queue) {
    const Request& r = s->group->request;
    const double waited = std::chrono::duration<double>(now - s->group->arrived).count();
    const auto runs = by_client.find(r.client);
    const double busy = runs == by_client.end() ? 0 : static_cast<double>(runs->second);
    places.push_back(
        {kSecondsPerRunning * busy - kSecondsPerPriority * r.priority - waited, waited, s.get()});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.s->order < b.s->order;
  });
  for (const Place& place : places) {
    if (!admit_one(*place.s, place.waited)) break;
  }
  // Those that were given a place are null now.
  std::erase_if(queue, [](const auto& s) { return s == nullptr; });
  drop_done();
}

// False when nobody behind may be looked at.
bool Engine::Impl::admit_one(Sequence& s, double waited) {
  if (s.loading) return true;
  std::size_t sequences = 0;
  for (const auto& r : running) sequences += r->width();
  if (sequences + s.width() > options.max_sequences) return false;
  const std::size_t tokens = tokens_wanted(s);
  const std::size_t bytes = checked_mul(cost.of(tokens), s.width());
  if (bytes > options.state_bytes - reserved) {
    if (!running.empty()) return waited < kPatienceSeconds;
    finish(s, {.reason = FinishReason::failed,
               .error = fmt::format("no memory for {} tokens of state", tokens)});
    return true;
  }
  const Request& request = s.group->request;
  std::shared_ptr<const Snapshot> hit;
  if (request.cache != CacheUse::none) {
    hit = cache.find(request.prompt, s.group->plan, request.cache);
    if (s.loaded && (hit == nullptr || hit->tokens() < s.loaded->tokens())) hit = s.loaded;
    const std::size_t found = hit ? hit->tokens() : 0;
    if (waits_for_sibling(s, found) || waits_for_disk(s, found)) return true;
  }
  s.loaded.reset();
  begin(s, std::move(hit), tokens);
  return true;
}

// Another sequence is about to compute the same start: its state will do, and is asked for.
bool Engine::Impl::waits_for_sibling(Sequence& s, std::size_t hit) {
  const Request& request = s.group->request;
  for (const auto& other : running) {
    const Group& group = *other->group;
    if (other->group == s.group || !other->in_prompt() || !group.request.keep ||
        group.request.priority < request.priority) {
      continue;
    }
    const std::size_t same = common_tokens(request.prompt, group.request.prompt);
    std::size_t shared_end = 0;
    const auto mine = s.group->plan.ends(), theirs = group.plan.ends();
    for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
      if (mine[i] != theirs[i] || mine[i] > same) break;
      shared_end = mine[i];
    }
    if (shared_end < hit + kWorthTokens || other->fed() >= shared_end) continue;
    other->keep[shared_end] = true;
    return true;
  }
  return false;
}

bool Engine::Impl::waits_for_disk(Sequence& s, std::size_t hit) {
  if (!disk || s.disk_tried) return false;
  s.disk_tried = true;
  const Request& request = s.group->request;
  auto entry = disk->find(request.prompt, s.group->plan, request.cache, hit + kWorthTokens - 1);
  if (entry == nullptr) return false;
  s.loading = true;
  disk->load(std::move(entry), s.group->id);
  return true;
}

// Gives the sequence its state and its place.
void Engine::Impl::begin(Sequence& s, std::shared_ptr<const Snapshot> hit, std::size_t tokens) {
  Group& group = *s.group;
  const std::size_t alike = group.request.keep ? cache.common(group.request.prompt) : 0;
  TRIAX_CHECK(reserve(s, tokens));
  try {
    s.state.emplace(hit ? hit->state.fork() : SequenceState(model.config, options.precision));
  } catch (const std::exception& e) {
    cache.shrink(0);
    finish(s, {.reason = FinishReason::failed,
               .error = fmt::format("no memory for a new sequence: {}", e.what())});
    return;
  }
  const std::size_t from = s.fed();
  s.trail = hit ? hit->trail : Trail{};
  s.free_from = hit ? hit->free_from : kNone;
  s.start_logits = hit && from == s.ids.size() ? hit->logits : std::vector<float>{};
  s.last_kept = from;
  s.waited = 0;
  s.keep.clear();
  if (group.request.keep) {
    s.keep[group.prompt_tokens()] = false;
    if (group.request.history_end > from) s.keep[group.request.history_end] = false;
    // The second sight of a common start: from now on it is worth a state.
    const std::size_t common = group.plan.at_most(alike);
    if (common >= from + kWorthTokens) s.keep[common] = true;
  }
  if (!group.has_started) {
    group.has_started = true;
    group.started = EngineClock::now();
    group.usage.cached_tokens = from;
    counts.prompt_tokens += group.prompt_tokens();
    counts.cached_tokens += from;
    ++(from > 0 ? counts.cache_hits : counts.cache_misses);
    {
      const std::lock_guard lock(shared.mutex);
      --shared.waiting;
    }
    emit(group,
         Started{from, std::chrono::duration<double>(group.started - group.arrived).count()});
  }
  const auto place =
      std::find_if(queue.begin(), queue.end(), [&](const auto& q) { return q.get() == &s; });
  running.push_back(std::move(*place));
}

void Engine::Impl::put_back(Sequence& s) {
  release(s);
  s.trail = {};
  s.free_from = kNone;
  s.disk_tried = false;
  const auto place =
      std::find_if(running.begin(), running.end(), [&](const auto& r) { return r.get() == &s; });
  queue.push_back(std::move(*place));
  running.erase(place);
}

// Room for the next token of s. Where there is none the latest of the least urgent gives up its
// state, to be computed again; false when that is s itself.
bool Engine::Impl::make_memory(Sequence& s) {
  const std::size_t need = s.fed() + 1;
  if (need <= s.reserved_tokens) return true;
  while (!reserve(s, std::min(longest, need + kGrowTokens)) && !reserve(s, need)) {
    Sequence* victim = nullptr;
    for (const auto& r : running) {
      if (r->done) continue;
      const int mine = r->group->request.priority;
      if (victim == nullptr || mine < victim->group->request.priority ||
          (mine == victim->group->request.priority && r->order > victim->order)) {
        victim = r.get();
      }
    }
    if (victim == &s && running.size() == 1) {  // cannot be: `longest` fits alone
      finish(s, {.reason = FinishReason::failed, .error = "no memory for another token"});
      return false;
    }
    put_back(*victim);
    if (victim == &s) return false;
  }
  return true;
}

// A copy of the state of a running sequence for whoever comes later.
void Engine::Impl::keep_state(Sequence& s, std::span<const float> row, bool for_others) {
  s.last_kept = s.fed();
  Prefix key;
  key.ids.assign(s.ids.begin(), s.ids.begin() + static_cast<std::ptrdiff_t>(s.fed()));
  key.trail = s.trail;
  key.has_logits = !row.empty();
  if (cost.of(s.fed()) > cache_limit() || cache.holds(key)) return;
  try {
    auto snapshot = std::make_shared<const Snapshot>(s.state->fork(), s.trail, s.free_from,
                                                     std::vector<float>(row.begin(), row.end()));
    if (disk && for_others) disk->save(snapshot, true);
    cache.insert(std::move(snapshot));
    cache.shrink(cache_limit());
  } catch (const Error&) {  // no memory: it is not kept
    cache.shrink(cache.bytes() / 2);
  }
}

// The state at the end of a turn, or where a prompt was given up; it is no longer needed here.
void Engine::Impl::keep_turn(Sequence& s) {
  const std::size_t tokens = s.fed();
  if (tokens <= s.last_kept || !s.group->request.keep) return;
  const bool whole = !s.in_prompt();
  if (!whole && tokens < s.last_kept + options.chunk) return;
  try {
    auto snapshot =
        std::make_shared<const Snapshot>(std::move(*s.state), s.trail, s.free_from,
                                         std::vector<float>(s.last_row.begin(), s.last_row.end()));
    release(s);  // what it held counts as the cache's now
    if (disk && whole) disk->save(snapshot, false);
    cache.insert(std::move(snapshot));
    cache.shrink(cache_limit());
  } catch (const std::exception&) {  // no memory: it is not kept
    cache.shrink(cache.bytes() / 2);
  }
}

}  // namespace triax
