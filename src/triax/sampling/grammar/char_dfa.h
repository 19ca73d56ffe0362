// Deterministic automata over characters: what patterns, formats and length limits say together,
// before it is written as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "triax/sampling/grammar/budget.h"
#include "triax/sampling/grammar/byte_dfa.h"
#include "triax/sampling/grammar/regex.h"

namespace triax::grammar {

class CharDfa {
 public:
  static constexpr std::uint32_t kDead = 0xFFFFFFFF;

  static CharDfa from(const CharNfa& nfa, Budget& budget);
  static CharDfa regex(std::string_view pattern, Budget& budget);
  // All texts of `least` to `most` characters (CharDfa::kNoLimit: any number).
  static CharDfa lengths(std::size_t least, std::size_t most, Budget& budget);
  static constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

  CharDfa both(const CharDfa& other, Budget& budget) const;  // the intersection
  CharDfa complement(Budget& budget) const;

  bool empty() const;                         // no text at all
  bool matches(std::string_view text) const;  // well-formed UTF-8

  // As well-formed UTF-8.
  ByteDfa raw(Budget& budget) const;
  // As JSON strings in the one spelling of json_string().
  ByteDfa json(Budget& budget) const;

 private:
  std::size_t classes() const { return bounds_.size() - 1; }
  std::uint32_t next(std::size_t state, std::size_t cls) const {
    return next_[state * classes() + cls];
  }
  std::uint32_t add_state(bool accept, Budget& budget);
  void minimize(Budget& budget);  // also drops states of no use
  void drop_dead();
  void write(ByteNfa& nfa, const std::vector<std::uint32_t>& names, bool json) const;

  // Class i is [bounds_[i], bounds_[i + 1]). Surrogates are a class that leads nowhere.
  std::vector<char32_t> bounds_;
  std::vector<std::uint32_t> next_;  // [state, class]
  std::vector<bool> accept_;         // [state]; 0 is the start
};

}  // namespace triax::grammar
