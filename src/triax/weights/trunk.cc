#include "triax/weights/trunk.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/buffer.h"
#include "triax/core/checked.h"
#include "triax/weights/quantize.h"

namespace triax {
namespace {

constexpr std::size_t kPiece = kHugePage;  // bytes: cleared, and filled while still in the cache

enum class Act : std::uint8_t { copy, copy_codes, copy_scales, quantize };

// A tensor of the checkpoint and where it goes.
struct Move {
  Act act;
  const TensorEntry* from;
  std::size_t at = 0;         // in the region, bytes
  std::size_t scales_at = 0;  // quantize only
  std::size_t rows = 0, cols = 0;
};

// A matrix, and what its view shows afterwards.
struct Rebind {
  TensorId id;
  DType dtype;
  std::size_t at, scales_at;
  std::size_t rows, cols;
};

struct Plan {
  std::vector<Move> moves;
  std::vector<Rebind> rebinds;
  TrunkPlaced placed;
  std::size_t read_bytes = 0;

  std::size_t reserve(std::size_t bytes) {
    const std::size_t at = placed.bytes;
    placed.bytes =
        checked_add(at, checked_mul(checked_add(bytes, kAlignment - 1) / kAlignment, kAlignment));
    return at;
  }
  void move(Move m) {
    read_bytes = checked_add(read_bytes, m.from->bytes);
    moves.push_back(m);
  }
};

bool index_in(const Components& set, Component component) {
  return set.test(static_cast<std::size_t>(component));
}

void plan_matrix(const K3Config& config, const Checkpoint& checkpoint, const TrunkOptions& options,
                 const TensorId& id, Plan& plan) {
  const TensorRow& row = *id.row;
  const TensorEntry& entry = *checkpoint.find(tensor_name(id, checkpoint.root()));
  const std::size_t rows = entry.shape[0], cols = entry.shape[1];
  const std::size_t scale_bytes = rows * (cols / kQuantGroup) * sizeof(bf16);
  if (options.format == TrunkFormat::int8 && entry.dtype != DType::I8 &&
      index_in(options.components, row.component) && packs_int8(row, config)) {
    const std::size_t at = plan.reserve(rows * cols);
    const std::size_t scales_at = plan.reserve(scale_bytes);
    plan.move({Act::quantize, &entry, at, scales_at, rows, cols});
    plan.rebinds.push_back({id, DType::I8, at, scales_at, rows, cols});
    plan.placed.saved_bytes[static_cast<std::size_t>(row.component)] +=
        entry.bytes - rows * cols - scale_bytes;
    return;
  }
  if (!options.resident) return;
  if (row.role == TensorRole::embedding && !config.tie_word_embeddings) return;
  const bool codes = entry.dtype == DType::I8;
  const std::size_t at = plan.reserve(entry.bytes);
  plan.move({codes ? Act::copy_codes : Act::copy, &entry, at, 0, rows, cols});
  std::size_t scales_at = 0;
  if (codes) {
    TensorId scales = id;
    scales.scales = true;
    const TensorEntry* scale_entry = checkpoint.find(tensor_name(scales, checkpoint.root()));
    scales_at = plan.reserve(scale_entry->bytes);
    plan.move({Act::copy_scales, scale_entry, scales_at, 0, rows, cols / kQuantGroup});
  }
  plan.rebinds.push_back({id, entry.dtype, at, scales_at, rows, cols});
}

Plan make_plan(const K3Config& config, const K3Weights& weights, const TrunkOptions& options) {
  TRIAX_CHECK(weights.checkpoint != nullptr, "weights that were not loaded");
  Plan plan;
  for_each_tensor(config, {true, false}, [&](const TensorId& id) {
    if (id.row->slot.matrix != nullptr) {
      plan_matrix(config, *weights.checkpoint, options, id, plan);
    }
  });
  return plan;
}

// Rows of a matrix, or bytes of a tensor that is copied.
struct Piece {
  const Move* move;
  std::size_t begin, end;
};

std::vector<Piece> cut(const Plan& plan) {
  std::vector<Piece> out;
  for (const Move& m : plan.moves) {
    if (m.act == Act::quantize) {
      const std::size_t rows = std::max<std::size_t>(1, kPiece / (m.from->bytes / m.rows));
      for (std::size_t r = 0; r < m.rows; r += rows) {
        out.push_back({&m, r, std::min(m.rows, r + rows)});
      }
      continue;
    }
    // At the borders of huge pages, so that each is filled by one thread.
    for (std::size_t begin = 0; begin < m.from->bytes;) {
      const std::size_t end = std::min(m.from->bytes, begin + kPiece - (m.at + begin) % kPiece);
      out.push_back({&m, begin, end});
      begin = end;
    }
  }
  return out;
}

// What one piece needs; throws Error.
class Mover {
 public:
  Mover(const Checkpoint& checkpoint, HugeBuffer& region, std::size_t threads)
      : checkpoint_(checkpoint), region_(region), scratch_(threads) {}

  static std::size_t bytes(const Piece& p) {
    const Move& m = *p.move;
    return m.act == Act::quantize ? (p.end - p.begin) * (m.from->bytes / m.rows) : p.end - p.begin;
  }

  void run(const Piece& p, std::size_t worker) {
    if (p.move->act == Act::quantize) {
      quantize(p, worker);
      return;
    }
    std::byte* to = region_.data() + p.move->at + p.begin;
    checkpoint_.read(*p.move->from, p.begin, {to, p.end - p.begin});
    if (p.move->act == Act::copy_codes) check_codes(p, to);
    if (p.move->act == Act::copy_scales) check_scales(p, to);
  }

 private:
  void quantize(const Piece& p, std::size_t worker) {
    const Move& m = *p.move;
    auto* codes = reinterpret_cast<std::int8_t*>(region_.data() + m.at) + p.begin * m.cols;
    auto* scales =
        reinterpret_cast<bf16*>(region_.data() + m.scales_at) + p.begin * (m.cols / kQuantGroup);
    quantize_stored(checkpoint_, *m.from, p.begin, p.end, scratch_[worker], codes, scales);
  }

  static void check_codes(const Piece& p, const std::byte* codes) {
    const std::size_t n = p.end - p.begin;
    const void* found = std::memchr(codes, 0x80, n);
    if (found == nullptr) return;
    const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(found) - codes);
    fail("tensor {}: row {} holds the code -128, expected -127 to 127; pack the checkpoint again",
         p.move->from->name, (p.begin + at) / p.move->cols);
  }

  static void check_scales(const Piece& p, const std::byte* bytes) {
    for (std::size_t i = 0; i + sizeof(bf16) <= p.end - p.begin; i += sizeof(bf16)) {
      bf16 scale;
      std::memcpy(&scale, bytes + i, sizeof scale);
      if (std::isfinite(to_float(scale))) continue;
      fail("tensor {}: row {} holds a scale that is not finite; pack the checkpoint again",
           p.move->from->name, (p.begin + i) / sizeof(bf16) / p.move->cols);
    }
  }

  const Checkpoint& checkpoint_;
  HugeBuffer& region_;
  std::vector<std::vector<std::byte>> scratch_;  // one a thread
};

void move_all(const Checkpoint& checkpoint, const Plan& plan, HugeBuffer& region, ThreadPool& pool,
              const TrunkProgress& progress) {
  const std::vector<Piece> pieces = cut(plan);
  Mover mover(checkpoint, region, pool.threads());
  std::mutex mutex;
  std::atomic<bool> stop{false};
  std::exception_ptr fault;
  std::uint64_t done = 0;
  pool.parallel_for(pieces.size(), [&](std::size_t i, std::size_t worker) {
    if (stop.load(std::memory_order_relaxed)) return;
    try {
      mover.run(pieces[i], worker);
      if (!progress) return;
      const std::lock_guard lock(mutex);
      done += Mover::bytes(pieces[i]);
      progress(done, plan.read_bytes);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!fault) fault = std::current_exception();
      stop = true;
    }
  });
  if (fault) std::rethrow_exception(fault);
}

constexpr double kMostlyHuge = 0.75;  // of the trunk

// Copies that no matrix shows any longer.
void drop_copies(K3Weights& weights) {
  std::erase_if(weights.copied, [&](const auto& copy) {
    return static_cast<const void*>(copy->data()) != weights.embed_tokens.data;
  });
}

}  // namespace

Components packable_components() {
  Components out;
  for (const TensorRow& row : tensor_table()) {
    if (row.packing == Packing::int8) out.set(static_cast<std::size_t>(row.component));
  }
  return out;
}

TrunkPlaced plan_trunk(const K3Config& config, const K3Weights& weights,
                       const TrunkOptions& options) {
  return make_plan(config, weights, options).placed;
}

TrunkPlaced place_trunk(const K3Config& config, const TrunkOptions& options, ThreadPool& pool,
                        K3Weights& weights, const TrunkProgress& progress) {
  const Plan plan = make_plan(config, weights, options);
  if (plan.moves.empty()) return plan.placed;
  auto region = std::make_shared<HugeBuffer>(plan.placed.bytes);
  move_all(*weights.checkpoint, plan, *region, pool, progress);
  for (const Rebind& r : plan.rebinds) {
    const bf16* scales = r.dtype == DType::I8
                             ? reinterpret_cast<const bf16*>(region->data() + r.scales_at)
                             : nullptr;
    r.id.row->slot.matrix(weights, r.id.layer) = {region->data() + r.at, r.dtype, r.rows, r.cols,
                                                  scales};
  }
  if (config.tie_word_embeddings) weights.lm_head = weights.embed_tokens;
  weights.regions.push_back(std::move(region));
  if (options.resident) drop_copies(weights);
  // Pages that loading touched on the way to a vector, or to a copy.
  for (const Move& m : plan.moves) advise(weights.checkpoint->data(*m.from), Access::dont_need);
  return plan.placed;
}

bool populate_trunk(const K3Config& config, const K3Weights& weights, ThreadPool& pool,
                    const TrunkProgress& progress) {
  const Plan plan = make_plan(config, weights, {});
  const std::vector<Piece> pieces = cut(plan);
  const Checkpoint& checkpoint = *weights.checkpoint;
  std::mutex mutex;
  std::uint64_t done = 0;
  pool.parallel_for(pieces.size(), [&](std::size_t i, std::size_t) {
    const Piece& p = pieces[i];
    advise(checkpoint.data(*p.move->from).subspan(p.begin, p.end - p.begin), Access::populate);
    if (!progress) return;
    const std::lock_guard lock(mutex);
    done += p.end - p.begin;
    progress(done, plan.read_bytes);
  });
  std::vector<std::span<const std::byte>> ranges;
  for (const Move& m : plan.moves) ranges.push_back(checkpoint.data(*m.from));
  const double huge = static_cast<double>(residency(ranges).huge);
  if (huge >= kMostlyHuge * static_cast<double>(plan.read_bytes)) return true;
  // The caller will copy them: not both at a time.
  for (const std::span<const std::byte> range : ranges) advise(range, Access::dont_need);
  return false;
}

void take_components(const K3Config& config, const K3Weights& from, Components components,
                     K3Weights& into) {
  // The slots give access for writing; the copy of the views is dropped.
  K3Weights source = from;
  for_each_tensor(config, {true, false}, [&](const TensorId& id) {
    const Slot& slot = id.row->slot;
    if (slot.matrix == nullptr || !index_in(components, id.row->component)) return;
    slot.matrix(into, id.layer) = slot.matrix(source, id.layer);
  });
  if (config.tie_word_embeddings) into.lm_head = into.embed_tokens;
  into.regions.insert(into.regions.end(), from.regions.begin(), from.regions.end());
  into.copied.insert(into.copied.end(), from.copied.begin(), from.copied.end());
}

}  // namespace triax
