#include "triax/engine/schedule.h"

#include <algorithm>
#include <cmath>

namespace triax {
namespace {

constexpr std::array<double, 2> kShare = {3, 1};
constexpr double kTokensPerPassWaited = 256;

double rank(const WaitingPrompt& w) {
  return static_cast<double>(w.remaining) * std::exp2(-w.priority) -
         static_cast<double>(w.waited) * kTokensPerPassWaited;
}

}  // namespace

std::vector<std::size_t> PromptShares::choose(std::span<const WaitingPrompt> waiting,
                                              std::size_t budget) {
  std::array<std::vector<std::size_t>, 2> classes;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    classes[waiting[i].remaining <= kShortPrompt ? 0 : 1].push_back(i);
  }
  for (auto& members : classes) {
    std::sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      const double ra = rank(waiting[a]), rb = rank(waiting[b]);
      return ra != rb ? ra < rb : waiting[a].order < waiting[b].order;
    });
  }
  // A class that asks for nothing saves nothing up.
  for (const std::size_t c : {0, 1}) {
    if (classes[c].empty()) served_[c] = std::max(served_[c], served_[1 - c]);
  }
  const double least = std::min(served_[0], served_[1]);
  for (double& s : served_) s -= least;

  const std::size_t first = served_[0] <= served_[1] ? 0 : 1;
  std::vector<std::size_t> out;
  for (const std::size_t c : {first, 1 - first}) {
    for (const std::size_t i : classes[c]) {
      if (!out.empty() && waiting[i].piece > budget) continue;
      out.push_back(i);
      budget -= std::min(budget, waiting[i].piece);
      served_[c] += static_cast<double>(waiting[i].piece) / kShare[c];
    }
  }
  return out;
}

}  // namespace triax
