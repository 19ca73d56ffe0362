#include "triax/core/profile.h"

namespace triax {

std::string_view family_name(Family family) {
  constexpr std::array<std::string_view, kFamilies> names = {
      "embedding",       "depth_mix",      "norms",     "kda_projections", "kda_recurrence",
      "mla_projections", "mla_attention",  "dense_mlp", "shared_experts",  "router",
      "latent",          "routed_experts", "lm_head",   "sampling",        "other"};
  return names[static_cast<std::size_t>(family)];
}

void Profile::charge() {
  const Clock::time_point now = Clock::now();
  if (running_) entry(current_).seconds += std::chrono::duration<double>(now - since_).count();
  since_ = now;
}

void Profile::start() {
  charge();
  running_ = true;
}

void Profile::stop() {
  charge();
  running_ = false;
}

Family Profile::enter(Family family) {
  charge();
  const Family before = current_;
  current_ = family;
  return before;
}

Profile::Entry Profile::total() const {
  Entry sum;
  for (const Entry& e : entries_) {
    sum.seconds += e.seconds;
    sum.bytes += e.bytes;
    sum.operations += e.operations;
  }
  return sum;
}

}  // namespace triax
