// Opening a model folder: everything a forward pass reads, kept alive together.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "triax/cli/options.h"
#include "triax/model/forward.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/weights/trunk.h"

namespace triax::cli {

// A folder, opened and checked. The tokenizer is there when the folder has tiktoken.model.
struct LoadedModel {
  // The trunk stays mapped.
  explicit LoadedModel(const std::filesystem::path& folder);
  // The trunk is placed as the choice says; `progress` is told, from the pool's threads.
  LoadedModel(const std::filesystem::path& folder, TrunkChoice choice, ThreadPool& pool,
              const TrunkProgress& progress);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  Model model() const { return {config, weights, experts.get()}; }
  // End ids of the configuration and of the tokenizer's roles.
  std::vector<std::int32_t> stop_ids() const;
  // Throws Error that says what to do when the folder has no tokenizer.
  const Tokenizer& required_tokenizer(const char* instead) const;

  std::filesystem::path folder;
  K3Config config;
  std::shared_ptr<const Checkpoint> checkpoint;
  K3Weights weights;
  std::unique_ptr<ExpertStore> experts;
  std::optional<Tokenizer> tokenizer;
  TrunkChoice trunk = TrunkChoice::mapped;  // as it was decided, never automatic
  std::size_t trunk_bytes = 0;              // of memory that the trunk was given
};

// A model with threads and scratch memory, as the options say. Opening shows progress and says in
// one line what the user should know about the folder.
struct Session {
  Session(const Common& options, Precision precision);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::size_t threads;
  std::unique_ptr<LoadedModel> loaded;
  double load_seconds = 0;
  ThreadPool pool;
  Arena arena;
  Context ctx;

  const K3Config& config() const { return loaded->config; }
  Model model() const { return loaded->model(); }
};

// "mapped", "resident" or "int8".
const char* trunk_name(TrunkChoice choice);

// The tokenizer of a folder, or K3's own without a folder.
Tokenizer open_tokenizer(const std::string& model);

// A pass over `ids` in pieces of `chunk` rows; logits of all of them, [ids, vocab].
void forward_all(Context& ctx, const Model& model, SequenceState& state,
                 std::span<const std::int32_t> ids, std::size_t chunk, Mat<float> logits);

}  // namespace triax::cli
