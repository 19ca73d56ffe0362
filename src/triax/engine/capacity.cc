#include "triax/engine/capacity.h"

#include <algorithm>

#include "triax/core/checked.h"
#include "triax/state/sequence_state.h"

namespace triax {
namespace {

std::string amount(std::size_t bytes) {
  const double b = static_cast<double>(bytes);
  if (b >= 0x1p30) return fmt::format("{:.2f} GiB", b / 0x1p30);
  if (b >= 0x1p20) return fmt::format("{:.1f} MiB", b / 0x1p20);
  return fmt::format("{:.1f} KiB", b / 0x1p10);
}

}  // namespace

std::size_t StateCost::latent_of(std::size_t tokens) const {
  return checked_mul(checked_add(tokens, kPageTokens - 1) / kPageTokens, page_bytes);
}

std::size_t StateCost::of(std::size_t tokens) const {
  return checked_add(fixed, latent_of(tokens));
}

std::size_t StateCost::snapshot_in_tokens() const {
  return page_bytes == 0 ? 0 : kda / (page_bytes / kPageTokens);
}

StateCost state_cost(const K3Config& config, Precision precision) {
  const StateSize size = state_size(config, precision);
  const std::size_t kda = checked_add(size.kda_matrices, size.conv_tails);
  return {kda, checked_add(kda, checked_mul(config.vocab_size, sizeof(float))),
          checked_mul(kPageTokens, size.latent_per_token)};
}

CapacityPlan plan_capacity(const K3Config& config, Precision precision, std::size_t bytes,
                           std::size_t max_context, std::size_t max_sequences) {
  CapacityPlan out{state_cost(config, precision), bytes, max_sequences, {}};
  std::vector<std::size_t> contexts;
  for (std::size_t c = 1024; c < max_context; c *= 4) contexts.push_back(c);
  contexts.push_back(max_context);
  for (const std::size_t context : contexts) {
    const std::size_t each = out.cost.of(context);
    const std::size_t latent = out.cost.latent_of(context);
    out.lines.push_back(
        {context, each == 0 ? max_sequences : bytes / each, latent > each - latent});
  }
  return out;
}

std::string CapacityPlan::text() const {
  std::string out =
      fmt::format("memory for states {}: {} for each sequence", amount(bytes), amount(cost.fixed));
  if (cost.page_bytes != 0) {
    out += fmt::format(" (as much as {} tokens), {} for each 1,000 tokens",
                       cost.snapshot_in_tokens(), amount(cost.page_bytes * 1000 / kPageTokens));
  }
  out += "\n";
  for (const CapacityLine& line : lines) {
    const bool bound_by_slots = line.users > max_sequences;
    const char* binds = bound_by_slots      ? "the number of sequences that run at once binds"
                        : line.latent_binds ? "the growing latent cache binds"
                                            : "the fixed KDA states bind";
    out += fmt::format("  {:>9} tokens each: {:>5} users at once; {}\n", line.context,
                       std::min(line.users, max_sequences), binds);
  }
  return out;
}

}  // namespace triax
