// A model folder's tensors: shards mapped into memory, headers validated as a whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/checkpoint/file.h"
#include "triax/checkpoint/tensor_entry.h"
#include "triax/core/dtype.h"

namespace triax {

struct ShardInfo {
  std::filesystem::path path;
  std::size_t bytes = 0;  // of the file
};

// Opening reads and checks every header (and nothing of the data): offsets, overlaps, gaps, shapes,
// dtypes, duplicates, sizes, index against shards, names that leave the folder. Any fault is an
// Error of one line. Read-only and safe to share between threads afterwards.
class Checkpoint {
 public:
  // `folder` holds model.safetensors.index.json with its shards, or model.safetensors alone.
  static std::shared_ptr<const Checkpoint> open(const std::filesystem::path& folder);
  // One safetensors file of any name.
  static std::shared_ptr<const Checkpoint> open_file(const std::filesystem::path& file);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const TensorEntry* find(std::string_view name) const;  // nullptr: not there
  std::span<const TensorEntry> tensors() const;          // in shard order, then by offset
  std::span<const ShardInfo> shards() const;             // in the order of their names
  // In the mapping; hints about it go to advise(data(entry), ...).
  std::span<const std::byte> data(const TensorEntry& entry) const;
  // Copies bytes [begin, begin + out.size()) of the tensor, past the mapping; safe to call from
  // several threads. Throws Error when the file was replaced or cannot be read.
  void read(const TensorEntry& entry, std::size_t begin, std::span<std::byte> out) const;
  // "language_model." or "": what stands before "model.layers." in this folder's names.
  std::string_view root() const;
  std::size_t total_bytes() const;  // of all tensors
  const std::filesystem::path& folder() const;
  bool has_index() const;  // shards under an index, or one model.safetensors

 private:
  struct Impl;
  explicit Checkpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace triax
