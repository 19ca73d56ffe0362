// Byte-pair merge: a plain scan for short pieces, a heap over linked parts for long ones.
#include "triax/tokenizer/bpe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "triax/core/error.h"

namespace triax {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();  // find()'s -1, unsigned
constexpr std::size_t kShort = 96;  // bytes up to which a plain scan for the lowest rank is faster

}  // namespace

std::uint32_t BpeMerger::rank_of(std::string_view piece, std::uint32_t begin,
                                 std::uint32_t end) const {
  return static_cast<std::uint32_t>(ranks_.find(piece.substr(begin, end - begin)));
}

void BpeMerger::encode(std::string_view piece, std::vector<std::int32_t>& ids) {
  const std::int32_t whole = ranks_.find(piece);
  if (whole >= 0) {
    ids.push_back(whole);
  } else if (piece.size() <= kShort) {
    merge_short(piece, ids);
  } else {
    merge_long(piece, ids);
  }
}

void BpeMerger::merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (piece.empty()) return;
  const auto n = static_cast<std::uint32_t>(piece.size());
  std::uint32_t count = n;                       // parts
  std::array<std::uint32_t, kShort + 1> begin;   // [count + 1] of each part, and the end
  std::array<std::uint32_t, kShort> id, merged;  // [count] as in Part
  for (std::uint32_t i = 0; i < n; ++i) {
    begin[i] = i;
    id[i] = static_cast<std::uint32_t>(ranks_.find_byte(piece[i]));
    merged[i] =
        i + 1 < n ? static_cast<std::uint32_t>(ranks_.find_pair(piece[i], piece[i + 1])) : kNone;
  }
  begin[n] = n;
  while (count > 1) {
    std::uint32_t lowest = merged[0];
    std::uint32_t at = 0;
    for (std::uint32_t i = 1; i + 1 < count; ++i) {
      if (merged[i] < lowest) {
        lowest = merged[i];
        at = i;
      }
    }
    if (lowest == kNone) break;
    id[at] = lowest;
    --count;
    for (std::uint32_t i = at + 1; i < count; ++i) {
      begin[i] = begin[i + 1];
      id[i] = id[i + 1];
      merged[i] = merged[i + 1];
    }
    begin[count] = n;
    merged[at] = at + 1 < count ? rank_of(piece, begin[at], begin[at + 2]) : kNone;
    if (at > 0) merged[at - 1] = rank_of(piece, begin[at - 1], begin[at + 1]);
  }
  for (std::uint32_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>(id[i]));
}

void BpeMerger::merge_long(std::string_view piece, std::vector<std::int32_t>& ids) {
  if (piece.size() >= kNone) fail("a piece of {} bytes is too long to encode", piece.size());
  const auto n = static_cast<std::uint32_t>(piece.size());
  parts_.resize(n);
  heap_.clear();
  const auto push = [&](std::uint32_t at) {
    if (parts_[at].merged != kNone) heap_.push_back(std::uint64_t{parts_[at].merged} << 32 | at);
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t merged =
        i + 1 < n ? static_cast<std::uint32_t>(ranks_.find_pair(piece[i], piece[i + 1])) : kNone;
    parts_[i] = {i - 1, i + 1, static_cast<std::uint32_t>(ranks_.find_byte(piece[i])), merged};
    push(i);
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>{});
  const auto update = [&](std::uint32_t at) {  // after a merge at or just after `at`
    Part& part = parts_[at];
    part.merged = part.next < n ? rank_of(piece, at, parts_[part.next].next) : kNone;
    const std::size_t size = heap_.size();
    push(at);
    if (heap_.size() != size) std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  };
  while (!heap_.empty()) {
    const std::uint64_t top = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    heap_.pop_back();
    const auto at = static_cast<std::uint32_t>(top & 0xFFFFFFFFu);
    const auto rank = static_cast<std::uint32_t>(top >> 32);
    Part& part = parts_[at];
    // Stale: the part has changed since. One that changed back to this rank has these bytes again.
    if (part.merged != rank) continue;
    Part& gone = parts_[part.next];
    part.id = rank;
    part.next = gone.next;
    gone.merged = kNone;
    if (part.next < n) parts_[part.next].prev = at;
    update(at);
    if (at > 0) update(part.prev);
  }
  for (std::uint32_t at = 0; at < n; at = parts_[at].next) {
    ids.push_back(static_cast<std::int32_t>(parts_[at].id));
  }
}

}  // namespace triax
