// Checkpoints of a training: all that the next step depends on.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "triax/train/guard.h"
#include "triax/train/sampler.h"

namespace triax::train {

struct TrainState {
  std::size_t step = 0;      // steps taken, those left out included
  std::uint64_t tokens = 0;  // rows
  std::size_t stage = 0;
  std::uint64_t stage_tokens = 0;   // rows of this stage
  std::size_t optimizer_steps = 0;  // steps applied
  double seconds = 0;               // of all steps
  GuardState guard;
  std::vector<SourcePosition> sources;
  std::vector<std::string> digests;  // of the sources' files
};

// The large arrays of a training, in the layout of its parameters.
struct TrainArrays {
  std::span<float> weights, first, second;
};

// Writes FOLDER/step-00000123, whole or not at all: under another name first, onto the disk, then
// renamed. Of the older ones `keep - 1` stay.
void write_train_checkpoint(const std::filesystem::path& folder, const TrainState& state,
                            const TrainArrays& arrays, std::size_t keep);

// The newest whole checkpoint below `folder`; none when there is none. Half-written ones are not
// looked at.
std::optional<std::filesystem::path> latest_train_checkpoint(const std::filesystem::path& folder);

// Reads one. Throws Error when it does not fit the arrays' sizes.
TrainState read_train_checkpoint(const std::filesystem::path& checkpoint,
                                 const TrainArrays& arrays);

}  // namespace triax::train
