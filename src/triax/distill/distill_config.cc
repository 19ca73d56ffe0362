// Reading and writing configurations of a distillation.
#include "triax/distill/distill_config.h"

#include <algorithm>
#include <set>

#include "triax/checkpoint/file.h"
#include "triax/core/error.h"
#include "triax/train/config_reader.h"
#include "triax/world/corpus.h"

namespace triax::distill {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;
using train::ConfigReader;

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
constexpr std::size_t kMany = std::size_t{1} << 40;
constexpr std::size_t kManyRows = std::size_t{1} << 20;
const std::vector<std::string> kParts{"none", "stories", "sums", "tools"};

void check_kinds(const ConfigReader& r, const std::vector<std::string>& kinds) {
  if (kinds.empty()) r.wrong("kinds", "is missing: kinds of the small world's documents");
  for (const std::string& kind : kinds) {
    const auto& all = world::kinds();
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const world::Kind& k) { return k.name == kind; });
    if (known && world::make_document(kind, 0, world::Part::train, 0).document.contains("messages"))
      continue;
    r.wrong("kinds", fmt::format("has {}, which is no kind of conversation that `triax data` "
                                 "writes",
                                 in_quotes(kind)));
  }
}

Domain read_domain(ConfigReader& r, const fs::path& folder) {
  Domain out;
  r.text("name", out.name);
  if (out.name.empty()) r.wrong("name", "is missing");
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!std::all_of(out.name.begin(), out.name.end(), plain)) {
    r.wrong("name", fmt::format("is {}, expected letters, digits and _: it names folders",
                                in_quotes(out.name)));
  }
  out.kinds = r.texts("kinds");
  check_kinds(r, out.kinds);
  std::size_t part = 0;
  r.choice("suite", part, kParts);
  out.suite = static_cast<SuitePart>(part);
  r.size("items", out.items, 0, 100'000);
  ConfigReader teachers = r.table("teachers");
  for (std::size_t e = 0; e < kEfforts; ++e) {
    teachers.path(world::effort_name(static_cast<world::Effort>(e)), folder, out.teachers[e]);
  }
  teachers.finish();
  r.finish();
  return out;
}

void read_teacher(ConfigReader r, TeacherPlan& t) {
  r.size("tokens", t.tokens, 1, kMany);
  r.size("context", t.context, 2, kManyRows);
  r.size("batch_tokens", t.batch_tokens, 1, kManyRows);
  r.number("rate", t.rate, 1e-9, 1);
  r.number("warmup", t.warmup, 0, 1);
  r.number("final_fraction", t.final_fraction, 0, 1);
  r.number("balance_keep", t.balance_keep, 0, 0.999);
  r.finish();
}

void read_student(ConfigReader r, StudentPlan& s) {
  r.size("steps", s.steps, 1, kMany);
  r.size("samples", s.samples, 1, 65536);
  r.size("max_tokens", s.max_tokens, 1, kManyRows);
  r.size("context", s.context, 2, kManyRows);
  r.size("micro_batch_tokens", s.micro_batch_tokens, 1, kManyRows);
  if (s.micro_batch_tokens < s.context + s.max_tokens) {
    r.wrong("micro_batch_tokens", fmt::format("is {}, expected at least context and max_tokens "
                                              "together, {}: a sample lies in one pass",
                                              s.micro_batch_tokens, s.context + s.max_tokens));
  }
  r.number("rate", s.rate, 1e-9, 1);
  r.number("warmup", s.warmup, 0, 1);
  r.number("final_fraction", s.final_fraction, 0, 1);
  r.number("balance_keep", s.balance_keep, 0, 0.999);
  r.number("reward_limit", s.reward_limit, 1e-6, 1e6);
  r.finish();
}

DistillConfig read_config(const json& root, std::string_view where, const fs::path& folder) {
  ConfigReader r(root, std::string(where), "");
  DistillConfig out;
  r.size("seed", out.seed, 0, std::size_t{1} << 53);
  r.path("model", folder, out.model);
  if (out.model.empty()) r.wrong("model", "is missing: the model folder to begin with");
  std::set<std::string> names;
  for (ConfigReader& domain : r.tables("domain")) {
    out.domains.push_back(read_domain(domain, folder));
    if (!names.insert(out.domains.back().name).second) {
      domain.wrong("name", fmt::format("{} is there twice", in_quotes(out.domains.back().name)));
    }
  }
  if (out.domains.empty()) r.wrong("domain", "is missing: at least one [[domain]]");
  read_teacher(r.table("teacher"), out.teacher);
  read_student(r.table("student"), out.student);
  ConfigReader evaluation = r.table("evaluation");
  evaluation.size("prompts", out.evaluation.prompts, 1, 100'000);
  evaluation.size("seed", out.evaluation.seed, 0, std::size_t{1} << 53);
  evaluation.finish();
  r.size("checkpoint_steps", out.checkpoint_steps, 1, kMany);
  r.finish();
  return out;
}

std::string full_text(const fs::path& path) {
  return fs::absolute(path).lexically_normal().string();
}

ordered_json json_of(const Domain& d) {
  ordered_json out{{"name", d.name},
                   {"kinds", d.kinds},
                   {"suite", kParts[static_cast<std::size_t>(d.suite)]},
                   {"items", d.items}};
  for (std::size_t e = 0; e < kEfforts; ++e) {
    if (d.teachers[e].empty()) continue;
    out["teachers"][world::effort_name(static_cast<world::Effort>(e))] = full_text(d.teachers[e]);
  }
  return out;
}

ordered_json json_of(const DistillConfig& c) {
  const TeacherPlan& t = c.teacher;
  const StudentPlan& s = c.student;
  ordered_json out{{"seed", c.seed}, {"model", full_text(c.model)}};
  out["domain"] = json::array();
  for (const Domain& d : c.domains) out["domain"].push_back(json_of(d));
  out["teacher"] = {{"tokens", t.tokens},
                    {"context", t.context},
                    {"batch_tokens", t.batch_tokens},
                    {"rate", t.rate},
                    {"warmup", t.warmup},
                    {"final_fraction", t.final_fraction},
                    {"balance_keep", t.balance_keep}};
  out["student"] = {{"steps", s.steps},
                    {"samples", s.samples},
                    {"max_tokens", s.max_tokens},
                    {"context", s.context},
                    {"micro_batch_tokens", s.micro_batch_tokens},
                    {"rate", s.rate},
                    {"warmup", s.warmup},
                    {"final_fraction", s.final_fraction},
                    {"balance_keep", s.balance_keep},
                    {"reward_limit", s.reward_limit}};
  out["evaluation"] = {{"prompts", c.evaluation.prompts}, {"seed", c.evaluation.seed}};
  out["checkpoint_steps"] = c.checkpoint_steps;
  return out;
}

}  // namespace

std::string DistillConfig::teacher_name(std::size_t of) const {
  return fmt::format("{}-{}", domain(of).name, world::effort_name(effort(of)));
}

DistillConfig parse_distill_config(std::string_view text, bool is_json, std::string_view where,
                                   const fs::path& folder) {
  return read_config(train::parse_values(text, is_json, where), where, folder);
}

DistillConfig load_distill_config(const fs::path& file) {
  return parse_distill_config(read_whole(file, kMaxConfigBytes), file.extension() == ".json",
                              file.string(), file.parent_path());
}

std::string resolved_text(const DistillConfig& config) {
  return json_of(config).dump(1) + "\n";
}

std::string first_difference(const DistillConfig& a, const DistillConfig& b) {
  const ordered_json x = json_of(a), y = json_of(b);
  for (const auto& [key, value] : x.items()) {
    if (key != "checkpoint_steps" && y[key] != value) return key;
  }
  return "";
}

}  // namespace triax::distill
