// Which piece of which document comes next, and packed batches of them. Everything follows from
// seed and position, so that a training goes on where it stopped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "triax/train/documents.h"
#include "triax/train/step.h"
#include "triax/train/train_config.h"

namespace triax::train {

// Where a source stands.
struct SourcePosition {
  std::uint64_t epoch = 0;   // times that all its documents were drawn
  std::uint64_t index = 0;   // of the next document in this epoch's order
  std::uint64_t row = 0;     // of that document, where the next piece begins
  std::uint64_t tokens = 0;  // rows drawn in all
};

// Rows of one document: inputs ids[0 .. rows), targets ids[1 .. rows], where learned.
struct Piece {
  const std::int32_t* ids = nullptr;
  const std::uint8_t* learn = nullptr;
  std::size_t rows = 0;
  std::size_t source = 0;
};

// Draws documents, each source in an order of its own, anew every epoch (Fisher and Yates from the
// seed). Next comes the source that is furthest behind its share of the tokens. Documents longer
// than the context are cut into pieces that know nothing of each other.
class Sampler {
 public:
  Sampler(std::span<const DocumentSet> sources, std::uint64_t seed);

  // The next piece of at most `context` rows; pop() goes past it. Documents that may not be cut
  // and are longer are passed over; a source without any other is an Error.
  Piece peek(std::size_t context);
  void pop(const Piece& piece);

  std::span<const SourcePosition> positions() const { return positions_; }
  // Throws Error when they do not fit the sources.
  void set_positions(std::span<const SourcePosition> positions);

 private:
  void shuffle(std::size_t source);
  void next_document(std::size_t source);
  void pass_over(std::size_t source, std::size_t context);
  std::span<const DocumentSet> sources_;
  std::uint64_t seed_;
  double weights_ = 0;
  std::vector<SourcePosition> positions_;
  std::vector<std::vector<std::uint32_t>> order_;
};

// Documents packed into one pass. No padding; a document begins with a fresh state.
struct PackedBatch {
  std::vector<std::int32_t> ids, targets;
  std::vector<Segment> documents;
  std::vector<float> weights;  // of the rows' losses; empty: all 1
  std::size_t counted = 0;     // rows with a target

  void add(const Piece& piece);
  TrainBatch view() const {
    return {ids, targets, documents,
            weights.empty() ? Vec<const float>{} : Vec<const float>(weights)};
  }
};

// The passes of one step: whole pieces up to micro_batch_tokens rows each, until the step has
// batch_tokens rows and something to learn.
std::vector<PackedBatch> draw_step(Sampler& sampler, const Stage& stage);

}  // namespace triax::train
