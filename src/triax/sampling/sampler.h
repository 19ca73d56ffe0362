// From logits to a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "triax/core/rng.h"

namespace triax {

struct SamplingParams {
  float temperature = 1.0f;  // 0: greedy
  float top_p = 1.0f;        // (0, 1]
  std::size_t top_k = 0;     // 0: all
  float min_p = 0.0f;        // [0, 1), relative to the most likely token
  std::uint64_t seed = 0;
};

// Throws Error naming the parameter that is out of its range.
void check_sampling(const SamplingParams& params);

// Lowest id among the largest logits. NaN is never chosen.
std::int32_t argmax(std::span<const float> logits);

// Filters in the usual order: temperature, top-k, top-p, min-p; then one draw. The same seed and
// logits give the same tokens.
class Sampler {
 public:
  explicit Sampler(const SamplingParams& params);
  std::int32_t sample(std::span<const float> logits);

 private:
  struct Candidate {
    std::int32_t id;
    float logit;
    double p;
  };
  SamplingParams params_;
  Rng rng_;
  std::vector<Candidate> candidates_;
};

}  // namespace triax
