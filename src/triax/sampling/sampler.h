// From logits to a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "triax/core/rng.h"

namespace triax {

struct LogitBias {
  std::int32_t id = 0;
  float bias = 0;  // added to the logit, [-100, 100]
};

struct SamplingParams {
  float temperature = 1.0f;  // 0: greedy
  float top_p = 1.0f;        // (0, 1]
  std::size_t top_k = 0;     // 0: all
  float min_p = 0.0f;        // [0, 1), relative to the most likely token
  std::uint64_t seed = 0;

  // Penalties for tokens that were there before; [-2, 2], 0 for none. The logit of a token that was
  // generated c > 0 times loses presence_penalty + c * frequency_penalty.
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  // > 0, 1 for none: divides positive logits and multiplies negative ones of tokens that stand in
  // the prompt or were generated (Keskar et al. 2019, arXiv:1909.05858, section 4.1).
  float repetition_penalty = 1.0f;
};

// Throw Error naming the parameter that is out of its range.
void check_sampling(const SamplingParams& params);
void check_bias(std::span<const LogitBias> bias);

// Lowest id among the largest logits. NaN is never chosen.
std::int32_t argmax(std::span<const float> logits);

// What may not be chosen at one step.
struct SampleLimits {
  std::span<const std::uint64_t> mask = {};   // as TokenConstraint::fill_mask; empty: all allowed
  std::span<const std::int32_t> banned = {};  // stop ids while a minimum is not reached
};

// Penalties and bias, limits, then filters in the usual order: temperature, top-k, top-p, min-p;
// then one draw. The same seed and logits give the same tokens.
class Sampler {
 public:
  explicit Sampler(const SamplingParams& params, std::span<const std::int32_t> prompt = {},
                   std::vector<LogitBias> bias = {});

  // The token; it counts as generated from now on. -1 when the limits and NaN leave none.
  std::int32_t sample(std::span<const float> logits, const SampleLimits& limits = {});

 private:
  struct Candidate {
    std::int32_t id;
    float logit;
    double p;
  };
  struct Seen {
    std::uint32_t generated = 0;  // times
    bool in_prompt = false;
  };
  std::span<const float> adjusted(std::span<const float> logits, const SampleLimits& limits);
  std::int32_t choose(std::span<const float> logits);
  void keep_top_p();

  SamplingParams params_;
  std::vector<LogitBias> bias_;
  bool counts_;  // any penalty needs to know what was there
  Rng rng_;
  std::unordered_map<std::int32_t, Seen> seen_;
  std::vector<float> changed_;
  std::vector<Candidate> candidates_;
};

}  // namespace triax
