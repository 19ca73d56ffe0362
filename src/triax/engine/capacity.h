// How many sequences fit in memory: a fixed part for each (KDA states) and one that grows with its
// length (latent pages).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "triax/config/config.h"
#include "triax/core/context.h"

namespace triax {

// Bytes of states by the configuration. A sequence of t tokens takes
// fixed + pages(t) * page_bytes.
struct StateCost {
  std::size_t kda = 0;         // matrices and convolution tails
  std::size_t fixed = 0;       // the same and one row of logits
  std::size_t page_bytes = 0;  // kPageTokens tokens in all MLA layers

  std::size_t of(std::size_t tokens) const;         // throws Error on overflow
  std::size_t latent_of(std::size_t tokens) const;  // without the fixed part
  // Tokens whose latent rows take as much as one KDA state; 0 without MLA layers.
  std::size_t snapshot_in_tokens() const;
};
StateCost state_cost(const K3Config& config, Precision precision);

// Users of one context length.
struct CapacityLine {
  std::size_t context = 0;  // tokens
  std::size_t users = 0;
  bool latent_binds = false;  // latent pages take more than the KDA states
};

struct CapacityPlan {
  StateCost cost;
  std::size_t bytes = 0;          // memory for states
  std::size_t max_sequences = 0;  // that the engine runs at once
  std::vector<CapacityLine> lines;
  // "memory for states 4.00 GiB; ..." over several lines, each ending in a newline.
  std::string text() const;
};
// Contexts: powers of four from 1,024 up to `max_context`, and max_context itself.
CapacityPlan plan_capacity(const K3Config& config, Precision precision, std::size_t bytes,
                           std::size_t max_context, std::size_t max_sequences);

}  // namespace triax
