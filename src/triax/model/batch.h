// What one forward pass works on: rows of one or several sequences, one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "triax/core/view.h"
#include "triax/ops/segments.h"
#include "triax/state/sequence_state.h"

namespace triax {

// Which rows of a sequence get logits.
enum class LogitRows : std::uint8_t { none, last, all };

// New tokens of one sequence: a piece of its prompt, or the token to decode from.
struct BatchEntry {
  SequenceState* state = nullptr;
  Vec<const std::int32_t> ids;  // at least one
  LogitRows logits = LogitRows::last;
};

// A sequence's rows of one pass go through the matrix unit, where there is one, from so many on.
inline constexpr std::size_t kMatrixRows = 16;

// The entries laid out as rows [0, T): those of long runs first, otherwise in the order given.
struct Batch {
  explicit Batch(std::span<const BatchEntry> entries);

  std::size_t rows() const { return ids.size(); }
  // A state probe needs one sequence to speak of.
  bool single() const { return states.size() == 1; }

  std::vector<std::int32_t> ids;         // [T]
  std::vector<Segment> segments;         // one an entry
  std::vector<SequenceState*> states;    // one an entry, all different
  std::size_t matrix_rows = 0;           // rows of long runs: the first ones
  std::vector<std::size_t> logit_rows;   // rows of the batch that get logits, ascending
  std::size_t matrix_logit_rows = 0;     // those among them that belong to long runs
  std::vector<std::size_t> logit_slots;  // [logit_rows] their rows of the caller's logits

 private:
  void add(const BatchEntry& entry, std::size_t slot);
};

}  // namespace triax
