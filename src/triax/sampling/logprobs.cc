#include "triax/sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "triax/core/error.h"

namespace triax {
namespace {

// log sum exp of the logits, in double.
double log_total(std::span<const float> logits) {
  float largest = -std::numeric_limits<float>::infinity();
  for (const float x : logits) {
    if (x > largest) largest = x;
  }
  if (!std::isfinite(largest)) return largest;
  double sum = 0;
  for (const float x : logits) {
    if (!std::isnan(x)) sum += std::exp(static_cast<double>(x) - largest);
  }
  return largest + std::log(sum);
}

}  // namespace

float logprob_of(std::span<const float> logits, std::int32_t id) {
  TRIAX_CHECK(id >= 0 && static_cast<std::size_t>(id) < logits.size());
  return static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(id)]) -
                            log_total(logits));
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, std::size_t count) {
  std::vector<TokenLogprob> out;
  const auto likelier = [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
  };
  for (std::size_t i = 0; i < logits.size() && count > 0; ++i) {
    if (std::isnan(logits[i])) continue;
    const TokenLogprob here{static_cast<std::int32_t>(i), logits[i]};
    if (out.size() == count && !likelier(here, out.back())) continue;
    if (out.size() == count) out.pop_back();
    out.insert(std::upper_bound(out.begin(), out.end(), here, likelier), here);
  }
  const double total = log_total(logits);
  for (TokenLogprob& t : out) t.logprob = static_cast<float>(t.logprob - total);
  return out;
}

}  // namespace triax
