// Deterministic automata over bytes: the lexemes of a grammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triax/sampling/grammar/budget.h"

namespace triax::grammar {

// Every state can be reached and can reach an accepting one, unless the language is empty (then
// there is one state, not accepting). States that lie between two characters of a string are
// boundaries: there, characters can be counted.
class ByteDfa {
 public:
  static constexpr std::uint16_t kDead = 0xFFFF;
  static constexpr std::size_t kMostStates = 0xFFFF;

  std::size_t states() const { return flags_.size(); }
  std::uint16_t next(std::uint16_t state, std::uint8_t byte) const {
    return next_[std::size_t{state} << 8 | byte];
  }
  bool accepts(std::uint16_t state) const { return (flags_[state] & kAccept) != 0; }
  bool boundary(std::uint16_t state) const { return (flags_[state] & kBoundary) != 0; }
  bool last(std::uint16_t state) const { return (flags_[state] & kLast) != 0; }  // no way on
  bool empty() const { return states() == 1 && last(0) && !accepts(0); }
  bool matches(std::string_view text) const;

  // Building: state 0 is the start. finish() drops what is of no use and must come last.
  std::uint16_t add_state(bool accept, Budget& budget);
  void set(std::uint16_t state, std::uint8_t first, std::uint8_t last, std::uint16_t to);
  void set_accept(std::uint16_t state) { flags_[state] |= kAccept; }
  void set_boundary(std::uint16_t state) { flags_[state] |= kBoundary; }
  void finish();

 private:
  enum Flag : std::uint8_t { kAccept = 1, kBoundary = 2, kLast = 4 };

  std::vector<std::uint16_t> next_;  // [state, byte]
  std::vector<std::uint8_t> flags_;  // [state]
};

// A nondeterministic automaton over bytes, to be made deterministic.
class ByteNfa {
 public:
  explicit ByteNfa(Budget& budget) : budget_(&budget) {}

  std::uint32_t add_state();
  void edge(std::uint32_t from, std::uint8_t first, std::uint8_t last, std::uint32_t to);
  void jump(std::uint32_t from, std::uint32_t to);  // without a byte
  void accept(std::uint32_t state) { states_[state].accept = true; }
  // The bytes of `text`, one after the other, to a new state. With `gaps`, a zero byte is an
  // optional space.
  std::uint32_t chain(std::uint32_t from, std::string_view text, bool gaps);

  ByteDfa determinize(std::uint32_t start);

 private:
  struct Edge {
    std::uint8_t first, last;
    std::uint32_t to;
  };
  struct State {
    std::vector<Edge> edges;
    std::vector<std::uint32_t> jumps;
    bool accept = false;
  };
  using Set = std::vector<std::uint32_t>;
  Set closed(Set set) const;

  Budget* budget_;
  std::vector<State> states_;
};

// The texts, exactly; with `gaps`, a zero byte is an optional space (json_text()).
ByteDfa literals_dfa(std::span<const std::string> texts, bool gaps, Budget& budget);

// A JSON string with its quotes: well-formed UTF-8, every escape, surrogates in pairs only.
ByteDfa json_string_dfa(Budget& budget);
// The same in the one spelling of json_string().
ByteDfa json_key_dfa(Budget& budget);
// Well-formed UTF-8.
ByteDfa raw_text_dfa(Budget& budget);
// Well-formed UTF-8 as an attribute writes it: & is &amp; and " is &quot;.
ByteDfa attribute_dfa(Budget& budget);
// Any bytes.
ByteDfa any_bytes_dfa(Budget& budget);

// `text` as an attribute writes it.
std::string attribute_text(std::string_view text);

}  // namespace triax::grammar
