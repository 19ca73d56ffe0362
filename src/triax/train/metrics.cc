// Lines of metrics.
#include "triax/train/metrics.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "triax/checkpoint/file.h"
#include "triax/core/error.h"

namespace triax::train {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMaxMetricsBytes = std::size_t{1} << 34;

// Six digits are enough for a plot and keep the file small.
double brief(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::pow(10.0, 5 - std::floor(std::log10(std::abs(x))));
  return std::round(x * unit) / unit;
}

ordered_json briefs(const std::vector<double>& values) {
  ordered_json out = ordered_json::array();
  for (const double x : values) out.push_back(brief(x));
  return out;
}

ordered_json buckets(const std::vector<Bucket>& list, bool reference) {
  ordered_json out = ordered_json::array();
  for (const Bucket& b : list) {
    ordered_json item{{"from", b.begin}, {"to", b.end}, {"value", brief(b.value)}};
    if (reference) item["first"] = brief(b.reference);
    item["counted"] = b.counted;
    out.push_back(item);
  }
  return out;
}

}  // namespace

std::string to_json_line(const StepRecord& r, const TrainConfig& config) {
  ordered_json out{{"type", "step"},
                   {"step", r.step},
                   {"stage", r.stage},
                   {"tokens", r.tokens},
                   {"step_tokens", r.step_tokens},
                   {"counted", r.counted},
                   {"loss", r.loss},
                   {"rate", r.rate},
                   {"gradient_norm", r.gradient_norm},
                   {"qat", r.qat},
                   {"applied", r.applied}};
  if (!r.note.empty()) out["note"] = r.note;
  ordered_json sources = ordered_json::object();
  for (std::size_t s = 0; s < r.source_tokens.size(); ++s) {
    sources[config.data[s].name] = r.source_tokens[s];
  }
  out["source_tokens"] = sources;
  out["heads_clipped"] = r.heads_clipped;
  ordered_json loads = ordered_json::array();
  for (const LayerLoad& load : r.loads) {
    loads.push_back({{"layer", load.layer},
                     {"max_over_mean", brief(load.max_over_mean)},
                     {"dead", brief(load.dead)},
                     {"tokens", load.tokens}});
  }
  out["load"] = loads;
  ordered_json heads = ordered_json::array();
  for (const HeadNorms& h : r.heads) {
    heads.push_back({{"layer", h.layer}, {"norm", briefs(h.norm)}});
  }
  out["head_gradient_norms"] = heads;
  out["seconds"] = brief(r.seconds);
  out["gflops"] = brief(r.gflops);
  return out.dump();
}

std::string to_json_line(const EvaluationRecord& r) {
  ordered_json out{
      {"type", "evaluation"}, {"step", r.step}, {"tokens", r.tokens}, {"exported", r.exported}};
  ordered_json held_out = ordered_json::object();
  for (const HeldOutLoss& h : r.held_out) {
    held_out[h.name] = {{"loss", h.loss}, {"counted", h.counted}};
  }
  out["held_out"] = held_out;
  out["loss_by_position"] = buckets(r.by_position, false);
  out["recall_by_distance"] = buckets(r.by_distance, true);
  ordered_json depth = ordered_json::array();
  for (const DepthSite& site : r.depth) {
    depth.push_back({{"site", site.name}, {"weights", briefs(site.weights)}});
  }
  out["depth"] = depth;
  return out.dump();
}

MetricsLog::MetricsLog(const std::filesystem::path& file, std::size_t last_step) : path_(file) {
  std::string kept;
  if (last_step > 0 && std::filesystem::exists(file)) {
    const std::string text = read_whole(file, kMaxMetricsBytes);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      if (end == std::string::npos) break;  // half a line
      const std::string_view line(text.data() + at, end - at);
      const json value = json::parse(line, nullptr, false);
      if (value.is_object() && value.value("step", last_step + 1) <= last_step) {
        kept.append(line).append("\n");
      }
      at = end + 1;
    }
  }
  AtomicFile fresh(file);
  fresh.write(kept);
  fresh.commit();
  file_.reset(std::fopen(file.c_str(), "a"));
  if (!file_) fail("{}: cannot be written: {}", file.string(), std::strerror(errno));
}

void MetricsLog::add(const std::string& line) {
  std::fprintf(file_.get(), "%s\n", line.c_str());
  if (std::fflush(file_.get()) != 0) {
    fail("{}: cannot be written: {}", path_.string(), std::strerror(errno));
  }
}

void MetricsLog::sync() {
  ::fsync(::fileno(file_.get()));
}

}  // namespace triax::train
