// Synthesis: random checkpoints in the released layout, of any shape.
//
// For the shapes tiny, small and bench at the default seed and shard size the shards are, byte for
// byte, the ones that tests/golden/synth/README.md describes. Other shapes follow the same rules:
// each tensor by its role in the tensor table (init_of), numbers as in synth_numbers.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/checkpoint/writer.h"
#include "triax/config/config.h"
#include "triax/weights/synth_numbers.h"
#include "triax/weights/tensor_table.h"

namespace triax {

// The text of a built-in config.json: "k3" (the release), "tiny", "small", "bench".
std::optional<std::string_view> builtin_config(std::string_view name);

struct SynthOptions {
  std::string config;  // a built-in name or a config.json
  std::uint64_t seed = 20260727;
  std::size_t shard_mib = 512;  // a shard's data stay below, where tensors allow
  std::size_t shards = 0;       // so many shards of about equal size; 0: by shard_mib
  bool sparse = false;          // true headers, holes for data
  std::size_t threads = 0;      // 0: all cores
};

// Called from the calling thread with bytes done and bytes in all.
using SynthProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Which tensor goes into which shard. Text tensors in table order, cut by size; for "k3" as in the
// release, vision included: layer L in shard L + 1 (from 1), then the tensors outside the layers,
// the projector, the vision tower; a layer's experts in the order of their ids as text.
struct SynthPlan {
  std::string config_text;
  K3Config config;
  std::vector<ShardPlan> shards;
  std::vector<std::vector<TensorId>> ids;  // of each shard's tensors
  std::uint64_t bytes = 0;
};
SynthPlan plan_synthesis(const SynthOptions& options);

// The recipe of one tensor of the plan.
synth::Recipe recipe_of(const K3Config& config, const TensorId& id, const TensorToWrite& tensor,
                        std::uint64_t seed);

// Writes shards, index and config.json into `folder` (created; files of the same names are
// replaced). Throws Error for an unknown configuration, widths that MXFP4 cannot hold, too little
// room on the disk (with the figures), and I/O faults.
void synthesize(const SynthOptions& options, const std::filesystem::path& folder,
                const SynthProgress& progress = {});

}  // namespace triax
