// Sets of Unicode scalar values, as sorted ranges.
#pragma once

#include <span>
#include <utility>
#include <vector>

namespace triax::grammar {

inline constexpr char32_t kCharEnd = 0x110000;
inline constexpr char32_t kSurrogates = 0xD800, kSurrogatesEnd = 0xE000;

// [first, last] pairs, sorted, neither touching nor overlapping, never a surrogate.
class CharSet {
 public:
  using Range = std::pair<char32_t, char32_t>;

  CharSet() = default;
  CharSet(std::initializer_list<Range> ranges);  // any ranges
  static CharSet all() { return {{0, kCharEnd - 1}}; }

  void add(char32_t first, char32_t last);
  void add(const CharSet& other);
  CharSet complement() const;
  bool contains(char32_t c) const;
  std::span<const Range> ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }

 private:
  void normalize();

  std::vector<Range> ranges_;
};

}  // namespace triax::grammar
