// One pass: prompt pieces and decode rows together, then a token for each sequence that is due.
#include <algorithm>
#include <cmath>

#include "triax/engine/engine_impl.h"

namespace triax {

// Sequences that take part: all that decode, and prompts by their shares.
std::vector<Sequence*> Engine::Impl::choose() {
  std::vector<Sequence*> out, prompts;
  std::vector<WaitingPrompt> waiting;
  for (const auto& r : running) {
    if (!r->start_logits.empty()) continue;
    if (!r->in_prompt()) {
      out.push_back(r.get());
      continue;
    }
    prompts.push_back(r.get());
    waiting.push_back({r->next_end() - r->fed(), r->group->prompt_tokens() - r->fed(),
                       r->group->request.priority, r->waited, r->order});
  }
  for (Sequence* s : prompts) ++s->waited;
  for (const std::size_t i : shares.choose(waiting, options.prompt_budget)) {
    prompts[i]->waited = 0;
    out.push_back(prompts[i]);
  }
  return out;
}

void Engine::Impl::pass() {
  std::vector<Sequence*> all;
  for (const auto& r : running) all.push_back(r.get());
  for (Sequence* s : all) {
    if (s->state && !s->done && !s->in_prompt() && s->start_logits.empty()) make_memory(*s);
  }
  drop_done();
  const std::vector<Sequence*> chosen = choose();
  rows.clear();
  std::vector<Sequence*> from_cache;
  for (const auto& r : running) {
    if (!r->start_logits.empty()) from_cache.push_back(r.get());
  }
  if (!chosen.empty() && !feed(chosen)) return;
  for (Sequence* s : from_cache) rows.push_back({.sequence = s, .logits = s->start_logits});
  take_inbox();  // who has gone away meanwhile gets no token any more
  for (std::size_t i = 0, n = rows.size(); i < n; ++i) {
    rows[i].sequence->last_row = rows[i].logits;
    if (rows[i].sequence->leads) split(*rows[i].sequence);
  }
  pool.parallel_for(rows.size(), [&](std::size_t i, std::size_t) { draw(rows[i]); });
  for (DrawnRow& row : rows) take(row);
  for (const auto& r : running) r->last_row = {};
  for (Sequence* s : from_cache) s->start_logits.clear();
  drop_done();
}

bool Engine::Impl::feed(std::span<Sequence* const> chosen) {
  const Stopwatch watch;
  std::vector<BatchEntry> entries;
  for (Sequence* s : chosen) {
    const std::size_t end = s->next_end();
    const auto ids = std::span<const std::int32_t>(s->ids).subspan(s->fed(), end - s->fed());
    entries.push_back({&*s->state, ids, end == s->ids.size() ? LogitRows::last : LogitRows::none});
  }
  const std::size_t vocab = model.config.vocab_size, count = logit_row_count(entries);
  try {
    if (logits.size() < count * vocab) logits.resize(count * vocab);
    forward(ctx, model, entries, Mat<float>(logits.data(), {count, vocab}));
  } catch (const std::exception& e) {
    fault(chosen, e.what());
    return false;
  }
  ++counts.passes;
  counts.pass_seconds += watch.seconds();
  std::size_t row = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Sequence& s = *chosen[i];
    std::span<const float> values;
    if (entries[i].logits == LogitRows::last) {
      values = std::span<const float>(logits).subspan(row++ * vocab, vocab);
      rows.push_back({.sequence = &s, .logits = values});
    }
    const bool of_prompt = s.fed() - entries[i].ids.size() < s.group->prompt_tokens();
    fed_one(s, s.fed());
    if (of_prompt) after_piece(s, values);
  }
  return true;
}

// The books after tokens up to `end` went through the model.
void Engine::Impl::fed_one(Sequence& s, std::size_t end) {
  const std::size_t before = s.trail.length(), prompt = s.group->prompt_tokens();
  if (before < prompt) {
    s.trail.piece(end);
    counts.forwarded_prompt_tokens += end - before;
  } else {
    if (s.free_from == kNone) {
      s.free_from = std::min(s.group->plan.at_most(prompt - 1), s.trail.common(s.group->plan));
    }
    s.trail.rows(end);
    counts.decoded_tokens += end - before;
  }
  counts.replayed_tokens += std::min(s.furthest, end) - std::min(s.furthest, before);
  s.furthest = std::max(s.furthest, end);
}

void Engine::Impl::after_piece(Sequence& s, std::span<const float> row) {
  Group& group = *s.group;
  const auto place = s.keep.find(s.fed());
  const bool by_distance = group.request.keep && s.fed() >= s.last_kept + interval;
  if (place != s.keep.end() || by_distance) {
    keep_state(s, row, place != s.keep.end() && place->second);
  }
  if (s.generated() == 0 && s.choice == 0) {
    emit(group, PromptProgress{s.fed(), group.prompt_tokens()});
  }
}

// A pass that failed leaves its states half written: they are given up and computed once more, and
// who fails twice ends.
void Engine::Impl::fault(std::span<Sequence* const> chosen, const std::string& what) {
  cache.shrink(cache.bytes() / 2);  // where memory was short
  for (Sequence* s : chosen) {
    s->state.reset();
    if (++s->faults < 2) {
      put_back(*s);
    } else {
      finish(*s, {.reason = FinishReason::failed, .error = what});
    }
  }
  drop_done();
}

// The prompt is done: the other choices go on from the same state and draw from the same logits.
void Engine::Impl::split(Sequence& leader) {
  const std::size_t n = leader.group->request.n;
  leader.leads = false;
  if (n == 1) return;
  const std::size_t bytes = leader.reserved_bytes / n;
  reserved -= leader.reserved_bytes;
  leader.reserved_bytes = bytes;
  reserved += bytes;
  const std::span<const float> row = leader.last_row;
  for (std::size_t i = 1; i < n; ++i) {
    const std::uint64_t seed = leader.group->request.sampling.seed + i;
    auto s = std::make_unique<Sequence>(leader.group, i, seed);
    s->order = ++order;
    s->trail = leader.trail;
    s->free_from = leader.free_from;
    s->last_kept = leader.last_kept;
    s->furthest = leader.furthest;
    if (leader.constraint) s->constraint = leader.constraint->fork();
    s->reserved_tokens = leader.reserved_tokens;
    s->reserved_bytes = bytes;
    reserved += bytes;
    Sequence* at = s.get();
    running.push_back(std::move(s));
    try {
      at->state.emplace(leader.state->fork());
    } catch (const std::exception& e) {
      finish(*at, {.reason = FinishReason::failed,
                   .error = fmt::format("no memory for a choice: {}", e.what())});
      continue;
    }
    at->last_row = row;
    rows.push_back({.sequence = at, .logits = row});
  }
}

// Draws a token. Runs beside other rows: touches nothing but its sequence.
void Engine::Impl::draw(DrawnRow& row) {
  Sequence& s = *row.sequence;
  const Request& request = s.group->request;
  if (s.group->cancelled) return;
  try {
    if (std::any_of(row.logits.begin(), row.logits.end(), [](float x) { return std::isnan(x); })) {
      fail("the model's logits are not numbers (NaN) after {} tokens", s.fed());
    }
    SampleLimits limits;
    if (s.constraint) {
      s.mask.resize(mask_words(row.logits.size()));
      s.constraint->fill_mask(s.mask);
      limits.mask = s.mask;
    }
    if (s.generated() < request.min_tokens) limits.banned = request.stop_ids;
    row.id = s.sampler.sample(row.logits, limits);
    if (row.id < 0) fail("no token may stand after {} tokens: all are excluded", s.fed());
    if (s.constraint && !s.constraint->accept(row.id)) {
      fail("token {} after {} tokens is not allowed by its own mask", row.id, s.fed());
    }
    row.out = {.choice = s.choice, .id = row.id};
    if (request.logprobs) row.out.logprob = logprob_of(row.logits, row.id);
    if (request.top_logprobs > 0) row.out.top = top_logprobs(row.logits, request.top_logprobs);
  } catch (const std::exception& e) {
    row.error = e.what();
  }
}

// The drawn token's way out: an end, or an event.
void Engine::Impl::take(DrawnRow& row) {
  Sequence& s = *row.sequence;
  Group& group = *s.group;
  if (s.done || group.cancelled) return;
  if (!row.error.empty()) {
    finish(s, {.reason = FinishReason::failed, .error = row.error});
    return;
  }
  if (!group.has_token) {
    group.has_token = true;
    group.first_token = EngineClock::now();
  }
  ++group.usage.completion_tokens;
  const Request& request = group.request;
  const auto& stops = request.stop_ids;
  if (std::find(stops.begin(), stops.end(), row.id) != stops.end()) {
    finish(s, {.reason = FinishReason::stop, .stop_id = row.id});
    return;
  }
  s.ids.push_back(row.id);
  bool go_on = true;
  if (s.stop_text) {
    s.held.push_back(std::move(row.out));
    const bool known = row.id < tokenizer->vocab_size();
    if (const auto found = s.stop_text->push(known ? tokenizer->token_bytes(row.id) : "")) {
      if (found->keep_tokens > 0) s.held[found->keep_tokens - 1].keep_bytes = found->keep_bytes;
      tell_held(s, found->keep_tokens);
      finish(s, {.reason = FinishReason::stop, .stop_string = found->stop});
      return;
    }
    go_on = tell_held(s, s.stop_text->release());
  } else {
    go_on = tell(s, std::move(row.out));
  }
  if (!go_on) {
    finish(s, {.reason = FinishReason::stop});
  } else if (s.generated() >= request.max_tokens || s.ids.size() >= longest) {
    finish(s, {.reason = FinishReason::length});
  }
}

bool Engine::Impl::tell(Sequence& s, TokenOut token) {
  return emit(*s.group, std::move(token)) != Verdict::stop;
}

bool Engine::Impl::tell_held(Sequence& s, std::size_t count) {
  for (; count > 0; --count) {
    TokenOut token = std::move(s.held.front());
    s.held.pop_front();
    if (!tell(s, std::move(token))) return false;
  }
  return true;
}

}  // namespace triax
