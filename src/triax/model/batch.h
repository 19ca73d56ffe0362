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

// The entries laid out as rows [0, T), in the order given.
struct Batch {
  explicit Batch(std::span<const BatchEntry> entries);

  std::size_t rows() const { return ids.size(); }
  // A state probe needs one sequence to speak of.
  bool single() const { return states.size() == 1; }

  std::vector<std::int32_t> ids;        // [T]
  std::vector<Segment> segments;        // one an entry
  std::vector<SequenceState*> states;   // one an entry, all different
  std::vector<std::size_t> logit_rows;  // rows of the batch that get logits, ascending
};

}  // namespace triax
