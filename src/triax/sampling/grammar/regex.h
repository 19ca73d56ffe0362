// The regular part of ECMAScript's patterns, as JSON Schema uses them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "triax/sampling/grammar/budget.h"
#include "triax/sampling/grammar/char_set.h"

namespace triax::grammar {

// An automaton over characters with jumps that need no character; some of them only at the start
// or only at the end of the text.
struct CharNfa {
  enum class Jump : std::uint8_t { always, at_start, at_end };
  struct State {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> chars;  // index of a set, target
    std::vector<std::pair<Jump, std::uint32_t>> jumps;
  };
  std::vector<State> states;
  std::vector<CharSet> sets;
  std::uint32_t start = 0, accept = 0;
};

// Texts in which `pattern` is found (it is not anchored unless it says so). By code points, no
// flags. Understood: literals, ., classes, \d \w \s \D \W \S, escapes of characters, groups, |,
// * + ? {m,n} (also lazy), ^ and $. Throws Error that names what is not: look-around, \b \B, back
// references, \p, named groups.
CharNfa parse_regex(std::string_view pattern, Budget& budget);

}  // namespace triax::grammar
