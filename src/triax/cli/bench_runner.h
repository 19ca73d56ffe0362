// Runs one measurement on an open model.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "triax/cli/bench_plan.h"
#include "triax/cli/load_model.h"
#include "triax/cli/profile_table.h"
#include "triax/core/rng.h"

namespace triax::cli {

// One run of a measurement.
struct Sample {
  Profiled passes = {};          // the timed passes; tokens over all sequences
  double processor_seconds = 0;  // of all threads of this process, in the same time
  std::size_t state_bytes = 0;   // of all sequences together, at the end

  double rate() const { return static_cast<double>(passes.tokens) / passes.seconds; }
};

class BenchRunner {
 public:
  // Random ids come from `seed`; prompts go through the model `chunk` tokens at a time.
  BenchRunner(Session& session, std::size_t chunk, std::uint64_t seed);

  // A first short prompt, so that what is measured finds its weights mapped and its threads awake.
  void warm_up();
  // `label` stands in the status line. Throws Interrupted on Ctrl-C, Error when memory is short.
  Sample measure(const Measurement& what, const std::string& label);

 private:
  Sample measure_prompt(const Measurement& what, const std::string& label);
  Sample measure_decode(const Measurement& what, const std::string& label);
  SequenceState at_depth(std::size_t depth, std::size_t number, const std::string& label);
  std::vector<std::int32_t> random_ids(std::size_t count);

  Session& session_;
  std::size_t chunk_;
  Rng rng_;
  std::vector<float> logits_;  // [rows of a pass, vocab]
  // Sequences to decode from, by depth and number: filled once, forked for each run.
  std::map<std::pair<std::size_t, std::size_t>, SequenceState> states_;
};

}  // namespace triax::cli
