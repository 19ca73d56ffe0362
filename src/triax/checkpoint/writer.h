// Writing checkpoints in the released layout: shards with their headers, the index, whole folders.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/checkpoint/checkpoint.h"
#include "triax/checkpoint/file.h"
#include "triax/core/dtype.h"

namespace triax {

struct TensorToWrite {
  std::string name;
  DType dtype = DType::F32;
  std::vector<std::size_t> shape;

  std::size_t bytes() const;  // throws when it overflows
};

struct ShardPlan {
  std::string file_name;
  std::vector<TensorToWrite> tensors;  // in the order of their data
};

// "model-00002-of-00096.safetensors" for shard 1 of 96.
std::string shard_file_name(std::size_t shard, std::size_t shards);

// Length and JSON of a shard's header, padded with blanks to a multiple of eight bytes. The bytes
// are those of Python's json.dumps with compact separators.
std::string safetensors_header_text(const ShardPlan& plan);

// Writes one shard under a temporary name that finish() replaces, so that a half-written shard is
// never picked up. I/O faults (a full disk) are Errors with the path and the system's reason.
class ShardWriter {
 public:
  // Writes the header. `sparse`: data that is not written is a hole of zeros; otherwise finish()
  // wants all of it. An existing file at `path` is replaced at finish().
  ShardWriter(const std::filesystem::path& path, const ShardPlan& plan, bool sparse = false);

  // The next bytes of the tensors' data, in the order of the plan, in pieces of any size.
  void write(std::span<const std::byte> bytes);
  // Leaves the next bytes zero, as a hole where the file system can.
  void skip(std::size_t bytes);
  std::size_t written() const { return written_; }  // data bytes so far
  // `sync`: wait until the data are on the disk; data that can be made again need not.
  void finish(bool sync = true);

 private:
  void account(std::size_t bytes);
  AtomicFile file_;
  std::size_t data_bytes_ = 0;
  std::size_t written_ = 0;
  bool sparse_;
};

// model.safetensors.index.json of `plans`, with total_size; the bytes of Python's
// json.dump(indent=1).
void write_index(const std::filesystem::path& folder, std::span<const ShardPlan> plans);

// Writes exactly the tensor's bytes to `out`.
using TensorSource = std::function<void(const TensorToWrite& tensor, ShardWriter& out)>;

// A whole folder: shards one after the other, then config.json, then the index, which completes it.
// A plan of one shard named model.safetensors gets no index.
void write_checkpoint(const std::filesystem::path& folder, std::span<const ShardPlan> plans,
                      const TensorSource& source, std::string_view config_text);

// Copies `from` to another folder with the same shards, replacing the bytes of the tensors in
// `overrides` (same dtype and shape). All other tensors keep their stored bytes: an expert that was
// not altered is never encoded again. config.json and the other small files of the folder that a
// model needs are copied too.
void save_checkpoint(const Checkpoint& from, const std::filesystem::path& folder,
                     const std::map<std::string, std::vector<std::byte>, std::less<>>& overrides);

}  // namespace triax
