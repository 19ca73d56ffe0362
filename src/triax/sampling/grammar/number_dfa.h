// JSON numbers within bounds, as automata over their digits.
#pragma once

#include <optional>
#include <vector>

#include "triax/sampling/grammar/byte_dfa.h"
#include "triax/sampling/grammar/decimal.h"

namespace triax::grammar {

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};

struct NumberRule {
  bool integer = false;  // written without point or exponent
  std::optional<NumberBound> low, high;
  std::vector<Decimal> multiples;  // the number is a multiple of each; all > 0

  bool free() const { return !low && !high && multiples.empty(); }
};

// Numbers of JSON that keep the rule, exactly. An exponent is written only by free numbers; "-0" is
// zero. Throws Error for multiples beyond 10,000 in their last place.
ByteDfa number_dfa(const NumberRule& rule, Budget& budget);

// Does the value keep the rule?
bool keeps(const Decimal& value, const NumberRule& rule);

}  // namespace triax::grammar
