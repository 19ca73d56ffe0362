#include "triax/sampling/grammar/number_dfa.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace triax::grammar {
namespace {

constexpr std::uint64_t kMostMultiple = 10'000;

enum class Order : std::int8_t { less = -1, equal = 0, greater = 1 };

// |x| against a bound, digit by digit. JSON writes no leading zeros, so of two numbers the one with
// more digits before its point is larger, and of equally many the first other digit decides.
struct Comparison {
  bool active = false;
  bool upper = false;  // |x| <= bound (else >=)
  bool exclusive = false;
  std::string whole, fraction;
};

// A multiple: x = digits * 10^-places must be a multiple of `unit` * 10^-places.
struct Residue {
  std::uint64_t unit = 1;
  std::size_t places = 0;
};

enum class Phase : std::uint8_t { start, minus, zero, whole, point, fraction };

struct State {
  Phase phase = Phase::start;
  bool negative = false;
  std::size_t whole_digits = 0;     // so far, up to one more than any bound has
  std::size_t fraction_digits = 0;  // so far, up to what bounds and multiples look at
  std::array<Order, 2> order{Order::equal, Order::equal};
  std::vector<std::uint64_t> residues;

  auto key() const {
    return std::tie(phase, negative, whole_digits, fraction_digits, order[0], order[1], residues);
  }
  bool operator<(const State& other) const { return key() < other.key(); }
};

class Machine {
 public:
  explicit Machine(const NumberRule& rule) : rule_(rule) {
    for (const Decimal& m : rule.multiples) residues_.push_back(residue_of(m));
    for (const bool negative : {false, true}) set_bounds(negative);
    for (const auto& sign : comparisons_) {
      for (const Comparison& c : sign) {
        most_whole_ = std::max(most_whole_, c.whole.size() + 1);
        most_fraction_ = std::max(most_fraction_, c.fraction.size());
      }
    }
    for (const Residue& r : residues_) most_fraction_ = std::max(most_fraction_, r.places);
  }

  State start() const {
    State s;
    s.residues.assign(residues_.size(), 0);
    return s;
  }

  std::optional<State> step(const State& from, char c) const {
    State s = from;
    if (c == '-') {
      if (s.phase != Phase::start) return std::nullopt;
      s.phase = Phase::minus;
      s.negative = true;
      return possible_[1] ? std::optional(s) : std::nullopt;
    }
    if (s.phase == Phase::start && !possible_[0]) return std::nullopt;
    if (c == '.') return point(std::move(s));
    return digit(std::move(s), c);
  }

  bool accepts(const State& s) const {
    if (s.phase == Phase::start || s.phase == Phase::minus || s.phase == Phase::point) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      const Comparison& c = comparisons_[s.negative ? 1 : 0][i];
      if (!c.active) continue;
      Order order = s.phase == Phase::fraction ? s.order[i] : at_point(s, i);
      if (order == Order::equal && s.fraction_digits < c.fraction.size()) order = Order::less;
      if (order == Order::equal ? c.exclusive : (order == Order::greater) == c.upper) return false;
    }
    for (std::size_t i = 0; i < residues_.size(); ++i) {
      std::uint64_t rest = s.residues[i];
      for (std::size_t p = s.fraction_digits; p < residues_[i].places; ++p) {
        rest = rest * 10 % residues_[i].unit;
      }
      if (rest != 0) return false;
    }
    return true;
  }

 private:
  static Residue residue_of(const Decimal& m) {
    Residue r;
    const auto digits = static_cast<std::int64_t>(m.digits.size());
    r.places = static_cast<std::size_t>(std::max<std::int64_t>(0, digits - m.exponent));
    const std::string text = m.whole() + m.fraction();
    r.unit = 0;
    for (const char c : text) {
      r.unit = r.unit * 10 + static_cast<std::uint64_t>(c - '0');
      if (r.unit > kMostMultiple) {
        fail("multipleOf with more than {} steps is not supported; use a simpler one",
             kMostMultiple);
      }
    }
    return r;
  }

  // What the rule's bounds ask of |x| for one sign.
  void set_bounds(bool negative) {
    const std::size_t sign = negative ? 1 : 0;
    const auto add = [&](const std::optional<NumberBound>& bound, bool low) {
      if (!bound) return;
      Decimal b = bound->value;
      // For x = -|x|: x >= b is |x| <= -b.
      if (negative && !b.zero()) b.negative = !b.negative;
      const bool upper = low == negative;
      if (b.negative) {  // |x| <= b cannot be, |x| >= b always is
        if (upper) possible_[sign] = false;
        return;
      }
      Comparison& c = comparisons_[sign][low ? 0 : 1];
      c.active = true;
      c.upper = upper;
      c.exclusive = bound->exclusive;
      c.whole = b.whole();
      c.fraction = b.fraction();
    };
    add(rule_.low, true);
    add(rule_.high, false);
  }

  Order at_point(const State& s, std::size_t i) const {
    const Comparison& c = comparisons_[s.negative ? 1 : 0][i];
    if (s.whole_digits < c.whole.size()) return Order::less;
    if (s.whole_digits > c.whole.size()) return Order::greater;
    return s.order[i];
  }

  std::optional<State> point(State s) const {
    if (rule_.integer || (s.phase != Phase::zero && s.phase != Phase::whole)) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) s.order[i] = at_point(s, i);
    s.phase = Phase::point;
    s.whole_digits = 0;  // of no more interest
    return s;
  }

  std::optional<State> digit(State s, char c) const {
    const bool fraction = s.phase == Phase::point || s.phase == Phase::fraction;
    if (s.phase == Phase::zero) return std::nullopt;
    const std::size_t at = fraction ? s.fraction_digits : s.whole_digits;
    for (std::size_t i = 0; i < 2; ++i) {
      const Comparison& with = comparisons_[s.negative ? 1 : 0][i];
      if (!with.active || s.order[i] != Order::equal) continue;
      const std::string& digits = fraction ? with.fraction : with.whole;
      const char other = at < digits.size() ? digits[at] : fraction ? '0' : c;
      s.order[i] = c < other ? Order::less : c > other ? Order::greater : Order::equal;
    }
    for (std::size_t i = 0; i < residues_.size(); ++i) {
      const Residue& r = residues_[i];
      if (fraction && at >= r.places) {
        if (c != '0') return std::nullopt;
        continue;
      }
      s.residues[i] = (s.residues[i] * 10 + static_cast<std::uint64_t>(c - '0')) % r.unit;
    }
    if (fraction) {
      s.phase = Phase::fraction;
      s.fraction_digits = std::min(at + 1, most_fraction_);
    } else {
      s.phase = s.phase != Phase::whole && c == '0' ? Phase::zero : Phase::whole;
      s.whole_digits = std::min(at + 1, most_whole_);
    }
    return s;
  }

  const NumberRule& rule_;
  std::array<bool, 2> possible_{true, true};              // [negative]
  std::array<std::array<Comparison, 2>, 2> comparisons_;  // [negative][low, high]
  std::vector<Residue> residues_;
  std::size_t most_whole_ = 1, most_fraction_ = 0;
};

ByteDfa free_number(bool integer, Budget& budget) {
  ByteDfa dfa;
  const auto state = [&](bool accept) { return dfa.add_state(accept, budget); };
  const std::uint16_t start = state(false), minus = state(false);
  const std::uint16_t zero = state(true), whole = state(true);
  dfa.set(start, '-', '-', minus);
  for (const std::uint16_t s : {start, minus}) {
    dfa.set(s, '0', '0', zero);
    dfa.set(s, '1', '9', whole);
  }
  dfa.set(whole, '0', '9', whole);
  if (!integer) {
    const std::uint16_t point = state(false), fraction = state(true);
    const std::uint16_t e = state(false), sign = state(false), power = state(true);
    for (const std::uint16_t s : {zero, whole}) dfa.set(s, '.', '.', point);
    for (const std::uint16_t s : {point, fraction}) dfa.set(s, '0', '9', fraction);
    for (const std::uint16_t s : {zero, whole, fraction}) {
      dfa.set(s, 'e', 'e', e);
      dfa.set(s, 'E', 'E', e);
    }
    dfa.set(e, '+', '+', sign);
    dfa.set(e, '-', '-', sign);
    for (const std::uint16_t s : {e, sign, power}) dfa.set(s, '0', '9', power);
  }
  dfa.finish();
  return dfa;
}

}  // namespace

ByteDfa number_dfa(const NumberRule& rule, Budget& budget) {
  if (rule.free()) return free_number(rule.integer, budget);
  const Machine machine(rule);
  ByteDfa dfa;
  std::map<State, std::uint16_t> names;
  std::vector<State> states;
  const auto name = [&](State s) {
    const auto [at, added] = names.try_emplace(s, static_cast<std::uint16_t>(states.size()));
    if (added) {
      budget.use(2 * sizeof(State) + 64);
      dfa.add_state(machine.accepts(s), budget);
      states.push_back(std::move(s));
    }
    return at->second;
  };
  name(machine.start());
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (const char c : std::string_view("-.0123456789")) {
      const State from = states[i];
      if (std::optional<State> to = machine.step(from, c)) {
        const std::uint16_t target = name(std::move(*to));
        dfa.set(static_cast<std::uint16_t>(i), static_cast<std::uint8_t>(c),
                static_cast<std::uint8_t>(c), target);
      }
    }
  }
  dfa.finish();
  return dfa;
}

bool keeps(const Decimal& value, const NumberRule& rule) {
  if (rule.integer && !value.integer()) return false;
  if (rule.low) {
    const int order = compare(value, rule.low->value);
    if (order < 0 || (order == 0 && rule.low->exclusive)) return false;
  }
  if (rule.high) {
    const int order = compare(value, rule.high->value);
    if (order > 0 || (order == 0 && rule.high->exclusive)) return false;
  }
  if (rule.multiples.empty()) return true;
  NumberRule multiples;
  multiples.multiples = rule.multiples;
  const Machine machine(multiples);
  State s = machine.start();
  std::string text = value.whole();
  if (const std::string fraction = value.fraction(); !fraction.empty()) text += "." + fraction;
  for (const char c : text) {
    std::optional<State> to = machine.step(s, c);
    if (!to) return false;
    s = std::move(*to);
  }
  return machine.accepts(s);
}

}  // namespace triax::grammar
