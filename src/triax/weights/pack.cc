#include "triax/weights/pack.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <vector>

#include "triax/checkpoint/writer.h"
#include "triax/core/checked.h"
#include "triax/weights/quantize.h"
#include "triax/weights/tensor_table.h"

namespace triax {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBatch = std::size_t{32} << 20;   // bytes made at a time
constexpr std::size_t kBlock = std::size_t{1} << 20;    // of them, one thread at a time
constexpr std::size_t kMaxFile = std::size_t{1} << 30;  // bytes of a file that is no shard

struct Plan {
  std::vector<ShardPlan> shards;
  std::vector<std::vector<const TensorEntry*>> sources;  // of each tensor; null: scales, which
                                                         // follow their matrix
  Packed result;
};

TensorToWrite as_stored(const TensorEntry& e) {
  return {std::string(e.name), e.dtype, {e.shape.begin(), e.shape.end()}};
}

Plan make_plan(const K3Config& config, const Checkpoint& from) {
  Plan plan;
  plan.sources.resize(from.shards().size());
  for (const ShardInfo& shard : from.shards()) {
    plan.shards.push_back({shard.path.filename().string(), {}});
  }
  for (const TensorEntry& entry : from.tensors()) {
    std::vector<TensorToWrite>& tensors = plan.shards[entry.shard].tensors;
    std::vector<const TensorEntry*>& sources = plan.sources[entry.shard];
    tensors.push_back(as_stored(entry));
    sources.push_back(&entry);
    const std::optional<TensorId> id = identify(config, from.root(), entry.name);
    if (!id || id->scales || entry.dtype == DType::I8 || !packs_int8(*id->row, config)) continue;
    tensors.back().dtype = DType::I8;
    tensors.push_back({std::string(entry.name) + "_scale",
                       DType::BF16,
                       {entry.shape[0], entry.shape[1] / kQuantGroup}});
    sources.push_back(nullptr);
    ++plan.result.matrices;
  }
  plan.result.from_bytes = from.total_bytes();
  for (const ShardPlan& shard : plan.shards) {
    for (const TensorToWrite& t : shard.tensors) {
      plan.result.bytes = checked_add(plan.result.bytes, t.bytes());
    }
  }
  return plan;
}

void make_room(const Checkpoint& from, const fs::path& folder, std::uint64_t bytes) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) fail("{}: cannot create the folder: {}", folder.string(), code.message());
  if (fs::equivalent(folder, from.folder().empty() ? fs::path(".") : from.folder(), code)) {
    fail("{}: a checkpoint cannot be packed over the one it comes from; name another folder",
         folder.string());
  }
  const std::uint64_t room = fs::space(folder).available;
  if (room < bytes) {
    fail("{}: {} bytes are needed and {} are free; choose another disk", folder.string(), bytes,
         room);
  }
  // An index of an earlier folder must not describe the new shards.
  fs::remove(folder / "model.safetensors.index.json", code);
  if (code) fail("{}: cannot remove the old index: {}", folder.string(), code.message());
}

// Writes the tensors of one plan, shard by shard.
class Packer {
 public:
  Packer(const Checkpoint& from, const Plan& plan, ThreadPool& pool, const PackProgress& progress)
      : from_(from), plan_(plan), pool_(pool), progress_(progress), scratch_(pool.threads()) {}

  void write(const fs::path& folder) {
    for (std::size_t s = 0; s < plan_.shards.size(); ++s) {
      const ShardPlan& shard = plan_.shards[s];
      ShardWriter out(folder / shard.file_name, shard);
      for (std::size_t t = 0; t < shard.tensors.size(); ++t) {
        const TensorEntry* source = plan_.sources[s][t];
        if (source == nullptr) {
          put(out, std::as_bytes(std::span(scales_)));
        } else if (source->dtype != shard.tensors[t].dtype) {
          quantize(*source, out);
        } else {
          copy(*source, out);
        }
      }
      out.finish();
    }
  }

 private:
  void put(ShardWriter& out, std::span<const std::byte> bytes) {
    out.write(bytes);
    done_ += bytes.size();
    if (progress_) progress_(done_, plan_.result.bytes);
  }

  void copy(const TensorEntry& entry, ShardWriter& out) {
    for (std::size_t begin = 0; begin < entry.bytes; begin += kBatch) {
      buffer_.resize(std::min(kBatch, entry.bytes - begin));
      from_.read(entry, begin, buffer_);
      put(out, buffer_);
    }
  }

  // Writes the codes; the scales stay in scales_ for the tensor that follows.
  void quantize(const TensorEntry& entry, ShardWriter& out) {
    const std::size_t rows = entry.shape[0], cols = entry.shape[1], groups = cols / kQuantGroup;
    scales_.resize(checked_mul(rows, groups));
    const std::size_t batch = std::max<std::size_t>(1, kBatch / cols);
    for (std::size_t begin = 0; begin < rows; begin += batch) {
      const std::size_t end = std::min(rows, begin + batch);
      buffer_.resize((end - begin) * cols);
      quantize_batch(entry, begin, end, scales_.data() + begin * groups);
      put(out, buffer_);
    }
  }

  void quantize_batch(const TensorEntry& entry, std::size_t begin, std::size_t end, bf16* scales) {
    const std::size_t cols = entry.shape[1];
    const std::size_t block = std::max<std::size_t>(1, kBlock / cols);  // rows
    auto* codes = reinterpret_cast<std::int8_t*>(buffer_.data());
    std::mutex mutex;
    std::exception_ptr fault;
    pool_.parallel_for((end - begin + block - 1) / block, [&](std::size_t i, std::size_t worker) {
      const std::size_t first = begin + i * block, last = std::min(end, first + block);
      try {
        quantize_stored(from_, entry, first, last, scratch_[worker], codes + (first - begin) * cols,
                        scales + (first - begin) * (cols / kQuantGroup));
      } catch (...) {
        const std::lock_guard lock(mutex);
        fault = std::current_exception();
      }
    });
    if (fault) std::rethrow_exception(fault);
  }

  const Checkpoint& from_;
  const Plan& plan_;
  ThreadPool& pool_;
  const PackProgress& progress_;
  std::vector<std::vector<std::byte>> scratch_;  // one a thread
  std::vector<std::byte> buffer_;
  std::vector<bf16> scales_;  // of the matrix just written
  std::uint64_t done_ = 0;
};

// What a model folder holds beside its tensors: tokenizer, templates, licence.
void copy_other_files(const fs::path& from, const fs::path& folder) {
  for (const fs::directory_entry& file : fs::directory_iterator(from.empty() ? "." : from)) {
    const std::string name = file.path().filename().string();
    if (!file.is_regular_file() || name.starts_with('.') || name == "config.json" ||
        name.ends_with(".safetensors") || name.ends_with(".partial") ||
        name == "model.safetensors.index.json") {
      continue;
    }
    AtomicFile copy(folder / name);
    copy.write(read_whole(file.path(), kMaxFile));
    copy.commit();
  }
}

}  // namespace

Packed pack_checkpoint(const K3Config& config, const Checkpoint& from, const fs::path& folder,
                       ThreadPool& pool, const PackProgress& progress) {
  check_tensors(config, from);
  const Plan plan = make_plan(config, from);
  if (plan.result.matrices == 0) {
    fail("{}: there is nothing to pack: no matrix of the trunk that could be 8-bit is not already",
         from.folder().string());
  }
  const fs::path config_file = from.folder() / "config.json";
  const std::string config_text =
      packed_config_text(config, read_whole(config_file, kMaxFile), config_file.string());
  make_room(from, folder, plan.result.bytes);
  Packer(from, plan, pool, progress).write(folder);
  copy_other_files(from.folder(), folder);
  AtomicFile out(folder / "config.json");
  out.write(config_text);
  out.commit();
  if (from.has_index()) write_index(folder, plan.shards);
  return plan.result;
}

}  // namespace triax
