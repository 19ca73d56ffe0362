#include "triax/sampling/grammar/char_set.h"

#include <algorithm>

namespace triax::grammar {

CharSet::CharSet(std::initializer_list<Range> ranges) : ranges_(ranges) {
  normalize();
}

void CharSet::add(char32_t first, char32_t last) {
  ranges_.emplace_back(first, last);
  normalize();
}

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  normalize();
}

void CharSet::normalize() {
  std::vector<Range> split;
  for (const auto& [first, last] : ranges_) {
    if (first < kSurrogates) split.emplace_back(first, std::min<char32_t>(last, kSurrogates - 1));
    if (last >= kSurrogatesEnd) split.emplace_back(std::max(first, kSurrogatesEnd), last);
  }
  std::sort(split.begin(), split.end());
  ranges_.clear();
  for (const auto& [first, last] : split) {
    if (!ranges_.empty() && first <= ranges_.back().second + 1) {
      ranges_.back().second = std::max(ranges_.back().second, last);
    } else {
      ranges_.emplace_back(first, last);
    }
  }
}

CharSet CharSet::complement() const {
  CharSet out;
  char32_t from = 0;
  for (const auto& [first, last] : ranges_) {
    if (first > from) out.ranges_.emplace_back(from, first - 1);
    from = last + 1;
  }
  if (from < kCharEnd) out.ranges_.emplace_back(from, kCharEnd - 1);
  out.normalize();
  return out;
}

bool CharSet::contains(char32_t c) const {
  const auto at = std::upper_bound(ranges_.begin(), ranges_.end(), Range{c, kCharEnd});
  return at != ranges_.begin() && c <= std::prev(at)->second;
}

}  // namespace triax::grammar
