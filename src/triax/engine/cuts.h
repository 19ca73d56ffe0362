// In which pieces a prompt goes through the model. A row's result depends on where its piece begins
// and ends (to the last bits), so the pieces follow from the request alone: never from the load,
// the other sequences or the cache.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace triax {

// Ends of the pieces of a prompt: the caller's cuts, multiples of `chunk` from the last cut before
// them, and the prompt's end.
class CutPlan {
 public:
  // Throws Error when `cuts` does not ascend within (0, prompt_tokens].
  CutPlan(std::size_t prompt_tokens, std::span<const std::size_t> cuts, std::size_t chunk);

  // The first end after `position`; position < prompt_tokens.
  std::size_t next(std::size_t position) const;
  // The last end that is at most `position`, 0 when there is none.
  std::size_t at_most(std::size_t position) const;
  std::span<const std::size_t> ends() const { return ends_; }

 private:
  std::vector<std::size_t> ends_;
};

// How the tokens of a state were fed, as steps; what two states with equal ids and equal trails
// hold is equal bit for bit.
struct TrailStep {
  std::size_t end = 0;
  bool by_row = false;  // from the step before to `end` each token in a pass of its own
  friend bool operator==(const TrailStep&, const TrailStep&) = default;
};

class Trail {
 public:
  // A pass over tokens [length(), end).
  void piece(std::size_t end);
  // One token after the other up to `end`.
  void rows(std::size_t end);

  std::size_t length() const { return steps_.empty() ? 0 : steps_.back().end; }
  const std::vector<TrailStep>& steps() const { return steps_; }
  // The trail of a state of this plan after `tokens`, which is one of its ends.
  static Trail of(const CutPlan& plan, std::size_t tokens);
  // Tokens after which this trail and that of the plan part; the plan's steps only count whole.
  std::size_t common(const CutPlan& plan) const;

  friend bool operator==(const Trail&, const Trail&) = default;

 private:
  std::vector<TrailStep> steps_;
};

}  // namespace triax
