#include "triax/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "triax/core/error.h"
#include "triax/sampling/token_constraint.h"

namespace triax {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

void check_range(const char* name, float value, float low, float high) {
  if (!(value >= low && value <= high)) {
    fail("{} {} is out of range: expected {} to {}", name, value, low, high);
  }
}

}  // namespace

void check_sampling(const SamplingParams& p) {
  if (!(p.temperature >= 0.0f) || !std::isfinite(p.temperature)) {
    fail("temperature {} is out of range: expected 0 (greedy) or more", p.temperature);
  }
  if (!(p.top_p > 0.0f && p.top_p <= 1.0f)) {
    fail("top-p {} is out of range: expected more than 0 and at most 1", p.top_p);
  }
  if (!(p.min_p >= 0.0f && p.min_p < 1.0f)) {
    fail("min-p {} is out of range: expected at least 0 and less than 1", p.min_p);
  }
  check_range("presence penalty", p.presence_penalty, -2, 2);
  check_range("frequency penalty", p.frequency_penalty, -2, 2);
  if (!(p.repetition_penalty > 0.0f) || !std::isfinite(p.repetition_penalty)) {
    fail("repetition penalty {} is out of range: expected more than 0 (1: none)",
         p.repetition_penalty);
  }
}

void check_bias(std::span<const LogitBias> bias) {
  for (const LogitBias& b : bias) check_range("logit bias", b.bias, -100, 100);
}

std::int32_t argmax(std::span<const float> logits) {
  std::size_t best = 0;
  bool found = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) continue;
    if (!found || logits[i] > logits[best]) best = i;
    found = true;
  }
  TRIAX_CHECK(found, "no logit is a number");
  return static_cast<std::int32_t>(best);
}

Sampler::Sampler(const SamplingParams& params, std::span<const std::int32_t> prompt,
                 std::vector<LogitBias> bias)
    : params_(params),
      bias_(std::move(bias)),
      counts_(params.presence_penalty != 0.0f || params.frequency_penalty != 0.0f ||
              params.repetition_penalty != 1.0f),
      rng_(params.seed) {
  check_sampling(params);
  check_bias(bias_);
  if (params.repetition_penalty == 1.0f) return;
  for (const std::int32_t id : prompt) seen_[id].in_prompt = true;
}

// The logits with penalties and bias; what the limits exclude is minus infinity.
std::span<const float> Sampler::adjusted(std::span<const float> logits,
                                         const SampleLimits& limits) {
  const bool penalties = counts_ && !seen_.empty();
  if (!penalties && bias_.empty() && limits.mask.empty() && limits.banned.empty()) {
    return logits;
  }
  changed_.assign(logits.begin(), logits.end());
  const auto at = [&](std::int32_t id) -> float* {
    if (id < 0 || static_cast<std::size_t>(id) >= changed_.size()) return nullptr;
    return &changed_[static_cast<std::size_t>(id)];
  };
  if (penalties) {
    for (const auto& [id, seen] : seen_) {
      float* x = at(id);
      if (x == nullptr) continue;
      const float r = params_.repetition_penalty;
      if (r != 1.0f) *x = *x > 0.0f ? *x / r : *x * r;
      if (seen.generated == 0) continue;
      *x -=
          params_.presence_penalty + params_.frequency_penalty * static_cast<float>(seen.generated);
    }
  }
  for (const LogitBias& b : bias_) {
    if (float* x = at(b.id)) *x += b.bias;
  }
  for (const std::int32_t id : limits.banned) {
    if (float* x = at(id)) *x = kImpossible;
  }
  if (!limits.mask.empty()) {
    TRIAX_CHECK(limits.mask.size() == mask_words(logits.size()), "the mask covers the vocabulary");
    for (std::size_t w = 0; w < limits.mask.size(); ++w) {
      const std::uint64_t bits = limits.mask[w];
      if (~bits == 0) continue;
      const std::size_t end = std::min(changed_.size(), 64 * (w + 1));
      for (std::size_t i = 64 * w; i < end; ++i) {
        if ((bits >> (i % 64) & 1) == 0) changed_[i] = kImpossible;
      }
    }
  }
  return changed_;
}

std::int32_t Sampler::sample(std::span<const float> logits, const SampleLimits& limits) {
  const std::int32_t id = choose(adjusted(logits, limits));
  if (counts_ && id >= 0) ++seen_[id].generated;
  return id;
}

// The fewest candidates, likeliest first, that reach top-p of the whole; sorted only as far as they
// go.
void Sampler::keep_top_p() {
  // Most likely first; equal ones by id, so that the order is one.
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  const auto at = [&](std::size_t i) {
    return candidates_.begin() + static_cast<std::ptrdiff_t>(i);
  };
  double sum = 0;
  for (const Candidate& c : candidates_) sum += c.p;
  double reached = 0;
  std::size_t keep = 0, sorted = 0;
  while (keep < candidates_.size() && reached < params_.top_p * sum) {
    if (keep == sorted) {
      const std::size_t next = std::min(candidates_.size(), std::max<std::size_t>(128, 4 * sorted));
      if (next < candidates_.size()) {
        std::nth_element(at(sorted), at(next), candidates_.end(), likelier);
      }
      std::sort(at(sorted), at(next), likelier);
      sorted = next;
    }
    reached += candidates_[keep++].p;
  }
  candidates_.resize(std::max<std::size_t>(keep, 1));
}

std::int32_t Sampler::choose(std::span<const float> logits) {
  candidates_.clear();
  if (params_.temperature == 0.0f) {
    std::size_t best = logits.size();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (std::isnan(logits[i]) || logits[i] == kImpossible) continue;
      if (best == logits.size() || logits[i] > logits[best]) best = i;
    }
    return best == logits.size() ? -1 : static_cast<std::int32_t>(best);
  }
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == kImpossible) continue;
    candidates_.push_back({static_cast<std::int32_t>(i), logits[i], 0.0});
  }
  if (candidates_.empty()) return -1;
  if (params_.top_k > 0 && params_.top_k < candidates_.size()) {
    const auto keep = candidates_.begin() + static_cast<std::ptrdiff_t>(params_.top_k);
    std::nth_element(candidates_.begin(), keep, candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
                     });
    candidates_.resize(params_.top_k);
  }
  float largest = candidates_[0].logit;
  for (const Candidate& c : candidates_) largest = std::max(largest, c.logit);
  for (Candidate& c : candidates_) {
    c.p = std::exp((static_cast<double>(c.logit) - largest) / params_.temperature);
  }
  if (params_.top_p < 1.0f) keep_top_p();
  if (params_.min_p > 0.0f) {  // the most likely token has p = 1 before normalising
    std::erase_if(candidates_, [&](const Candidate& c) { return c.p < params_.min_p; });
  }
  double sum = 0;
  for (const Candidate& c : candidates_) sum += c.p;
  double left = rng_.uniform() * sum;
  for (const Candidate& c : candidates_) {
    left -= c.p;
    if (left < 0) return c.id;
  }
  return candidates_.back().id;
}

}  // namespace triax
