// What `triax bench` measures, as names that a command line and a script can say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "triax/cli/options.h"

namespace triax::cli {

// "pp512": a prompt of 512 tokens. "tg128@16": 128 tokens decoded from depth 16, one after the
// other. "tg64@16x8": the same for 8 sequences in one pass, 64 tokens each.
struct Measurement {
  bool prompt = false;
  std::size_t tokens = 0;     // of the prompt, or decoded by each sequence
  std::size_t depth = 0;      // tokens in each state before the first decoded one
  std::size_t sequences = 1;  // in one pass

  std::size_t all_tokens() const { return tokens * sequences; }
  std::string name() const;
  bool operator==(const Measurement&) const = default;
};

// By its name; throws UsageError with the form of names.
Measurement parse_measurement(std::string_view name);

// The prompts, then decoding at a depth, then several sequences; or those that --only names.
std::vector<Measurement> plan_measurements(const BenchCommand& command);

}  // namespace triax::cli
