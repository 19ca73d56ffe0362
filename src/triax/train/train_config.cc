// Reading and writing training configurations.
#include "triax/train/train_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "triax/checkpoint/file.h"
#include "triax/core/error.h"
#include "triax/train/config_reader.h"

namespace triax::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;
constexpr std::size_t kMany = std::size_t{1} << 40;
constexpr std::size_t kManyRows = std::size_t{1} << 24;
constexpr std::size_t kManyRepeats = std::size_t{1} << 30;  // tokens: 5 GiB of memory
const std::vector<std::string> kPrecisions{"f32", "bf16"};
const std::vector<std::string> kKinds{"text", "jsonl", "repeats"};
const std::vector<std::string> kSplits{"file", "blank_lines"};
const std::vector<std::string> kLearns{"assistant", "all"};
const std::vector<std::string> kLongers{"automatic", "cut", "skip"};
const std::vector<std::string> kMatrices{"muon_heads", "muon_whole", "adamw"};
const std::vector<std::string> kBalances{"quantile", "sign"};

template <class E>
void read_choice(ConfigReader& r, const char* key, E& value,
                 const std::vector<std::string>& names) {
  std::size_t at = static_cast<std::size_t>(value);
  r.choice(key, at, names);
  value = static_cast<E>(at);
}

DataSource read_source(ConfigReader& r, const fs::path& folder) {
  DataSource out;
  r.text("name", out.name);
  for (const std::string& file : r.texts("files")) {
    out.files.push_back((folder / file).lexically_normal());
  }
  const fs::path first = out.files.empty() ? fs::path() : out.files[0];
  if (first.extension() == ".jsonl") out.kind = SourceKind::jsonl;
  read_choice(r, "kind", out.kind, kKinds);
  if (out.kind == SourceKind::repeats) {
    if (!first.empty()) r.wrong("files", "are given, but repeats are made, not read");
    if (out.name.empty()) out.name = "repeats";
    r.size("documents", out.documents, 1, kManyRows);
    r.size("length", out.length, 8, kManyRows);
    if (out.documents * out.length > kManyRepeats) {
      r.wrong("length", fmt::format("is {}, with {} documents more than {} tokens; take fewer",
                                    out.length, out.documents, kManyRepeats));
    }
  } else if (first.empty()) {
    r.wrong("files", "is missing: the files to read");
  }
  if (out.name.empty()) out.name = first.stem().string();
  read_choice(r, "split", out.split, kSplits);
  read_choice(r, "learn", out.learn, kLearns);
  read_choice(r, "longer", out.longer, kLongers);
  r.number("substitute", out.substitute, 0, 1);
  out.substitute_keep = r.texts("substitute_keep");
  if (out.substitute > 0 && (out.kind != SourceKind::jsonl || out.learn != Learn::assistant)) {
    r.wrong("substitute",
            "needs conversations of which the assistant's part is learned: what is "
            "replaced must have been said before");
  }
  r.number("weight", out.weight, 1e-9, 1e9);
  r.finish();
  return out;
}

Stage read_stage(ConfigReader& r) {
  Stage out;
  if (!r.has("tokens")) r.wrong("tokens", "is missing: how many tokens this stage takes");
  r.size("tokens", out.tokens, 1, kMany);
  r.size("context", out.context, 2, kManyRows);
  r.size("batch_tokens", out.batch_tokens, 1, kManyRows);
  out.micro_batch_tokens = std::max(out.context, std::min<std::size_t>(out.batch_tokens, 4096));
  r.size("micro_batch_tokens", out.micro_batch_tokens, 1, kManyRows);
  if (out.micro_batch_tokens < out.context) {
    r.wrong("micro_batch_tokens",
            fmt::format("is {}, expected at least the context of {}: a piece of a document lies in "
                        "one pass",
                        out.micro_batch_tokens, out.context));
  }
  r.finish();
  return out;
}

void read_tokenizer(ConfigReader r, const fs::path& folder, TokenizerSettings& out) {
  r.path("folder", folder, out.folder);
  r.size("vocabulary", out.vocabulary, 512 + 1, std::size_t{1} << 20);
  r.size("train_bytes", out.train_bytes, 1, kMany);
  if (!out.folder.empty() && out.vocabulary != 0) {
    r.wrong("vocabulary", "and folder are both there; give one of them");
  }
  r.finish();
}

void read_optimizer(ConfigReader r, TrainConfig& out) {
  OptimizerSettings& o = out.optimizer;
  r.number("peak_rate", out.peak_rate, 1e-9, 1);
  r.number("warmup", out.warmup, 0, 1);
  r.number("final_fraction", out.final_fraction, 0, 1);
  r.number("muon_momentum", o.muon_momentum, 0, 0.9999);
  r.number("muon_rms", o.muon_rms, 0, 100);
  r.number("adam_beta1", o.adam_beta1, 0, 0.999999);
  r.number("adam_beta2", o.adam_beta2, 0, 0.999999);
  r.number("adam_eps", o.adam_eps, 1e-30, 1);
  r.number("weight_decay", o.weight_decay, 0, 10);
  r.number("clip_norm", o.clip_norm, 0, 1e9);
  r.number("qk_clip_tau", o.qk_clip_tau, 0, 1e9);
  read_choice(r, "matrices", o.matrices, kMatrices);
  read_choice(r, "balance", out.balance, kBalances);
  r.number("balance_keep", out.balance_keep, 0, 0.999);
  r.number("balance_rate", out.balance_rate, 0, 1);
  r.finish();
}

void read_guard(ConfigReader r, GuardSettings& g) {
  r.number("loss_above", g.loss_above, 0, 1e9);
  r.number("norm_times", g.norm_times, 0, 1e9);
  r.number("memory", g.memory, 0, 0.9999);
  r.size("healthy_first", g.healthy_first, 1, kMany);
  r.size("skips", g.skips, 1, kMany);
  r.number("load_limit", g.load_limit, 0, 1e9);
  r.size("load_from", g.load_from, 0, kMany);
  r.flag("load_stops", g.load_stops);
  r.finish();
}

void read_rest(ConfigReader& r, TrainConfig& out) {
  ConfigReader qat = r.table("qat");
  qat.number("from", out.qat.from, 0, 1);
  qat.flag("trunk", out.qat.trunk);
  qat.flag("experts", out.qat.experts);
  qat.finish();
  ConfigReader evaluation = r.table("evaluation");
  evaluation.size("every_steps", out.evaluation.every_steps, 0, kMany);
  evaluation.size("tokens", out.evaluation.tokens, 2, kMany);
  evaluation.finish();
  ConfigReader checkpoint = r.table("checkpoint");
  checkpoint.size("every_steps", out.checkpoint.every_steps, 0, kMany);
  checkpoint.number("every_minutes", out.checkpoint.every_minutes, 0, 1e6);
  checkpoint.size("keep", out.checkpoint.keep, 1, 1000);
  checkpoint.finish();
  read_guard(r.table("guard"), out.guard);
}

TrainConfig read_config(const json& root, std::string_view where, const fs::path& folder) {
  ConfigReader r(root, std::string(where), "");
  TrainConfig out;
  r.size("seed", out.seed, 0, std::size_t{1} << 53);
  read_choice(r, "precision", out.precision, kPrecisions);
  r.path("init_from", folder, out.init_from);
  ConfigReader model = r.table("model");
  model.text("shape", out.shape);
  out.shape_changes = model.rest().dump();
  if (out.shape.ends_with(".json")) out.shape = (folder / out.shape).lexically_normal().string();
  if (out.shape.empty() && out.init_from.empty()) {
    model.wrong("shape", "is missing: mini, nano, small, or the path of a config.json");
  }
  read_tokenizer(r.table("tokenizer"), folder, out.tokenizer);
  for (ConfigReader& source : r.tables("data")) out.data.push_back(read_source(source, folder));
  for (ConfigReader& source : r.tables("held_out")) {
    out.held_out.push_back(read_source(source, folder));
  }
  for (ConfigReader& stage : r.tables("stage")) out.stages.push_back(read_stage(stage));
  if (out.data.empty()) r.wrong("data", "is missing: at least one [[data]] with files");
  if (out.stages.empty()) r.wrong("stage", "is missing: at least one [[stage]] with tokens");
  if (out.tokenizer.folder.empty() && out.tokenizer.vocabulary == 0 && out.init_from.empty()) {
    r.wrong("tokenizer", "needs a folder, or a vocabulary to be made from the data");
  }
  if (!out.init_from.empty() && out.tokenizer.vocabulary != 0) {
    r.wrong("tokenizer.vocabulary", "has no use with init_from: the model has its tokenizer");
  }
  read_optimizer(r.table("optimizer"), out);
  read_rest(r, out);
  r.finish();
  return out;
}

std::string absolute_or_empty(const fs::path& path) {
  return path.empty() ? "" : fs::absolute(path).lexically_normal().string();
}

ordered_json json_of(const DataSource& s) {
  ordered_json out;
  out["name"] = s.name;
  out["files"] = json::array();
  for (const fs::path& file : s.files) out["files"].push_back(absolute_or_empty(file));
  out["kind"] = kKinds[static_cast<std::size_t>(s.kind)];
  if (s.kind == SourceKind::repeats) {
    out["documents"] = s.documents;
    out["length"] = s.length;
  }
  out["split"] = kSplits[static_cast<std::size_t>(s.split)];
  out["learn"] = kLearns[static_cast<std::size_t>(s.learn)];
  out["longer"] = kLongers[static_cast<std::size_t>(s.longer)];
  if (s.substitute > 0) {
    out["substitute"] = s.substitute;
    out["substitute_keep"] = s.substitute_keep;
  }
  out["weight"] = s.weight;
  return out;
}

ordered_json json_of(const OptimizerSettings& o, const TrainConfig& c) {
  return {{"peak_rate", c.peak_rate},
          {"warmup", c.warmup},
          {"final_fraction", c.final_fraction},
          {"muon_momentum", o.muon_momentum},
          {"muon_rms", o.muon_rms},
          {"adam_beta1", o.adam_beta1},
          {"adam_beta2", o.adam_beta2},
          {"adam_eps", o.adam_eps},
          {"weight_decay", o.weight_decay},
          {"clip_norm", o.clip_norm},
          {"qk_clip_tau", o.qk_clip_tau},
          {"matrices", kMatrices[static_cast<std::size_t>(o.matrices)]},
          {"balance", kBalances[static_cast<std::size_t>(c.balance)]},
          {"balance_keep", c.balance_keep},
          {"balance_rate", c.balance_rate}};
}

ordered_json json_of(const GuardSettings& g) {
  return {{"loss_above", g.loss_above}, {"norm_times", g.norm_times},
          {"memory", g.memory},         {"healthy_first", g.healthy_first},
          {"skips", g.skips},           {"load_limit", g.load_limit},
          {"load_from", g.load_from},   {"load_stops", g.load_stops}};
}

ordered_json json_of(const TrainConfig& c) {
  ordered_json out;
  out["seed"] = c.seed;
  out["precision"] = kPrecisions[static_cast<std::size_t>(c.precision)];
  if (!c.init_from.empty()) out["init_from"] = absolute_or_empty(c.init_from);
  out["model"] = ordered_json::object();
  if (!c.shape.empty()) {
    out["model"]["shape"] = c.shape.ends_with(".json") ? absolute_or_empty(c.shape) : c.shape;
  }
  out["model"].update(ordered_json::parse(c.shape_changes));
  out["tokenizer"] = ordered_json::object();
  if (!c.tokenizer.folder.empty()) {
    out["tokenizer"]["folder"] = absolute_or_empty(c.tokenizer.folder);
  }
  if (c.tokenizer.vocabulary != 0) out["tokenizer"]["vocabulary"] = c.tokenizer.vocabulary;
  out["tokenizer"]["train_bytes"] = c.tokenizer.train_bytes;
  out["data"] = ordered_json::array();
  for (const DataSource& s : c.data) out["data"].push_back(json_of(s));
  out["held_out"] = ordered_json::array();
  for (const DataSource& s : c.held_out) out["held_out"].push_back(json_of(s));
  out["stage"] = ordered_json::array();
  for (const Stage& s : c.stages) {
    out["stage"].push_back({{"tokens", s.tokens},
                            {"context", s.context},
                            {"batch_tokens", s.batch_tokens},
                            {"micro_batch_tokens", s.micro_batch_tokens}});
  }
  out["optimizer"] = json_of(c.optimizer, c);
  out["qat"] = {{"from", c.qat.from}, {"trunk", c.qat.trunk}, {"experts", c.qat.experts}};
  out["evaluation"] = {{"every_steps", c.evaluation.every_steps}, {"tokens", c.evaluation.tokens}};
  out["checkpoint"] = {{"every_steps", c.checkpoint.every_steps},
                       {"every_minutes", c.checkpoint.every_minutes},
                       {"keep", c.checkpoint.keep}};
  out["guard"] = json_of(c.guard);
  return out;
}

}  // namespace

std::uint64_t TrainConfig::total_tokens() const {
  std::uint64_t total = 0;
  for (const Stage& s : stages) total += s.tokens;
  return total;
}

TrainConfig parse_train_config(std::string_view text, bool is_json, std::string_view where,
                               const fs::path& folder) {
  return read_config(parse_values(text, is_json, where), where, folder);
}

TrainConfig load_train_config(const fs::path& file) {
  return parse_train_config(read_whole(file, kMaxConfigBytes), file.extension() == ".json",
                            file.string(), file.parent_path());
}

std::string resolved_text(const TrainConfig& config) {
  return json_of(config).dump(1) + "\n";
}

std::string first_difference(const TrainConfig& a, const TrainConfig& b) {
  const ordered_json x = json_of(a), y = json_of(b);
  for (const auto& [key, value] : x.items()) {
    if (key == "evaluation" || key == "checkpoint") continue;
    if (!y.contains(key) || y[key] != value) return key;
  }
  for (const auto& [key, value] : y.items()) {
    if (!x.contains(key)) return key;
  }
  return "";
}

void scale_tokens(TrainConfig& config, std::uint64_t tokens) {
  const double factor = static_cast<double>(tokens) / static_cast<double>(config.total_tokens());
  for (Stage& s : config.stages) {
    s.tokens = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(static_cast<double>(s.tokens) * factor + 0.5));
  }
}

}  // namespace triax::train
