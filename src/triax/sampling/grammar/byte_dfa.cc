#include "triax/sampling/grammar/byte_dfa.h"

#include <algorithm>
#include <array>

namespace triax::grammar {

bool ByteDfa::matches(std::string_view text) const {
  std::uint16_t state = 0;
  for (const char c : text) {
    state = next(state, static_cast<std::uint8_t>(c));
    if (state == kDead) return false;
  }
  return accepts(state);
}

std::uint16_t ByteDfa::add_state(bool accept, Budget& budget) {
  if (states() >= kMostStates) {
    fail("the schema is too large: a pattern needs more than {} states; make it smaller or looser",
         kMostStates);
  }
  budget.use(256 * sizeof(std::uint16_t) + 1);
  next_.insert(next_.end(), 256, kDead);
  flags_.push_back(accept ? kAccept : 0);
  return static_cast<std::uint16_t>(states() - 1);
}

void ByteDfa::set(std::uint16_t state, std::uint8_t first, std::uint8_t last, std::uint16_t to) {
  for (std::size_t b = first; b <= last; ++b) next_[std::size_t{state} << 8 | b] = to;
}

void ByteDfa::finish() {
  const std::size_t count = states();
  // Backwards from the accepting states: what can still end well.
  std::vector<std::vector<std::uint16_t>> from(count);
  for (std::size_t s = 0; s < count; ++s) {
    std::uint16_t seen = kDead;  // equal neighbours are common
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint16_t to = next_[s << 8 | b];
      if (to != kDead && to != seen) from[to].push_back(static_cast<std::uint16_t>(s));
      seen = to;
    }
  }
  std::vector<bool> live(count, false);
  std::vector<std::uint16_t> todo;
  for (std::size_t s = 0; s < count; ++s) {
    if ((flags_[s] & kAccept) != 0) live[s] = true, todo.push_back(static_cast<std::uint16_t>(s));
  }
  while (!todo.empty()) {
    const std::uint16_t s = todo.back();
    todo.pop_back();
    for (const std::uint16_t p : from[s]) {
      if (!live[p]) live[p] = true, todo.push_back(p);
    }
  }
  // Forwards from the start, numbering anew.
  std::vector<std::uint16_t> name(count, kDead), order{0};
  name[0] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint16_t to = next_[std::size_t{order[i]} << 8 | b];
      if (to == kDead || !live[to] || name[to] != kDead) continue;
      name[to] = static_cast<std::uint16_t>(order.size());
      order.push_back(to);
    }
  }
  std::vector<std::uint16_t> next(order.size() << 8, kDead);
  std::vector<std::uint8_t> flags(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    bool last = true;
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint16_t to = next_[std::size_t{order[i]} << 8 | b];
      if (to == kDead || !live[to]) continue;
      next[i << 8 | b] = name[to];
      last = false;
    }
    flags[i] = static_cast<std::uint8_t>(flags_[order[i]] | (last ? kLast : 0));
  }
  next_ = std::move(next);
  flags_ = std::move(flags);
}

std::uint32_t ByteNfa::add_state() {
  budget_->use(sizeof(State));
  states_.emplace_back();
  return static_cast<std::uint32_t>(states_.size() - 1);
}

void ByteNfa::edge(std::uint32_t from, std::uint8_t first, std::uint8_t last, std::uint32_t to) {
  budget_->use(sizeof(Edge));
  states_[from].edges.push_back({first, last, to});
}

void ByteNfa::jump(std::uint32_t from, std::uint32_t to) {
  budget_->use(sizeof(std::uint32_t));
  states_[from].jumps.push_back(to);
}

std::uint32_t ByteNfa::chain(std::uint32_t from, std::string_view text, bool gaps) {
  for (const char c : text) {
    const std::uint32_t to = add_state();
    if (gaps && c == '\0') {
      jump(from, to);
      edge(from, ' ', ' ', to);
    } else {
      edge(from, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), to);
    }
    from = to;
  }
  return from;
}

ByteNfa::Set ByteNfa::closed(Set set) const {
  for (std::size_t i = 0; i < set.size(); ++i) {
    const Set jumps = states_[set[i]].jumps;
    for (const std::uint32_t to : jumps) {
      if (std::find(set.begin(), set.end(), to) == set.end()) set.push_back(to);
    }
  }
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  return set;
}

ByteDfa ByteNfa::determinize(std::uint32_t start) {
  ByteDfa dfa;
  std::map<Set, std::uint16_t> names;
  std::vector<Set> sets;
  const auto name = [&](Set set) {
    const auto [at, added] = names.try_emplace(set, static_cast<std::uint16_t>(sets.size()));
    if (!added) return at->second;
    budget_->use(2 * set.size() * sizeof(std::uint32_t) + 64);
    const bool accept =
        std::any_of(set.begin(), set.end(), [&](std::uint32_t s) { return states_[s].accept; });
    dfa.add_state(accept, *budget_);
    sets.push_back(std::move(set));
    return at->second;
  };
  name(closed({start}));
  for (std::size_t i = 0; i < sets.size(); ++i) {
    // The bytes fall into intervals in which the same edges apply.
    std::array<bool, 257> cut{};
    cut[0] = cut[256] = true;
    for (const std::uint32_t s : sets[i]) {
      for (const Edge& e : states_[s].edges) {
        cut[e.first] = true;
        cut[std::size_t{e.last} + 1] = true;
      }
    }
    const Set from = sets[i];
    for (std::size_t first = 0; first < 256;) {
      std::size_t end = first + 1;
      while (!cut[end]) ++end;
      Set to;
      for (const std::uint32_t s : from) {
        for (const Edge& e : states_[s].edges) {
          if (e.first <= first && first <= e.last) to.push_back(e.to);
        }
      }
      budget_->tick();
      if (!to.empty()) {
        const std::uint16_t target = name(closed(std::move(to)));
        dfa.set(static_cast<std::uint16_t>(i), static_cast<std::uint8_t>(first),
                static_cast<std::uint8_t>(end - 1), target);
      }
      first = end;
    }
  }
  dfa.finish();
  return dfa;
}

ByteDfa literals_dfa(std::span<const std::string> texts, bool gaps, Budget& budget) {
  ByteNfa nfa(budget);
  const std::uint32_t start = nfa.add_state();
  for (const std::string& text : texts) nfa.accept(nfa.chain(start, text, gaps));
  return nfa.determinize(start);
}

namespace {

// Adds the ways of one well-formed character beyond ASCII from `body` back to `body` (table 3-7 of
// the Unicode standard).
void add_utf8(ByteDfa& dfa, std::uint16_t body, Budget& budget) {
  const auto state = [&] { return dfa.add_state(false, budget); };
  const std::uint16_t one = state(), two = state(), three = state();
  const std::uint16_t e0 = state(), ed = state(), f0 = state(), f4 = state();
  dfa.set(one, 0x80, 0xBF, body);
  dfa.set(two, 0x80, 0xBF, one);
  dfa.set(three, 0x80, 0xBF, two);
  dfa.set(e0, 0xA0, 0xBF, one);
  dfa.set(ed, 0x80, 0x9F, one);
  dfa.set(f0, 0x90, 0xBF, two);
  dfa.set(f4, 0x80, 0x8F, two);
  dfa.set(body, 0xC2, 0xDF, one);
  dfa.set(body, 0xE1, 0xEF, two);
  dfa.set(body, 0xE0, 0xE0, e0);
  dfa.set(body, 0xED, 0xED, ed);
  dfa.set(body, 0xF1, 0xF3, three);
  dfa.set(body, 0xF0, 0xF0, f0);
  dfa.set(body, 0xF4, 0xF4, f4);
}

void set_each(ByteDfa& dfa, std::uint16_t from, std::string_view bytes, std::uint16_t to) {
  for (const char c : bytes) {
    dfa.set(from, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), to);
  }
}

constexpr std::string_view kHex = "0123456789abcdefABCDEF";

// Start, body and end of a JSON string, all but its escapes; gives the state after a backslash.
struct StringStates {
  std::uint16_t body, escape;
};
StringStates json_string_frame(ByteDfa& dfa, Budget& budget) {
  const std::uint16_t start = dfa.add_state(false, budget);
  const std::uint16_t body = dfa.add_state(false, budget);
  const std::uint16_t end = dfa.add_state(true, budget);
  const std::uint16_t escape = dfa.add_state(false, budget);
  dfa.set_boundary(body);
  dfa.set(start, '"', '"', body);
  dfa.set(body, 0x20, 0x7F, body);
  dfa.set(body, '"', '"', end);
  dfa.set(body, '\\', '\\', escape);
  add_utf8(dfa, body, budget);
  return {body, escape};
}

}  // namespace

ByteDfa json_string_dfa(Budget& budget) {
  ByteDfa dfa;
  const auto [body, escape] = json_string_frame(dfa, budget);
  const auto state = [&] { return dfa.add_state(false, budget); };
  set_each(dfa, escape, "\"\\/bfnrt", body);
  // \u and four hexadecimal digits that are no surrogate
  const std::uint16_t u = state(), d = state(), h2 = state(), h3 = state(), h4 = state();
  set_each(dfa, escape, "u", u);
  set_each(dfa, u, "0123456789abcefABCEF", h2);
  set_each(dfa, u, "dD", d);
  set_each(dfa, d, "01234567", h3);
  set_each(dfa, h2, kHex, h3);
  set_each(dfa, h3, kHex, h4);
  set_each(dfa, h4, kHex, body);
  // \uD8XX\uDCXX
  const std::uint16_t s2 = state(), s3 = state(), s4 = state(), s5 = state(), s6 = state(),
                      s7 = state();
  set_each(dfa, d, "89abAB", s2);
  set_each(dfa, s2, kHex, s3);
  set_each(dfa, s3, kHex, s4);
  set_each(dfa, s4, "\\", s5);
  set_each(dfa, s5, "u", s6);
  set_each(dfa, s6, "dD", s7);
  set_each(dfa, s7, "cdefCDEF", h3);
  dfa.finish();
  return dfa;
}

ByteDfa json_key_dfa(Budget& budget) {
  ByteDfa dfa;
  const auto [body, escape] = json_string_frame(dfa, budget);
  const auto state = [&] { return dfa.add_state(false, budget); };
  const std::uint16_t u = state(), z = state(), zz = state(), low = state(), high = state();
  set_each(dfa, escape, "\"\\bfnrt", body);
  set_each(dfa, escape, "u", u);
  set_each(dfa, u, "0", z);
  set_each(dfa, z, "0", zz);
  set_each(dfa, zz, "0", low);
  set_each(dfa, zz, "1", high);
  set_each(dfa, low, "01234567bef", body);  // 8, 9, a, c, d have short escapes
  set_each(dfa, high, "0123456789abcdef", body);
  dfa.finish();
  return dfa;
}

ByteDfa raw_text_dfa(Budget& budget) {
  ByteDfa dfa;
  const std::uint16_t body = dfa.add_state(true, budget);
  dfa.set_boundary(body);
  dfa.set(body, 0x00, 0x7F, body);
  add_utf8(dfa, body, budget);
  dfa.finish();
  return dfa;
}

ByteDfa attribute_dfa(Budget& budget) {
  ByteDfa dfa;
  const std::uint16_t body = dfa.add_state(true, budget);
  dfa.set_boundary(body);
  dfa.set(body, 0x00, 0x7F, body);
  add_utf8(dfa, body, budget);
  dfa.set(body, '"', '"', ByteDfa::kDead);
  const std::uint16_t amp = dfa.add_state(false, budget);
  dfa.set(body, '&', '&', amp);
  for (const std::string_view rest : {"amp;", "quot;"}) {
    std::uint16_t from = amp;
    for (const char c : rest.substr(0, rest.size() - 1)) {
      const std::uint16_t to = dfa.add_state(false, budget);
      set_each(dfa, from, {&c, 1}, to);
      from = to;
    }
    set_each(dfa, from, ";", body);
  }
  dfa.finish();
  return dfa;
}

ByteDfa any_bytes_dfa(Budget& budget) {
  ByteDfa dfa;
  dfa.set(dfa.add_state(true, budget), 0x00, 0xFF, 0);
  dfa.finish();
  return dfa;
}

std::string attribute_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace triax::grammar
