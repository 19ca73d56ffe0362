// What a training tells about its steps and evaluations: the lines of metrics.jsonl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace triax::train {

struct LayerLoad {
  std::size_t layer = 0;
  double max_over_mean = 0, dead = 0;
  std::vector<std::uint64_t> tokens;  // [experts]
};
// Norms of the gradients of a head's q, k and v rows (of q and kv_b for MLA).
struct HeadNorms {
  std::size_t layer = 0;
  std::vector<double> norm;  // [heads]
};

struct StepRecord {
  std::size_t step = 0;  // from 1: steps taken, this one included
  std::size_t stage = 0;
  std::uint64_t tokens = 0;                  // rows so far
  std::vector<std::uint64_t> source_tokens;  // rows so far, of each data source
  std::size_t step_tokens = 0, counted = 0;  // rows of this step; those with a target
  double loss = 0;                           // mean over rows with a target, nats
  double rate = 0, gradient_norm = 0;
  bool qat = false, applied = true;
  std::string note;               // why it was left out, or what is wrong with the loads
  std::size_t heads_clipped = 0;  // by QK-clip
  std::vector<LayerLoad> loads;   // layers with experts
  std::vector<HeadNorms> heads;
  double seconds = 0, gflops = 0;  // 6 * active parameters * tokens a second
};

struct HeldOutLoss {
  std::string name;
  double loss = 0;
  std::uint64_t counted = 0;
};
// A range of positions in a document, or a distance, and what was measured there.
struct Bucket {
  std::size_t begin = 0, end = 0;
  double value = 0;      // mean loss; probability of the right token
  double reference = 0;  // recall: the same tokens at their first occurrence
  std::uint64_t counted = 0;
};
struct DepthSite {
  std::string name;             // "layer3.attention"
  std::vector<double> weights;  // of the stored sums, oldest first, then the running sum
};

struct EvaluationRecord {
  std::size_t step = 0;
  std::uint64_t tokens = 0;
  bool exported = false;  // of the numbers that the exported model holds
  std::vector<HeldOutLoss> held_out;
  std::vector<Bucket> by_position, by_distance;
  std::vector<DepthSite> depth;
};

}  // namespace triax::train
