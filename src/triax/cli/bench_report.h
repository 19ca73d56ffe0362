// What `triax bench` found, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "triax/cli/bench_runner.h"
#include "triax/cli/memory.h"
#include "triax/machine/limits.h"

namespace triax::cli {

// The two limits of the machine, with the threads of the run; zeros when they were not measured.
struct MachineLimits {
  double read_bytes_per_second = 0;
  Peak peak = {};
};

// The runs of one measurement.
struct BenchResult {
  Measurement what;
  std::vector<Sample> samples;  // at least one

  double median_rate() const;  // tokens per second
  // All runs together: bytes and operations per token, families.
  Profiled passes() const;
  double bytes_per_second() const;  // at the median rate
  double operations_per_second() const;
};

double median(std::vector<double> values);  // the mean of the middle two of an even number

std::string result_heading();
std::string result_line(const BenchResult& result, const MachineLimits& limits);

nlohmann::ordered_json limits_json(const MachineLimits& limits);
nlohmann::ordered_json memory_json(const MemoryUse& memory);
nlohmann::ordered_json sample_json(const Sample& sample);
nlohmann::ordered_json result_json(const BenchResult& result, const MachineLimits& limits,
                                   bool profile);

}  // namespace triax::cli
