// Log probabilities of the model's own distribution, before any setting of the sampler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace triax {

inline constexpr std::size_t kMaxTopLogprobs = 20;

struct TokenLogprob {
  std::int32_t id = 0;
  float logprob = 0;
};

// log softmax(logits)[id], natural logarithm; NaN logits count as impossible.
float logprob_of(std::span<const float> logits, std::int32_t id);

// The likeliest `count` tokens, equal ones by id.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, std::size_t count);

}  // namespace triax
