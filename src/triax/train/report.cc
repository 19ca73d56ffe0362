// The page of a training.
#include "triax/train/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "triax/checkpoint/file.h"
#include "triax/train/plot.h"

namespace triax::train {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxMetricsBytes = std::size_t{1} << 34;
constexpr std::size_t kColumns = 120;  // of a heat map over time

struct Metrics {
  std::vector<json> steps, evaluations;
};

Metrics read_metrics(const std::filesystem::path& file) {
  Metrics out;
  const std::string text = read_whole(file, kMaxMetricsBytes);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    json line = json::parse(text.data() + at, text.data() + end, nullptr, false);
    if (line.is_object()) {
      (line.value("type", "") == "step" ? out.steps : out.evaluations).push_back(std::move(line));
    }
    at = end + 1;
  }
  return out;
}

// A series of one number of each step; null (not finite) becomes NaN.
double number(const json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}
Series of_steps(const Metrics& m, const std::string& name, const char* key) {
  Series out{name, {}, {}, false};
  for (const json& s : m.steps) {
    out.x.push_back(number(s["tokens"]));
    out.y.push_back(number(s[key]));
  }
  return out;
}

// Running mean, for a curve that can be read.
Series smoothed(const Series& s, double memory) {
  Series out{s.name, s.x, {}, s.dots};
  double sum = 0, weight = 0;
  for (const double y : s.y) {
    if (std::isfinite(y)) {
      sum = memory * sum + y;
      weight = memory * weight + 1;
    }
    out.y.push_back(weight > 0 ? sum / weight : std::nan(""));
  }
  return out;
}

std::string section(std::string_view title, std::string_view note, const std::string& plot) {
  return fmt::format("<h2>{}</h2>\n<p>{}</p>\n{}\n", title, note, plot);
}

std::string loss_section(const Metrics& m) {
  std::vector<Series> all{smoothed(of_steps(m, "training", "loss"), 0.9)};
  std::map<std::string, Series> held_out;
  for (const json& e : m.evaluations) {
    for (const auto& [name, value] : e["held_out"].items()) {
      Series& s = held_out[name];
      s.name = "held out: " + name;
      s.dots = true;
      s.x.push_back(number(e["tokens"]));
      s.y.push_back(number(value["loss"]));
    }
  }
  for (auto& [name, series] : held_out) all.push_back(std::move(series));
  return section("Loss", "Nats a learned token; training as a running mean over about ten steps.",
                 line_plot({"tokens", "loss", false, false, false}, all));
}

std::string load_sections(const Metrics& m) {
  std::map<std::size_t, Series> layers;
  const json* counts = nullptr;
  for (const json& s : m.steps) {
    for (const json& load : s["load"]) {
      Series& line = layers[load["layer"].get<std::size_t>()];
      line.name = fmt::format("layer {}", load["layer"].get<std::size_t>());
      line.x.push_back(number(s["tokens"]));
      line.y.push_back(number(load["max_over_mean"]));
    }
    if (!s["load"].empty() && !s["load"][0]["tokens"].empty()) counts = &s["load"];
  }
  if (layers.empty()) return "";
  std::vector<Series> all;
  for (auto& [layer, series] : layers) all.push_back(smoothed(series, 0.8));
  std::string out = section("Load of the experts: the busiest over the mean",
                            "1 is even; a running mean over about five steps, logarithmic.",
                            line_plot({"tokens", "max / mean", false, true, false}, all));
  if (counts == nullptr) return out;
  HeatMap map{"expert", "", {}, {}, 0};
  for (const json& load : *counts) {
    const auto tokens = load["tokens"].get<std::vector<double>>();
    double sum = 0;
    for (const double t : tokens) sum += t;
    std::vector<double>& row = map.values.emplace_back();
    for (const double t : tokens) {
      row.push_back(sum > 0 ? t * static_cast<double>(tokens.size()) / sum : 0);
    }
    map.rows.push_back(fmt::format("layer {}", load["layer"].get<std::size_t>()));
  }
  return out + section("Load per expert, last counted step",
                       "Tokens of each expert over the mean of its layer; an empty cell is an "
                       "expert without tokens.",
                       heat_plot(map));
}

std::string head_section(const Metrics& m) {
  if (m.steps.empty()) return "";
  HeatMap map{"time: start to now", "", {}, {}, 0};
  const std::size_t columns = std::min(kColumns, m.steps.size());
  const json& first = m.steps[0]["head_gradient_norms"];
  for (std::size_t l = 0; l < first.size(); ++l) {
    for (std::size_t h = 0; h < first[l]["norm"].size(); ++h) {
      map.rows.push_back(fmt::format("layer {}, head {}", first[l]["layer"].get<std::size_t>(), h));
      std::vector<double>& row = map.values.emplace_back();
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t begin = c * m.steps.size() / columns;
        const std::size_t end = std::max(begin + 1, (c + 1) * m.steps.size() / columns);
        double sum = 0, n = 0;
        for (std::size_t s = begin; s < end; ++s) {
          const double x = number(m.steps[s]["head_gradient_norms"][l]["norm"][h]);
          if (std::isfinite(x)) sum += x, n += 1;
        }
        row.push_back(n > 0 ? std::log1p(100 * sum / n) : std::nan(""));
      }
    }
  }
  return section("Gradient norms per head",
                 "Of a head's rows of q, k and v (MLA: of q and kv_b); the shade is ln(1 + 100 "
                 "norm).",
                 heat_plot(map));
}

std::string depth_section(const Metrics& m) {
  const json* depth = nullptr;
  for (const json& e : m.evaluations) {
    if (!e["depth"].empty()) depth = &e["depth"];
  }
  if (depth == nullptr) return "";
  HeatMap map{
      "stored sums, oldest first; the last cell of a row is the running sum", "", {}, {}, 1};
  for (const json& site : *depth) {
    map.rows.push_back(site["site"].get<std::string>());
    map.values.push_back(site["weights"].get<std::vector<double>>());
  }
  return section("Depth weights", "Mean softmax weight of each source at each site.",
                 heat_plot(map));
}

std::string position_sections(const Metrics& m) {
  if (m.evaluations.empty()) return "";
  std::vector<Series> position, recall;
  // the first, the middle and the last evaluation
  std::vector<std::size_t> shown{0, m.evaluations.size() / 2, m.evaluations.size() - 1};
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  for (const std::size_t i : shown) {
    const json& e = m.evaluations[i];
    const std::string at = fmt::format("{} tokens", e["tokens"].get<std::uint64_t>());
    Series p{at, {}, {}, true}, r{at, {}, {}, true};
    Series first{at + ", first occurrence", {}, {}, true};
    for (const json& b : e["loss_by_position"]) {
      p.x.push_back(std::sqrt((number(b["from"]) + 1) * number(b["to"])));
      p.y.push_back(number(b["value"]));
    }
    for (const json& b : e["recall_by_distance"]) {
      r.x.push_back(number(b["from"]));
      r.y.push_back(number(b["value"]));
      first.x.push_back(number(b["from"]));
      first.y.push_back(number(b["first"]));
    }
    position.push_back(std::move(p));
    recall.push_back(std::move(r));
    if (i + 1 == m.evaluations.size()) recall.push_back(std::move(first));
  }
  return section("Loss by position",
                 "Held-out documents joined without a fresh state between them, to twice the "
                 "context of the last stage.",
                 line_plot({"position", "loss", true, false, false}, position)) +
         section("Recall by distance",
                 "Sixteen tokens, other text, the same sixteen again: mean probability of the "
                 "right token at the second occurrence.",
                 line_plot({"distance in tokens", "probability", true, false, true}, recall));
}

std::string facts(const Metrics& m) {
  if (m.steps.empty()) return "";
  const json& last = m.steps.back();
  double seconds = 0;
  std::size_t left_out = 0;
  for (const json& s : m.steps) {
    seconds += number(s["seconds"]);
    left_out += s["applied"].get<bool>() ? 0 : 1;
  }
  const double tokens = number(last["tokens"]);
  std::string out = "<table>";
  const auto row = [&](std::string_view what, const std::string& value) {
    out += fmt::format("<tr><th>{}</th><td>{}</td></tr>", what, value);
  };
  row("steps", fmt::format("{} ({} left out)", last["step"].get<std::size_t>(), left_out));
  row("tokens", fmt::format("{:.0f}", tokens));
  row("time", fmt::format("{:.0f} s, {:.0f} tokens/s", seconds, tokens / std::max(seconds, 1e-9)));
  for (const auto& [name, value] : last["source_tokens"].items()) {
    row("of " + html_escaped(name), fmt::format("{} tokens", value.get<std::uint64_t>()));
  }
  if (!m.evaluations.empty()) {
    for (const auto& [name, value] : m.evaluations.back()["held_out"].items()) {
      row("held out: " + html_escaped(name),
          fmt::format("loss {:.4f}, perplexity {:.3f}", number(value["loss"]),
                      std::exp(number(value["loss"]))));
    }
  }
  return out + "</table>\n";
}

}  // namespace

void write_report(const std::filesystem::path& metrics, const TrainConfig& config,
                  const std::filesystem::path& report) {
  const Metrics m = read_metrics(metrics);
  std::string page = fmt::format(
      "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width'><title>Training</title><style>{}</style></head><body>\n"
      "<h1>Training</h1>\n",
      plot_style());
  page += facts(m);
  page += loss_section(m);
  page += section("Rate", "The optimiser's, by tokens.",
                  line_plot({"tokens", "rate", false, false, true}, {of_steps(m, "rate", "rate")}));
  page += section(
      "Gradient norm", "Of the whole gradient, before clipping; logarithmic.",
      line_plot({"tokens", "norm", false, true, false}, {of_steps(m, "norm", "gradient_norm")}));
  page += load_sections(m);
  page += depth_section(m);
  page += head_section(m);
  page += position_sections(m);
  page += section("Speed", "6 times active parameters times tokens, a second of whole steps.",
                  line_plot({"tokens", "GFLOP/s", false, false, true},
                            {smoothed(of_steps(m, "GFLOP/s", "gflops"), 0.8)}));
  page += fmt::format("<details><summary>Configuration</summary><pre>{}</pre></details>\n",
                      html_escaped(resolved_text(config)));
  page += "</body></html>\n";
  AtomicFile file(report);
  file.write(page);
  file.commit();
}

}  // namespace triax::train
