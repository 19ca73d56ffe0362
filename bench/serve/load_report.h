// Figures of a load run, as text and as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace triax::bench {

// Of many numbers, by their place in order: 0.5 is the median. 0 where there are none.
double quantile(std::vector<float>& values, double q);

// Resident memory over the run: (seconds, bytes).
using MemorySamples = std::vector<std::pair<double, std::size_t>>;
// Growth from the first sample at or after `from` seconds to the mean of the last tenth, as a part.
double growth_after(const MemorySamples& samples, double from);

struct LoadFigures {
  double seconds = 0;
  std::size_t clients = 0;
  std::size_t answers = 0, wrong = 0, lost = 0, refused = 0;
  std::uint64_t tokens = 0, prompt_tokens = 0, cached_tokens = 0;
  std::vector<float> first, gaps, whole;  // seconds
  MemorySamples memory;
  double memory_from = 60;  // when memory is first looked at
};

nlohmann::ordered_json figures_json(LoadFigures& f);
std::string figures_text(const nlohmann::ordered_json& figures);

}  // namespace triax::bench
