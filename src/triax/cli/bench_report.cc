// Medians and fractions of the machine's limits.
#include "triax/cli/bench_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "triax/cli/format.h"

namespace triax::cli {
namespace {

using Json = nlohmann::ordered_json;

double per_token(std::uint64_t count, const Profiled& p) {
  return p.tokens == 0 ? 0 : static_cast<double>(count) / static_cast<double>(p.tokens);
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

Json part_of(double part, double whole) {
  return whole > 0 ? Json(part / whole) : Json(nullptr);
}

}  // namespace

double median(std::vector<double> values) {
  TRIAX_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double BenchResult::median_rate() const {
  std::vector<double> rates;
  for (const Sample& s : samples) rates.push_back(s.rate());
  return median(std::move(rates));
}

Profiled BenchResult::passes() const {
  Profiled sum;
  for (const Sample& s : samples) sum += s.passes;
  return sum;
}

double BenchResult::bytes_per_second() const {
  const Profiled p = passes();
  return per_token(p.total().bytes, p) * median_rate();
}

double BenchResult::operations_per_second() const {
  const Profiled p = passes();
  return per_token(p.total().operations, p) * median_rate();
}

std::string result_heading() {
  return fmt::format("{:<14} {:>9}  {:>9} {:>8} {:>9}  {:>12} {:>9} {:>8}   {}\n", "measurement",
                     "tokens/s", "MB/token", "GB/s", "of reads", "MFLOP/token", "GFLOP/s",
                     "of peak", "all runs");
}

std::string result_line(const BenchResult& r, const MachineLimits& limits) {
  const Profiled p = r.passes();
  const Profile::Entry total = p.total();
  std::string all;
  for (const Sample& s : r.samples) all += (all.empty() ? "" : ", ") + human_rate(s.rate());
  return fmt::format("{:<14} {:>9}  {:>9.1f} {:>8.2f} {:>9}  {:>12.1f} {:>9.1f} {:>8}   {}\n",
                     r.what.name(), human_rate(r.median_rate()), per_token(total.bytes, p) / 1e6,
                     r.bytes_per_second() / 1e9,
                     percent(r.bytes_per_second(), limits.read_bytes_per_second),
                     per_token(total.operations, p) / 1e6, r.operations_per_second() / 1e9,
                     percent(r.operations_per_second(), limits.peak.operations_per_second), all);
}

Json limits_json(const MachineLimits& limits) {
  if (limits.read_bytes_per_second <= 0) return nullptr;
  return {{"read_bytes_per_second", limits.read_bytes_per_second},
          {"operations_per_second", limits.peak.operations_per_second},
          {"instruction", limits.peak.instruction}};
}

Json memory_json(const MemoryUse& memory) {
  return {{"peak_bytes", memory.peak}, {"own_bytes", memory.own}, {"mapped_bytes", memory.mapped}};
}

Json sample_json(const Sample& s) {
  return {{"tokens_per_second", s.rate()},
          {"seconds", s.passes.seconds},
          {"processor_seconds", s.processor_seconds},
          {"tokens", s.passes.tokens},
          {"state_bytes", s.state_bytes}};
}

Json result_json(const BenchResult& r, const MachineLimits& limits, bool profile) {
  const Profiled p = r.passes();
  const Profile::Entry total = p.total();
  Json out;
  out["name"] = r.what.name();
  out["tokens"] = r.what.tokens;
  out["depth"] = r.what.depth;
  out["sequences"] = r.what.sequences;
  out["tokens_per_second"] = r.median_rate();
  out["bytes_per_token"] = per_token(total.bytes, p);
  out["operations_per_token"] = per_token(total.operations, p);
  out["of_read_bandwidth"] = part_of(r.bytes_per_second(), limits.read_bytes_per_second);
  out["of_peak"] = part_of(r.operations_per_second(), limits.peak.operations_per_second);
  out["explained"] = explained_part(p);
  out["state_bytes"] = r.samples.back().state_bytes;
  out["runs"] = Json::array();
  for (const Sample& s : r.samples) out["runs"].push_back(sample_json(s));
  if (profile) out["profile"] = profile_json(p);
  return out;
}

}  // namespace triax::cli
