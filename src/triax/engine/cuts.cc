#include "triax/engine/cuts.h"

#include <algorithm>

#include "triax/core/error.h"

namespace triax {

CutPlan::CutPlan(std::size_t prompt_tokens, std::span<const std::size_t> cuts, std::size_t chunk) {
  TRIAX_CHECK(chunk > 0);
  std::size_t last = 0;
  const auto up_to = [&](std::size_t cut) {
    for (std::size_t end = last + chunk; end < cut; end += chunk) ends_.push_back(end);
    ends_.push_back(cut);
    last = cut;
  };
  for (const std::size_t cut : cuts) {
    if (cut <= last || cut > prompt_tokens) {
      fail("cut {} of a prompt of {} tokens: cuts must ascend from 1 to the prompt's length", cut,
           prompt_tokens);
    }
    up_to(cut);
  }
  if (last < prompt_tokens) up_to(prompt_tokens);
}

std::size_t CutPlan::next(std::size_t position) const {
  const auto found = std::upper_bound(ends_.begin(), ends_.end(), position);
  TRIAX_CHECK(found != ends_.end());
  return *found;
}

std::size_t CutPlan::at_most(std::size_t position) const {
  const auto found = std::upper_bound(ends_.begin(), ends_.end(), position);
  return found == ends_.begin() ? 0 : *std::prev(found);
}

void Trail::piece(std::size_t end) {
  TRIAX_CHECK(end > length());
  if (end == length() + 1) {  // a pass over one row is a row by itself
    rows(end);
  } else {
    steps_.push_back({end, false});
  }
}

void Trail::rows(std::size_t end) {
  TRIAX_CHECK(end > length());
  if (!steps_.empty() && steps_.back().by_row) {
    steps_.back().end = end;
  } else {
    steps_.push_back({end, true});
  }
}

Trail Trail::of(const CutPlan& plan, std::size_t tokens) {
  Trail out;
  for (const std::size_t end : plan.ends()) {
    if (end > tokens) break;
    out.piece(end);
  }
  TRIAX_CHECK(out.length() == tokens);
  return out;
}

std::size_t Trail::common(const CutPlan& plan) const {
  // Walks the plan's pieces along the steps.
  std::size_t at = 0, step = 0;
  for (const std::size_t end : plan.ends()) {
    while (step < steps_.size() && steps_[step].end <= at) ++step;
    if (step == steps_.size()) break;
    const TrailStep& s = steps_[step];
    const bool same = end == at + 1 ? s.by_row && end <= s.end : !s.by_row && end == s.end;
    if (!same) break;
    at = end;
  }
  return at;
}

}  // namespace triax
