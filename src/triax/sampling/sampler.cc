#include "triax/sampling/sampler.h"

#include <algorithm>
#include <cmath>

#include "triax/core/error.h"

namespace triax {

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

Sampler::Sampler(const SamplingParams& params) : params_(params), rng_(params.seed) {
  check_sampling(params);
}

std::int32_t Sampler::sample(std::span<const float> logits) {
  if (params_.temperature == 0.0f) return argmax(logits);
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i]))
      candidates_.push_back({static_cast<std::int32_t>(i), logits[i], 0.0});
  }
  TRIAX_CHECK(!candidates_.empty(), "no logit is a number");
  // Most likely first; equal ones by id, so that the order is one.
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  const auto begin = candidates_.begin();
  if (params_.top_k > 0 && params_.top_k < candidates_.size()) {
    const auto keep = begin + static_cast<std::ptrdiff_t>(params_.top_k);
    std::nth_element(begin, keep, candidates_.end(), likelier);
    candidates_.resize(params_.top_k);
  }
  if (params_.top_p < 1.0f) {
    std::sort(candidates_.begin(), candidates_.end(), likelier);
  }
  float largest = candidates_[0].logit;
  for (const Candidate& c : candidates_) largest = std::max(largest, c.logit);
  double sum = 0;
  for (Candidate& c : candidates_) {
    c.p = std::exp((static_cast<double>(c.logit) - largest) / params_.temperature);
    sum += c.p;
  }
  if (params_.top_p < 1.0f) {
    double reached = 0;
    std::size_t keep = 0;
    while (keep < candidates_.size() && reached < params_.top_p * sum)
      reached += candidates_[keep++].p;
    candidates_.resize(std::max<std::size_t>(keep, 1));
  }
  if (params_.min_p > 0.0f) {  // the most likely token has p = 1 before normalising
    std::erase_if(candidates_, [&](const Candidate& c) { return c.p < params_.min_p; });
  }
  sum = 0;
  for (const Candidate& c : candidates_) sum += c.p;
  double left = rng_.uniform() * sum;
  for (const Candidate& c : candidates_) {
    left -= c.p;
    if (left < 0) return c.id;
  }
  return candidates_.back().id;
}

}  // namespace triax
