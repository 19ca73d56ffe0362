// A trained model in the released layout: shards, index, config.json, tokenizer files.
#pragma once

#include <filesystem>
#include <string>

#include "triax/core/context.h"
#include "triax/train/parameters.h"

namespace triax::train {

// Writes the masters as a model folder: BF16 trunk, MXFP4 experts, float32 where the tensor table
// says so; the numbers are those of exported_values(). The files of `tokenizer` (tiktoken.model,
// tokenizer_config.json) are copied beside it. The folder appears, or replaces the one that was
// there, as a whole. Throws Error for I/O faults and for numbers that are not finite.
void export_model(Context& ctx, const Parameters<float>& masters, const std::string& config_text,
                  const std::filesystem::path& tokenizer, const std::filesystem::path& folder);

// Gives `made` the name `folder`; what had it is removed. Both lie on one file system.
void replace_folder(const std::filesystem::path& made, const std::filesystem::path& folder);
// Waits until a folder's entries are on the disk.
void sync_folder(const std::filesystem::path& folder);

}  // namespace triax::train
