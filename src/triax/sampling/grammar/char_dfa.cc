#include "triax/sampling/grammar/char_dfa.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "triax/sampling/grammar/value.h"
#include "triax/tokenizer/utf8.h"

namespace triax::grammar {
namespace {

std::vector<char32_t> sorted_bounds(std::vector<char32_t> bounds) {
  for (const char32_t b : {char32_t{0}, kSurrogates, kSurrogatesEnd, kCharEnd}) bounds.push_back(b);
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  return bounds;
}

using States = std::vector<std::uint32_t>;

// All states reached from `set` by jumps that hold here.
class Closure {
 public:
  explicit Closure(const CharNfa& nfa) : nfa_(nfa), mark_(nfa.states.size(), 0) {}

  States operator()(States set, bool at_start, bool at_end) {
    ++round_;
    for (const std::uint32_t s : set) mark_[s] = round_;
    for (std::size_t i = 0; i < set.size(); ++i) {
      for (const auto& [when, to] : nfa_.states[set[i]].jumps) {
        if (when == CharNfa::Jump::at_start && !at_start) continue;
        if (when == CharNfa::Jump::at_end && !at_end) continue;
        if (mark_[to] == round_) continue;
        mark_[to] = round_;
        set.push_back(to);
      }
    }
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    return set;
  }

 private:
  const CharNfa& nfa_;
  std::vector<std::uint32_t> mark_;
  std::uint32_t round_ = 0;
};

}  // namespace

std::uint32_t CharDfa::add_state(bool accept, Budget& budget) {
  budget.use(classes() * sizeof(std::uint32_t) + 1);
  next_.insert(next_.end(), classes(), kDead);
  accept_.push_back(accept);
  return static_cast<std::uint32_t>(accept_.size() - 1);
}

CharDfa CharDfa::from(const CharNfa& nfa, Budget& budget) {
  CharDfa dfa;
  std::vector<char32_t> bounds;
  for (const CharSet& set : nfa.sets) {
    for (const auto& [first, last] : set.ranges()) {
      bounds.push_back(first);
      bounds.push_back(last + 1);
    }
  }
  dfa.bounds_ = sorted_bounds(std::move(bounds));
  std::vector<std::vector<std::uint32_t>> of_set(nfa.sets.size());  // classes
  for (std::size_t c = 0; c < dfa.classes(); ++c) {
    for (std::size_t s = 0; s < nfa.sets.size(); ++s) {
      if (nfa.sets[s].contains(dfa.bounds_[c])) of_set[s].push_back(static_cast<std::uint32_t>(c));
    }
  }

  Closure closure(nfa);
  std::map<States, std::uint32_t> names;
  std::vector<States> sets;
  const auto add = [&](States set, bool at_start) {
    budget.use(2 * set.size() * sizeof(std::uint32_t) + 64);
    const States end = closure(set, at_start, true);
    sets.push_back(std::move(set));
    return dfa.add_state(std::binary_search(end.begin(), end.end(), nfa.accept), budget);
  };
  add(closure({nfa.start}, true, false),
      true);  // the start is a state of its own: only there ^ holds
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::vector<States> to(dfa.classes());
    for (const std::uint32_t s : sets[i]) {
      for (const auto& [set, target] : nfa.states[s].chars) {
        for (const std::uint32_t c : of_set[set]) to[c].push_back(target);
      }
    }
    for (std::size_t c = 0; c < to.size(); ++c) {
      budget.tick();
      if (to[c].empty()) continue;
      States set = closure(std::move(to[c]), false, false);
      const auto at = names.find(set);
      std::uint32_t target;
      if (at != names.end()) {
        target = at->second;
      } else {
        target = add(set, false);
        names.emplace(std::move(set), target);
      }
      dfa.next_[i * dfa.classes() + c] = target;
    }
  }
  dfa.minimize(budget);
  return dfa;
}

CharDfa CharDfa::regex(std::string_view pattern, Budget& budget) {
  return from(parse_regex(pattern, budget), budget);
}

CharDfa CharDfa::lengths(std::size_t least, std::size_t most, Budget& budget) {
  CharDfa dfa;
  dfa.bounds_ = sorted_bounds({});
  const std::size_t last = most == kNoLimit ? least : most;
  budget.use(checked_mul(last, 4 * sizeof(std::uint32_t)));  // refuse the impossible at once
  for (std::size_t i = 0; i <= last; ++i) {
    const std::uint32_t state = dfa.add_state(i >= least, budget);
    const std::uint32_t to = i < last ? state + 1 : most == kNoLimit ? state : kDead;
    for (std::size_t c = 0; c < dfa.classes(); ++c) {
      if (dfa.bounds_[c] != kSurrogates) dfa.next_[state * dfa.classes() + c] = to;
    }
  }
  dfa.minimize(budget);
  return dfa;
}

CharDfa CharDfa::both(const CharDfa& other, Budget& budget) const {
  CharDfa out;
  std::vector<char32_t> bounds = bounds_;
  bounds.insert(bounds.end(), other.bounds_.begin(), other.bounds_.end());
  out.bounds_ = sorted_bounds(std::move(bounds));
  std::vector<std::pair<std::size_t, std::size_t>> cls;  // of this and the other
  for (std::size_t c = 0, a = 0, b = 0; c < out.classes(); ++c) {
    while (bounds_[a + 1] <= out.bounds_[c]) ++a;
    while (other.bounds_[b + 1] <= out.bounds_[c]) ++b;
    cls.emplace_back(a, b);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> names;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  const auto name = [&](std::uint32_t a, std::uint32_t b) {
    const auto [at, added] = names.try_emplace({a, b}, static_cast<std::uint32_t>(pairs.size()));
    if (added) {
      budget.use(96);
      pairs.emplace_back(a, b);
      out.add_state(accept_[a] && other.accept_[b], budget);
    }
    return at->second;
  };
  name(0, 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [a, b] = pairs[i];
    for (std::size_t c = 0; c < out.classes(); ++c) {
      const std::uint32_t na = next(a, cls[c].first), nb = other.next(b, cls[c].second);
      if (na == kDead || nb == kDead) continue;
      const std::uint32_t target = name(na, nb);
      out.next_[i * out.classes() + c] = target;
    }
  }
  out.minimize(budget);
  return out;
}

CharDfa CharDfa::complement(Budget& budget) const {
  CharDfa out = *this;
  const std::uint32_t sink = out.add_state(false, budget);
  for (std::size_t s = 0; s < out.accept_.size(); ++s) {
    out.accept_[s] = !out.accept_[s];
    for (std::size_t c = 0; c < classes(); ++c) {
      std::uint32_t& to = out.next_[s * classes() + c];
      if (to == kDead && bounds_[c] != kSurrogates) to = sink;
    }
  }
  out.minimize(budget);
  return out;
}

bool CharDfa::empty() const {  // only states of use are kept
  return std::none_of(accept_.begin(), accept_.end(), [](bool a) { return a; });
}

bool CharDfa::matches(std::string_view text) const {
  std::uint32_t state = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Step step = utf8_decode_valid(text, i);
    i += step.length;
    const auto at = std::upper_bound(bounds_.begin(), bounds_.end(), step.code_point);
    state = next(state, static_cast<std::size_t>(at - bounds_.begin()) - 1);
    if (state == kDead) return false;
  }
  return accept_[state];
}

// States that cannot be reached or cannot end well go; the start stays.
void CharDfa::drop_dead() {
  const std::size_t count = accept_.size(), width = classes();
  std::vector<std::vector<std::uint32_t>> from(count);
  for (std::size_t s = 0; s < count; ++s) {
    for (std::size_t c = 0; c < width; ++c) {
      if (next(s, c) != kDead) from[next(s, c)].push_back(static_cast<std::uint32_t>(s));
    }
  }
  std::vector<bool> live(count, false);
  States todo;
  for (std::size_t s = 0; s < count; ++s) {
    if (accept_[s]) live[s] = true, todo.push_back(static_cast<std::uint32_t>(s));
  }
  while (!todo.empty()) {
    const std::uint32_t s = todo.back();
    todo.pop_back();
    for (const std::uint32_t p : from[s]) {
      if (!live[p]) live[p] = true, todo.push_back(p);
    }
  }
  States name(count, kDead), order{0};
  name[0] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t c = 0; c < width; ++c) {
      const std::uint32_t to = next(order[i], c);
      if (to == kDead || !live[to] || name[to] != kDead) continue;
      name[to] = static_cast<std::uint32_t>(order.size());
      order.push_back(to);
    }
  }
  States kept(order.size() * width, kDead);
  std::vector<bool> accept(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    accept[i] = accept_[order[i]];
    for (std::size_t c = 0; c < width; ++c) {
      const std::uint32_t to = next(order[i], c);
      if (to != kDead && live[to]) kept[i * width + c] = name[to];
    }
  }
  next_ = std::move(kept);
  accept_ = std::move(accept);
}

// Moore's refinement, by hashing each state's block and the blocks it leads to.
void CharDfa::minimize(Budget& budget) {
  drop_dead();
  const std::size_t count = accept_.size(), width = classes();
  budget.use(count * (width + 2) * sizeof(std::uint32_t));
  States block(count);
  for (std::size_t s = 0; s < count; ++s) block[s] = accept_[s] ? 1 : 0;
  std::size_t blocks = 0;
  while (true) {
    std::map<States, std::uint32_t> names;
    States refined(count);
    for (std::size_t s = 0; s < count; ++s) {
      budget.tick();
      States key{block[s]};
      key.reserve(width + 1);
      for (std::size_t c = 0; c < width; ++c) {
        key.push_back(next(s, c) == kDead ? kDead : block[next(s, c)]);
      }
      refined[s] =
          names.try_emplace(std::move(key), static_cast<std::uint32_t>(names.size())).first->second;
    }
    block = std::move(refined);
    if (names.size() == blocks) break;
    blocks = names.size();
  }
  // Block numbers are in the order of their first states, so the start stays 0.
  States next_of(blocks * width, kDead);
  std::vector<bool> accept(blocks);
  for (std::size_t s = 0; s < count; ++s) {
    accept[block[s]] = accept_[s];
    for (std::size_t c = 0; c < width; ++c) {
      if (next(s, c) != kDead) next_of[block[s] * width + c] = block[next(s, c)];
    }
  }
  next_ = std::move(next_of);
  accept_ = std::move(accept);
}

namespace {

// Byte ranges of the UTF-8 of a range of characters, cut so that each cut is a product of ranges.
struct Utf8Cut {
  std::size_t length;
  std::array<std::uint8_t, 4> first, last;
};

std::size_t utf8_bytes(char32_t c, std::array<std::uint8_t, 4>& out) {
  std::string text;
  utf8_append(text, c);
  for (std::size_t i = 0; i < text.size() && i < out.size(); ++i)
    out[i] = static_cast<std::uint8_t>(text[i]);
  return text.size();
}

void cut_utf8(char32_t first, char32_t last, std::vector<Utf8Cut>& out) {
  for (const char32_t limit : {char32_t{0x7F}, char32_t{0x7FF}, char32_t{0xFFFF}}) {
    if (first <= limit && last > limit) {
      cut_utf8(first, limit, out);
      cut_utf8(limit + 1, last, out);
      return;
    }
  }
  // All of one length: cut where the last bytes do not run through.
  for (const int shift : {6, 12, 18}) {
    if (last < 0x80) break;
    const char32_t low = (char32_t{1} << shift) - 1;
    if ((first & ~low) == (last & ~low)) break;
    if ((first & low) != 0) {
      cut_utf8(first, first | low, out);
      cut_utf8((first | low) + 1, last, out);
      return;
    }
    if ((last & low) != low) {
      cut_utf8(first, (last & ~low) - 1, out);
      cut_utf8(last & ~low, last, out);
      return;
    }
  }
  Utf8Cut cut{};
  cut.length = utf8_bytes(first, cut.first);
  utf8_bytes(last, cut.last);
  out.push_back(cut);
}

// States within characters, shared between all that go on alike.
class CharWriter {
 public:
  explicit CharWriter(ByteNfa& nfa) : nfa_(nfa) {}

  void range(std::uint32_t from, char32_t first, char32_t last, std::uint32_t to) {
    std::vector<Utf8Cut> cuts;
    cut_utf8(first, last, cuts);
    for (const Utf8Cut& cut : cuts) {
      std::uint32_t target = to;
      for (std::size_t i = cut.length; i-- > 1;) target = tail(cut.first[i], cut.last[i], target);
      nfa_.edge(from, cut.first[0], cut.last[0], target);
    }
  }
  void text(std::uint32_t from, std::string_view bytes, std::uint32_t to) {
    std::uint32_t target = to;
    for (std::size_t i = bytes.size(); i-- > 1;) {
      const auto b = static_cast<std::uint8_t>(bytes[i]);
      target = tail(b, b, target);
    }
    const auto b = static_cast<std::uint8_t>(bytes[0]);
    nfa_.edge(from, b, b, target);
  }

 private:
  std::uint32_t tail(std::uint8_t first, std::uint8_t last, std::uint32_t to) {
    const auto [at, added] = tails_.try_emplace({first, last, to}, 0);
    if (added) {
      at->second = nfa_.add_state();
      nfa_.edge(at->second, first, last, to);
    }
    return at->second;
  }

  ByteNfa& nfa_;
  std::map<std::tuple<std::uint8_t, std::uint8_t, std::uint32_t>, std::uint32_t> tails_;
};

void write_json_range(CharWriter& out, std::uint32_t from, char32_t first, char32_t last,
                      std::uint32_t to) {
  char32_t plain = first;
  const auto flush = [&](char32_t before) {
    if (plain < before) out.range(from, plain, before - 1, to);
    plain = before + 1;
  };
  for (char32_t c = first; c <= std::min<char32_t>(last, '\\'); ++c) {
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    flush(c);
    const char byte = static_cast<char>(c);
    std::string quoted = json_string({&byte, 1});
    quoted = quoted.substr(1, quoted.size() - 2);
    out.text(from, quoted, to);
  }
  flush(last + 1);
}

}  // namespace

void CharDfa::write(ByteNfa& nfa, const std::vector<std::uint32_t>& names, bool json) const {
  CharWriter out(nfa);
  for (std::size_t s = 0; s < accept_.size(); ++s) {
    for (std::size_t c = 0; c < classes();) {
      const std::uint32_t to = next(s, c);
      std::size_t end = c + 1;  // neighbours that lead to the same state are one range
      while (end < classes() && next(s, end) == to) ++end;
      if (to != kDead) {
        if (json) {
          write_json_range(out, names[s], bounds_[c], bounds_[end] - 1, names[to]);
        } else {
          out.range(names[s], bounds_[c], bounds_[end] - 1, names[to]);
        }
      }
      c = end;
    }
  }
}

ByteDfa CharDfa::raw(Budget& budget) const {
  ByteNfa nfa(budget);
  std::vector<std::uint32_t> names;
  for (const bool accept : accept_) {
    names.push_back(nfa.add_state());
    if (accept) nfa.accept(names.back());
  }
  write(nfa, names, false);
  return nfa.determinize(names[0]);
}

ByteDfa CharDfa::json(Budget& budget) const {
  ByteNfa nfa(budget);
  const std::uint32_t start = nfa.add_state(), end = nfa.add_state();
  nfa.accept(end);
  std::vector<std::uint32_t> names;
  for (std::size_t s = 0; s < accept_.size(); ++s) names.push_back(nfa.add_state());
  nfa.edge(start, '"', '"', names[0]);
  for (std::size_t s = 0; s < accept_.size(); ++s) {
    if (accept_[s]) nfa.edge(names[s], '"', '"', end);
  }
  write(nfa, names, true);
  return nfa.determinize(start);
}

}  // namespace triax::grammar
