// What came out, as JSON and as a page.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "triax/checkpoint/file.h"
#include "triax/distill/distill.h"
#include "triax/train/plot.h"

namespace triax::distill {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr double kPoints = 0.02;  // of accuracy, that the student may lose

ordered_json json_of(const Grade& g) {
  return {{"items", g.items}, {"right", g.accuracy()}, {"thinking_tokens", g.thinking()}};
}

ordered_json json_of(const Divergence& before, const Divergence& after) {
  return {{"before", before.mean()},
          {"after", after.mean()},
          {"tokens_before", before.tokens},
          {"tokens_after", after.tokens}};
}

// Of lines of metrics.jsonl: a value over the steps, averaged over the last few.
train::Series series_of(const std::vector<ordered_json>& steps, const char* key) {
  constexpr double kKeep = 0.8;
  train::Series out{key, {}, {}};
  double mean = 0, weight = 0;
  for (const ordered_json& step : steps) {
    mean = kKeep * mean + (1 - kKeep) * step.at(key).get<double>();
    weight = kKeep * weight + (1 - kKeep);
    out.x.push_back(step.at("step").get<double>());
    out.y.push_back(mean / weight);
  }
  return out;
}

std::string table(const DistillResult& r) {
  std::string out =
      "<table><tr><th>teacher</th><th>divergence before</th><th>after</th><th>items</th>"
      "<th>right: teacher</th><th>student</th><th>beginning</th><th>thinking: teacher</th>"
      "<th>student</th></tr>";
  for (const TeacherResult& t : r.teachers) {
    out += fmt::format(
        "<tr><td>{}</td><td>{:.4f}</td><td>{:.4f}</td><td>{}</td><td>{:.1f} %</td><td>{:.1f} %</td>"
        "<td>{:.1f} %</td><td>{:.1f}</td><td>{:.1f}</td></tr>",
        train::html_escaped(t.name), t.before.mean(), t.after.mean(), t.student.items,
        100 * t.teacher.accuracy(), 100 * t.student.accuracy(), 100 * t.beginning.accuracy(),
        t.teacher.thinking(), t.student.thinking());
  }
  return out + "</table>\n";
}

}  // namespace

Divergence DistillResult::before() const {
  Divergence out;
  for (const TeacherResult& t : teachers) {
    out.sum += t.before.sum;
    out.tokens += t.before.tokens;
  }
  return out;
}

Divergence DistillResult::after() const {
  Divergence out;
  for (const TeacherResult& t : teachers) {
    out.sum += t.after.sum;
    out.tokens += t.after.tokens;
  }
  return out;
}

Grade DistillResult::total(Grade TeacherResult::* of) const {
  Grade out;
  for (const TeacherResult& t : teachers) {
    out.items += (t.*of).items;
    out.right += (t.*of).right;
    out.thinking_tokens += (t.*of).thinking_tokens;
  }
  return out;
}

bool DistillResult::halved() const {
  return after().mean() < 0.5 * before().mean();
}

bool DistillResult::thinking_ordered() const {
  for (std::size_t t = 0; t + 1 < teachers.size(); ++t) {
    if (teachers[t].domain != teachers[t + 1].domain || teachers[t].student.items == 0) continue;
    if (teachers[t].student.thinking() >= teachers[t + 1].student.thinking()) return false;
  }
  return true;
}

bool DistillResult::as_right() const {
  return total(&TeacherResult::student).accuracy() >=
         total(&TeacherResult::teacher).accuracy() - kPoints;
}

std::string to_json_line(const DistillStep& s, const DistillConfig& config) {
  ordered_json out{
      {"step", s.step},
      {"divergence", s.divergence},
      {"reward", s.reward},
      {"samples", s.samples},
      {"sampled_tokens", s.sampled_tokens},
      {"tokens_a_sample", static_cast<double>(s.sampled_tokens) /
                              static_cast<double>(std::max<std::size_t>(s.samples, 1))},
      {"cut", s.cut},
      {"rows", s.record.step_tokens},
      {"rate", s.record.rate},
      {"gradient_norm", s.record.gradient_norm},
      {"applied", s.record.applied},
      {"note", s.record.note}};
  for (std::size_t t = 0; t < s.by_teacher.size(); ++t) {
    if (s.by_teacher[t].tokens == 0) continue;
    out["by_teacher"][config.teacher_name(t)] = s.by_teacher[t].mean();
  }
  out["seconds"] = {
      {"sample", s.sample_seconds}, {"score", s.score_seconds}, {"train", s.train_seconds}};
  return out.dump();
}

void write_results(const DistillResult& r, const DistillConfig& config, const fs::path& out) {
  ordered_json json{{"steps", r.steps}, {"divergence", json_of(r.before(), r.after())}};
  json["student"] = json_of(r.total(&TeacherResult::student));
  json["teacher"] = json_of(r.total(&TeacherResult::teacher));
  json["beginning"] = json_of(r.total(&TeacherResult::beginning));
  json["holds"] = {{"divergence_halved", r.halved()},
                   {"thinking_ordered", r.thinking_ordered()},
                   {"as_right_as_teachers", r.as_right()}};
  for (const TeacherResult& t : r.teachers) {
    json["teachers"].push_back({{"name", t.name},
                                {"domain", t.domain},
                                {"thinking_effort", world::effort_name(t.effort)},
                                {"divergence", json_of(t.before, t.after)},
                                {"student", json_of(t.student)},
                                {"teacher", json_of(t.teacher)},
                                {"beginning", json_of(t.beginning)}});
  }
  AtomicFile file(out / "distill.json");
  file.write(json.dump(1) + "\n");
  file.commit();

  std::vector<ordered_json> steps;
  std::ifstream lines(out / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) steps.push_back(ordered_json::parse(line));
  std::string page = fmt::format(
      "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width'><title>Distillation</title><style>{}</style></head><body>\n"
      "<h1>Distillation</h1>\n",
      train::plot_style());
  page += table(r);
  const auto plot = [&](const char* title, const char* key, const char* unit) {
    page +=
        fmt::format("<h2>{}</h2>\n{}", title,
                    train::line_plot({"step", unit, false, false, true}, {series_of(steps, key)}));
  };
  plot("Divergence from the matching teacher, on the student's samples", "divergence",
       "nats a token");
  plot("Length of samples", "tokens_a_sample", "tokens");
  page += fmt::format("<details><summary>Configuration</summary><pre>{}</pre></details>\n",
                      train::html_escaped(resolved_text(config)));
  page += "</body></html>\n";
  AtomicFile report(out / "report.html");
  report.write(page);
  report.commit();
}

}  // namespace triax::distill
