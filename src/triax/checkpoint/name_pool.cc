#include "triax/checkpoint/name_pool.h"

#include <bit>
#include <cstring>
#include <functional>

#include "triax/core/error.h"

namespace triax {
namespace {
constexpr std::size_t kBlock = std::size_t{1} << 16;
}

std::string_view NamePool::add(std::string_view text) {
  if (text.size() > left_) {
    const std::size_t size = std::max(kBlock, text.size());
    blocks_.push_back(std::make_unique<char[]>(size));
    at_ = blocks_.back().get();
    left_ = size;
  }
  if (text.empty()) return {};
  std::memcpy(at_, text.data(), text.size());
  const std::string_view out(at_, text.size());
  at_ += text.size();
  left_ -= text.size();
  return out;
}

void NamePool::take(NamePool&& other) {
  // Before the block in use, so that its free end stays usable.
  blocks_.insert(blocks_.begin(), std::make_move_iterator(other.blocks_.begin()),
                 std::make_move_iterator(other.blocks_.end()));
  other = NamePool();
}

std::size_t NameTable::build(std::span<const TensorEntry> entries) {
  TRIAX_CHECK(entries.size() < UINT32_MAX / 2, "too many tensors");
  slots_.assign(std::bit_ceil(2 * entries.size() + 1), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::size_t at = std::hash<std::string_view>()(entries[i].name) & mask;
    for (; slots_[at] != 0; at = (at + 1) & mask) {
      if (entries[slots_[at] - 1].name == entries[i].name) return i;
    }
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
  return entries.size();
}

std::size_t NameTable::find(std::string_view name, std::span<const TensorEntry> entries) const {
  if (slots_.empty()) return npos;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = std::hash<std::string_view>()(name) & mask; slots_[at] != 0;
       at = (at + 1) & mask) {
    if (entries[slots_[at] - 1].name == name) return slots_[at] - 1;
  }
  return npos;
}

}  // namespace triax
