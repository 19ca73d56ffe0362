// A training's tokenizer: made from its data, or copied.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "triax/train/documents.h"

namespace triax::train {

// Trains a byte-level vocabulary of config.tokenizer.vocabulary ids in all (256 of them special
// tokens) on up to train_bytes of the documents, each source by its weight, and writes it to
// `folder` in K3's files. `progress` is told tokens so far and wanted; false gives up with an
// Error.
void make_tokenizer(const TrainConfig& config,
                    const std::vector<std::vector<RawDocument>>& documents,
                    const std::filesystem::path& folder,
                    const std::function<bool(std::uint64_t, std::uint64_t)>& progress);

// Copies tiktoken.model and tokenizer_config.json. Throws Error when the first is not there.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& folder);

}  // namespace triax::train
