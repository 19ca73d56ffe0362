// How well and how alike: losses and distances of next-token distributions, in double precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace triax::cli {

// log(sum_i exp(x_i)), of at least one logit.
double log_sum_exp(std::span<const float> logits);

// -log p(target), nats.
double token_loss(std::span<const float> logits, std::int32_t target);

// KL(p || q) of two rows of logits, nats; never below 0.
double kl_divergence(std::span<const float> p, std::span<const float> q);

// The smallest value that at least a part `q` of the values do not exceed; 0 of none.
double quantile(std::vector<double> values, double q);

}  // namespace triax::cli
