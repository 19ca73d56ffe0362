// Writing synthetic checkpoints: the numbers are made in parallel, the shards written in order.
#include "triax/weights/synth.h"

#include <algorithm>
#include <exception>
#include <numeric>

#include "triax/core/buffer.h"
#include "triax/core/checked.h"
#include "triax/core/thread_pool.h"

namespace triax {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{32} << 20;  // made while the last batch is written
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;   // one work item

// A run of elements of one tensor.
struct Piece {
  synth::Recipe recipe;
  std::size_t begin = 0, end = 0;  // elements
  std::size_t at = 0;              // bytes from the start of the batch
};

// Two buffers: while one is written to the shard, the other is filled by the pool.
class Batches {
 public:
  Batches(const SynthOptions& options, std::uint64_t total, const SynthProgress& progress)
      : pool_(options.threads == 0 ? ThreadPool::available_cores() : options.threads),
        total_(total),
        progress_(progress) {
    for (Buffer<std::byte>& buffer : buffers_) buffer = Buffer<std::byte>(kBatchBytes);
  }

  void add(const synth::Recipe& recipe, std::size_t elements, ShardWriter& shard) {
    const std::size_t size = dtype_size(recipe.dtype);
    for (std::size_t begin = 0; begin < elements;) {
      const std::size_t end = std::min(elements, begin + kPieceBytes / size);
      const std::size_t bytes = (end - begin) * size;
      if (filled_ + bytes > kBatchBytes) run(shard);
      pieces_.push_back({recipe, begin, end, filled_});
      filled_ += bytes;
      begin = end;
    }
  }

  // Makes and writes all that was added for this shard.
  void flush(ShardWriter& shard) {
    run(shard);
    run(shard);
  }

 private:
  // Fills the collected batch while the one before it goes to the file.
  void run(ShardWriter& shard) {
    std::byte* out = buffers_[current_].data();
    const std::span<const std::byte> ready(buffers_[1 - current_].data(), ready_);
    std::exception_ptr fault;
    pool_.parallel_for(pieces_.size() + 1, [&](std::size_t item, std::size_t) {
      if (item == 0) {
        try {
          shard.write(ready);
        } catch (...) {
          fault = std::current_exception();
        }
        return;
      }
      const Piece& p = pieces_[item - 1];
      const std::size_t bytes = (p.end - p.begin) * dtype_size(p.recipe.dtype);
      synth::fill(p.recipe, p.begin, p.end, {out + p.at, bytes});
    });
    if (fault) std::rethrow_exception(fault);
    done_ += ready_;
    if (progress_ && ready_ > 0) progress_(done_, total_);
    ready_ = filled_;
    filled_ = 0;
    pieces_.clear();
    current_ = 1 - current_;
  }

  ThreadPool pool_;
  std::array<Buffer<std::byte>, 2> buffers_;
  std::vector<Piece> pieces_;
  std::size_t current_ = 0, filled_ = 0, ready_ = 0;
  std::uint64_t done_ = 0, total_ = 0;
  const SynthProgress& progress_;
};

void check_room(const std::filesystem::path& folder, std::uint64_t bytes) {
  const std::uint64_t room = std::filesystem::space(folder).available;
  if (room >= bytes) return;
  fail(
      "{}: {} bytes are needed and {} are free; choose another disk or a smaller shape, or "
      "--sparse "
      "for headers with holes",
      folder.string(), bytes, room);
}

}  // namespace

synth::Recipe recipe_of(const K3Config& config, const TensorId& id, const TensorToWrite& tensor,
                        std::uint64_t seed) {
  synth::Recipe out;
  out.role = id.row->role;
  out.dtype = tensor.dtype;
  out.key = synth::stream_key(seed, tensor.name);
  out.inputs = 1;
  for (std::size_t i = 1; i < tensor.shape.size(); ++i) out.inputs *= tensor.shape[i];
  // What one stored byte of an expert row stands for.
  if (out.role == TensorRole::expert_packed) out.inputs *= 2;
  if (out.role == TensorRole::expert_scale) out.inputs *= 32;
  out.live = id.row->quirk == Quirk::padded ? config.kda_num_heads : checked_product(tensor.shape);
  return out;
}

void synthesize(const SynthOptions& options, const std::filesystem::path& folder,
                const SynthProgress& progress) {
  const SynthPlan plan = plan_synthesis(options);
  std::filesystem::create_directories(folder);
  if (!options.sparse) check_room(folder, plan.bytes);
  // An index of an earlier folder must not describe the new shards; the new one completes the
  // folder.
  std::filesystem::remove(folder / "model.safetensors.index.json");
  Batches batches(options, plan.bytes, progress);
  for (std::size_t s = 0; s < plan.shards.size(); ++s) {
    const ShardPlan& shard = plan.shards[s];
    ShardWriter writer(folder / shard.file_name, shard, options.sparse);
    for (std::size_t t = 0; t < shard.tensors.size() && !options.sparse; ++t) {
      const TensorToWrite& tensor = shard.tensors[t];
      batches.add(recipe_of(plan.config, plan.ids[s][t], tensor, options.seed),
                  checked_product(tensor.shape), writer);
    }
    if (!options.sparse) batches.flush(writer);
    writer.finish(false);
  }
  AtomicFile config(folder / "config.json");
  config.write(plan.config_text);
  config.commit(false);
  write_index(folder, plan.shards);
}

}  // namespace triax
