#include "triax/engine/turn_memory.h"

#include <algorithm>

#include "triax/core/rng.h"

namespace triax {
namespace {

std::uint64_t hash_of(std::span<const std::int32_t> ids) {
  std::uint64_t h = ids.size();
  for (const std::int32_t id : ids) {
    h = splitmix64_mix((h ^ static_cast<std::uint32_t>(id)) + kSplitMixGamma);
  }
  return h;
}

}  // namespace

void TurnMemory::drop(Turns::iterator turn) {
  const auto [begin, end] = by_text_.equal_range(turn->text);
  for (auto i = begin; i != end; ++i) {
    if (i->second != turn) continue;
    by_text_.erase(i);
    break;
  }
  tokens_ -= turn->ids.size();
  turns_.erase(turn);
}

void TurnMemory::remember(std::string_view text, std::span<const std::int32_t> before,
                          std::span<const std::int32_t> ids) {
  if (ids.empty() || ids.size() > max_tokens_) return;
  const std::uint64_t hash = hash_of(before);
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = by_text_.equal_range(text);
  for (auto i = begin; i != end; ++i) {
    if (i->second->before == hash) {
      drop(i->second);
      break;
    }
  }
  turns_.push_front({std::string(text), hash, {ids.begin(), ids.end()}});
  by_text_.emplace(turns_.front().text, turns_.begin());
  tokens_ += ids.size();
  while (tokens_ > max_tokens_) drop(std::prev(turns_.end()));
}

std::optional<std::vector<std::int32_t>> TurnMemory::find(std::string_view text,
                                                          std::span<const std::int32_t> before) {
  const std::lock_guard lock(mutex_);
  auto [begin, end] = by_text_.equal_range(text);
  if (begin == end) return std::nullopt;
  const std::uint64_t hash = hash_of(before);
  Turns::iterator found = std::prev(end)->second;  // equal keys stand in the order of insertion
  for (auto i = begin; i != end; ++i) {
    if (i->second->before == hash) found = i->second;
  }
  turns_.splice(turns_.begin(), turns_, found);
  return found->ids;
}

std::size_t TurnMemory::tokens() const {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

std::size_t TurnMemory::turns() const {
  const std::lock_guard lock(mutex_);
  return turns_.size();
}

}  // namespace triax
