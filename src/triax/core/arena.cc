#include "triax/core/arena.h"

#include <algorithm>

namespace triax {
namespace {
constexpr std::size_t kFirstChunk = std::size_t{1} << 20;
}

void* Arena::take_bytes(std::size_t bytes) {
  const std::size_t want =
      std::max<std::size_t>(checked_add(bytes, kAlignment - 1) / kAlignment, 1) * kAlignment;
  while (chunk_ < chunks_.size() && chunks_[chunk_].size - used_ < want) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const std::size_t last = chunks_.empty() ? kFirstChunk / 2 : chunks_.back().size;
    const std::size_t size = std::max(want, 2 * last);
    Chunk chunk;
    chunk.data.reset(static_cast<std::byte*>(allocate_aligned(size)));
    chunk.size = size;
    chunks_.push_back(std::move(chunk));
    used_ = 0;
  }
  void* out = chunks_[chunk_].data.get() + used_;
  used_ += want;
  std::size_t taken = used_;
  for (std::size_t i = 0; i < chunk_; ++i) taken += chunks_[i].size;
  peak_ = std::max(peak_, taken);
  return out;
}

void Arena::rewind(std::size_t chunk, std::size_t used) {
  chunk_ = chunk;
  used_ = used;
  // Back at the very start: several chunks become one, so that the next step runs in one piece.
  if (chunk_ == 0 && used_ == 0 && chunks_.size() > 1) {
    std::size_t total = 0;
    for (const Chunk& c : chunks_) total += c.size;
    chunks_.clear();
    Chunk chunk_all;
    chunk_all.data.reset(static_cast<std::byte*>(allocate_aligned(total)));
    chunk_all.size = total;
    chunks_.push_back(std::move(chunk_all));
  }
}

}  // namespace triax
