#include "load_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace triax::bench {

double quantile(std::vector<float>& values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(at)]);
}

double growth_after(const MemorySamples& samples, double from) {
  const auto first =
      std::find_if(samples.begin(), samples.end(), [&](const auto& s) { return s.first >= from; });
  if (first == samples.end()) return 0;
  const std::size_t last = std::max<std::size_t>(samples.size() / 10, 1);
  double sum = 0;
  for (std::size_t i = samples.size() - last; i < samples.size(); ++i) {
    sum += static_cast<double>(samples[i].second);
  }
  return sum / static_cast<double>(last) / static_cast<double>(first->second) - 1;
}

nlohmann::ordered_json figures_json(LoadFigures& f) {
  const auto times = [](std::vector<float>& values) {
    nlohmann::ordered_json out;
    out["count"] = values.size();
    for (const auto& [name, q] : {std::pair{"p50", 0.5}, std::pair{"p90", 0.9},
                                  std::pair{"p99", 0.99}, std::pair{"max", 1.0}}) {
      out[name] = quantile(values, q);
    }
    return out;
  };
  nlohmann::ordered_json out;
  out["seconds"] = f.seconds;
  out["clients"] = f.clients;
  out["answers"] = f.answers;
  out["wrong"] = f.wrong;
  out["lost"] = f.lost;
  out["refused"] = f.refused;
  out["tokens"] = f.tokens;
  out["tokens_per_second"] = f.seconds > 0 ? static_cast<double>(f.tokens) / f.seconds : 0;
  out["prompt_tokens"] = f.prompt_tokens;
  out["cached_tokens"] = f.cached_tokens;
  out["first_token_seconds"] = times(f.first);
  out["gap_seconds"] = times(f.gaps);
  out["answer_seconds"] = times(f.whole);
  const double median = out["gap_seconds"]["p50"], p99 = out["gap_seconds"]["p99"];
  out["gap_p99_over_p50"] = median > 0 ? p99 / median : 0;
  out["memory_bytes"] = f.memory.empty() ? 0 : f.memory.back().second;
  out["memory_growth"] = growth_after(f.memory, f.memory_from);
  out["memory_looked_at_from"] = f.memory_from;
  out["memory"] = nlohmann::ordered_json::array();
  for (const auto& [seconds, bytes] : f.memory) {
    out["memory"].push_back({static_cast<std::int64_t>(seconds), bytes >> 10});
  }
  return out;
}

std::string figures_text(const nlohmann::ordered_json& j) {
  const auto number = [](const nlohmann::ordered_json& value) { return value.get<double>(); };
  const auto times = [&](const char* name) {
    const auto& t = j[name];
    return fmt::format("p50 {:.4f}, p90 {:.4f}, p99 {:.4f}, max {:.4f} s of {}", number(t["p50"]),
                       number(t["p90"]), number(t["p99"]), number(t["max"]),
                       t["count"].get<std::size_t>());
  };
  return fmt::format(
      "{} clients, {:.0f} s: {} answers, {} wrong, {} lost, {} refused\n"
      "tokens        {:.1f} a second\n"
      "first token   {}\n"
      "gaps          {}; p99 is {:.2f} times the median\n"
      "whole answer  {}\n"
      "memory        {:.1f} MiB; {:+.2f} % since second {:.0f}\n",
      j["clients"].get<std::size_t>(), number(j["seconds"]), j["answers"].get<std::size_t>(),
      j["wrong"].get<std::size_t>(), j["lost"].get<std::size_t>(), j["refused"].get<std::size_t>(),
      number(j["tokens_per_second"]), times("first_token_seconds"), times("gap_seconds"),
      number(j["gap_p99_over_p50"]), times("answer_seconds"), number(j["memory_bytes"]) / 1048576,
      100 * number(j["memory_growth"]), number(j["memory_looked_at_from"]));
}

}  // namespace triax::bench
