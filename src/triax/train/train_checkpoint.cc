// A checkpoint is a folder: state.json, and state.safetensors with the arrays.
#include "triax/train/train_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "triax/checkpoint/checkpoint.h"
#include "triax/checkpoint/writer.h"
#include "triax/core/error.h"
#include "triax/train/export.h"

namespace triax::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kArrays = "state.safetensors";
constexpr const char* kState = "state.json";
constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kMaxStateBytes = std::size_t{256} << 20;

ordered_json json_of(const GuardState& g) {
  return {{"loss", g.loss},
          {"norm", g.norm},
          {"healthy", g.healthy},
          {"skipped", g.skipped},
          {"skipped_in_row", g.skipped_in_row},
          {"load", g.load},
          {"dead", g.dead},
          {"loads", g.loads}};
}

GuardState guard_of(const json& j) {
  GuardState g;
  j.at("loss").get_to(g.loss);
  j.at("norm").get_to(g.norm);
  j.at("healthy").get_to(g.healthy);
  j.at("skipped").get_to(g.skipped);
  j.at("skipped_in_row").get_to(g.skipped_in_row);
  j.at("load").get_to(g.load);
  j.at("dead").get_to(g.dead);
  j.at("loads").get_to(g.loads);
  return g;
}

std::string state_text(const TrainState& s) {
  ordered_json out{{"step", s.step},
                   {"tokens", s.tokens},
                   {"stage", s.stage},
                   {"stage_tokens", s.stage_tokens},
                   {"optimizer_steps", s.optimizer_steps},
                   {"seconds", s.seconds},
                   {"guard", json_of(s.guard)}};
  out["sources"] = ordered_json::array();
  for (std::size_t i = 0; i < s.sources.size(); ++i) {
    const SourcePosition& p = s.sources[i];
    out["sources"].push_back({{"epoch", p.epoch},
                              {"index", p.index},
                              {"row", p.row},
                              {"tokens", p.tokens},
                              {"digest", s.digests[i]}});
  }
  return out.dump(1) + "\n";
}

TrainState state_of(const json& j) {
  TrainState s;
  j.at("step").get_to(s.step);
  j.at("tokens").get_to(s.tokens);
  j.at("stage").get_to(s.stage);
  j.at("stage_tokens").get_to(s.stage_tokens);
  j.at("optimizer_steps").get_to(s.optimizer_steps);
  j.at("seconds").get_to(s.seconds);
  s.guard = guard_of(j.at("guard"));
  for (const json& p : j.at("sources")) {
    SourcePosition& out = s.sources.emplace_back();
    p.at("epoch").get_to(out.epoch);
    p.at("index").get_to(out.index);
    p.at("row").get_to(out.row);
    p.at("tokens").get_to(out.tokens);
    s.digests.push_back(p.at("digest").get<std::string>());
  }
  return s;
}

// Whole checkpoints, oldest first.
std::vector<fs::path> checkpoints_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    const bool number = name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
                        name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
    if (number && fs::exists(entry.path() / kState) && fs::exists(entry.path() / kArrays)) {
      out.push_back(entry.path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

void write_arrays(const fs::path& file, const TrainArrays& arrays) {
  ShardPlan plan{kArrays, {}};
  const std::pair<const char*, std::span<float>> parts[] = {
      {"weights", arrays.weights}, {"first", arrays.first}, {"second", arrays.second}};
  for (const auto& [name, numbers] : parts) {
    plan.tensors.push_back({name, DType::F32, {numbers.size()}});
  }
  ShardWriter writer(file, plan);
  for (const auto& [name, numbers] : parts) writer.write(std::as_bytes(numbers));
  writer.finish();
}

}  // namespace

void write_train_checkpoint(const fs::path& folder, const TrainState& state,
                            const TrainArrays& arrays, std::size_t keep) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) fail("{}: cannot create the folder: {}", folder.string(), code.message());
  const fs::path name = folder / fmt::format("{}{:08}", kPrefix, state.step);
  const fs::path made = folder / "partial";
  fs::remove_all(made, code);
  fs::create_directories(made, code);
  if (code) fail("{}: cannot create the folder: {}", made.string(), code.message());
  write_arrays(made / kArrays, arrays);
  AtomicFile file(made / kState);
  file.write(state_text(state));
  file.commit();
  replace_folder(made, name);
  const std::vector<fs::path> all = checkpoints_of(folder);
  for (std::size_t i = 0; i + keep < all.size(); ++i) fs::remove_all(all[i], code);
}

std::optional<fs::path> latest_train_checkpoint(const fs::path& folder) {
  const std::vector<fs::path> all = checkpoints_of(folder);
  if (all.empty()) return std::nullopt;
  return all.back();
}

TrainState read_train_checkpoint(const fs::path& checkpoint, const TrainArrays& arrays) {
  const auto file = Checkpoint::open_file(checkpoint / kArrays);
  const std::pair<const char*, std::span<float>> parts[] = {
      {"weights", arrays.weights}, {"first", arrays.first}, {"second", arrays.second}};
  for (const auto& [name, numbers] : parts) {
    const TensorEntry* entry = file->find(name);
    if (entry == nullptr || entry->dtype != DType::F32 || entry->bytes != numbers.size_bytes()) {
      fail("{}: {} has not the {} numbers of this configuration", (checkpoint / kArrays).string(),
           name, numbers.size());
    }
    file->read(*entry, 0, std::as_writable_bytes(numbers));
  }
  const fs::path state = checkpoint / kState;
  try {
    return state_of(json::parse(read_whole(state, kMaxStateBytes)));
  } catch (const json::exception& error) {
    fail("{}: {}", state.string(), error.what());
  }
}

}  // namespace triax::train
