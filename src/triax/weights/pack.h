// A copy of a checkpoint whose trunk is 8-bit, in compressed-tensors form: NAME.weight in I8 with
// NAME.weight_scale in BF16. Experts and everything else keep their bytes (docs/formats.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "triax/checkpoint/checkpoint.h"
#include "triax/config/config.h"
#include "triax/core/thread_pool.h"

namespace triax {

struct Packed {
  std::size_t matrices = 0;      // made 8-bit
  std::uint64_t from_bytes = 0;  // of all tensors, before
  std::uint64_t bytes = 0;       // of all tensors, now
};

// Called from the calling thread with bytes written and bytes in all; it may throw to stop.
using PackProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Writes `folder` (made if it is not there; files of the same names are replaced): shards, the
// other files of the model, config.json, and last the index, without which the folder does not
// open. Throws Error for the folder that the model lies in, for a model with nothing to pack, for
// too little room on the disk (with the figures), for a tensor with numbers that have no 8-bit
// code, and for I/O faults.
Packed pack_checkpoint(const K3Config& config, const Checkpoint& from,
                       const std::filesystem::path& folder, ThreadPool& pool,
                       const PackProgress& progress = {});

// The text of config.json with its quantization_config extended by a group for the 8-bit trunk.
std::string packed_config_text(const K3Config& config, std::string_view text,
                               std::string_view where);

}  // namespace triax
