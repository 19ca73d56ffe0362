#include "triax/sampling/grammar/regex.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "triax/core/error.h"
#include "triax/tokenizer/utf8.h"

namespace triax::grammar {
namespace {

constexpr std::size_t kDepth = 100;            // of groups
constexpr std::uint32_t kMostTimes = 100'000;  // of a repetition

const CharSet& digits() {
  static const CharSet set{{'0', '9'}};
  return set;
}
const CharSet& word() {
  static const CharSet set{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return set;
}
// ECMAScript's WhiteSpace and LineTerminator.
const CharSet& space() {
  static const CharSet set{{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                           {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                           {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return set;
}
const CharSet& line_ends() {
  static const CharSet set{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return set;
}

// A part of a pattern; children by index.
struct Part {
  enum class Kind : std::uint8_t { chars, sequence, choice, repeat, at_start, at_end };
  Kind kind = Kind::sequence;
  CharSet set;
  std::vector<std::uint32_t> children;
  std::uint32_t least = 1;
  std::optional<std::uint32_t> most;
};

class Parser {
 public:
  Parser(std::string_view pattern, Budget& budget) : text_(pattern), budget_(budget) {}

  std::uint32_t parse() {
    const std::uint32_t root = choice(0);
    if (at_ < text_.size()) refuse("a closing parenthesis without an opening one");
    return root;
  }
  const std::vector<Part>& parts() const { return parts_; }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail("pattern {}: {} is not supported (byte {}); write a regular expression without it",
         in_quotes(text_), what, at_);
  }
  bool more() const { return at_ < text_.size(); }
  bool take(char c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  char32_t code_point() {
    const Utf8Step step = utf8_decode_valid(text_, at_);
    at_ += step.length;
    return step.code_point;
  }
  std::uint32_t add(Part part) {
    budget_.use(sizeof(Part));
    parts_.push_back(std::move(part));
    return static_cast<std::uint32_t>(parts_.size() - 1);
  }
  std::uint32_t add_chars(CharSet set) {
    Part part;
    part.kind = Part::Kind::chars;
    part.set = std::move(set);
    return add(std::move(part));
  }

  std::uint32_t choice(std::size_t depth) {
    if (depth > kDepth) refuse("nesting this deep");
    Part out;
    out.kind = Part::Kind::choice;
    do {
      Part line;
      while (more() && text_[at_] != '|' && text_[at_] != ')') {
        line.children.push_back(quantified(depth));
      }
      out.children.push_back(add(std::move(line)));
    } while (take('|'));
    return add(std::move(out));
  }

  std::uint32_t quantified(std::size_t depth) {
    const std::uint32_t inner = atom(depth);
    std::uint32_t least = 1;
    std::optional<std::uint32_t> most = 1;
    if (take('*')) {
      least = 0, most.reset();
    } else if (take('+')) {
      most.reset();
    } else if (take('?')) {
      least = 0;
    } else if (!braces(least, most)) {
      return inner;
    }
    take('?');  // lazy: the same language
    if (more() && (text_[at_] == '*' || text_[at_] == '+')) refuse("a quantifier of a quantifier");
    Part out;
    out.kind = Part::Kind::repeat;
    out.children = {inner};
    out.least = least;
    out.most = most;
    return add(std::move(out));
  }

  // {m}, {m,} or {m,n}; anything else after a brace is the brace itself.
  bool braces(std::uint32_t& least, std::optional<std::uint32_t>& most) {
    const std::size_t start = at_;
    if (!take('{')) return false;
    std::optional<std::uint32_t> second;
    const std::optional<std::uint32_t> first = number();
    bool comma = false;
    if (first && take(',')) {
      comma = true;
      second = number();
    }
    if (!first || !take('}')) {
      at_ = start;
      return false;
    }
    least = *first;
    most = comma ? second : first;
    if (most && *most < least) refuse("a repetition with a maximum below its minimum");
    return true;
  }
  std::optional<std::uint32_t> number() {
    if (!more() || text_[at_] < '0' || text_[at_] > '9') return std::nullopt;
    std::uint32_t n = 0;
    while (more() && text_[at_] >= '0' && text_[at_] <= '9') {
      n = n * 10 + static_cast<std::uint32_t>(text_[at_++] - '0');
      if (n > kMostTimes) refuse("a repetition of more than 100000 times");
    }
    return n;
  }

  std::uint32_t atom(std::size_t depth) {
    const char c = text_[at_];
    if (c == '(') return group(depth);
    if (c == '[') return add_chars(char_class());
    if (c == '*' || c == '+' || c == '?') refuse("a quantifier with nothing before it");
    if (c == '^' || c == '$') {
      ++at_;
      Part part;
      part.kind = c == '^' ? Part::Kind::at_start : Part::Kind::at_end;
      return add(std::move(part));
    }
    if (c == '.') {
      ++at_;
      return add_chars(line_ends().complement());
    }
    if (c == '\\') {
      ++at_;
      return add_chars(escape(false));
    }
    const char32_t cp = code_point();
    return add_chars({{cp, cp}});
  }

  std::uint32_t group(std::size_t depth) {
    ++at_;
    if (take('?')) {
      if (!take(':')) {
        const bool around = more() && (text_[at_] == '=' || text_[at_] == '!');
        refuse(around ? "look-ahead" : "a group of this kind");
      }
    }
    const std::uint32_t inner = choice(depth + 1);
    if (!take(')')) refuse("an open parenthesis without its end");
    return inner;
  }

  // After the backslash.
  CharSet escape(bool in_class) {
    if (!more()) refuse("a backslash at the end");
    const char32_t c = code_point();
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return digits().complement();
      case 'w':
        return word();
      case 'W':
        return word().complement();
      case 's':
        return space();
      case 'S':
        return space().complement();
      case 'b':
        if (!in_class) refuse("a word boundary (\\b)");
        return {{8, 8}};
      case 'B':
        refuse("a word boundary (\\B)");
      case 'p':
      case 'P':
        refuse("a Unicode property (\\p)");
      case 'k':
        refuse("a back reference");
      default:
        break;
    }
    if (c >= '1' && c <= '9') refuse("a back reference");
    const char32_t value = escaped_char(c);
    return {{value, value}};
  }

  char32_t escaped_char(char32_t c) {
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case '0':
        return 0;
      case 'x':
        return hex(2);
      case 'u':
        return unicode();
      case 'c':
        if (more() && ((text_[at_] | 0x20) >= 'a' && (text_[at_] | 0x20) <= 'z')) {
          return static_cast<char32_t>(text_[at_++] & 0x1F);
        }
        refuse("\\c without a letter");
      default:
        if (word().contains(c)) refuse("an escape of this letter");
        return c;
    }
  }
  char32_t unicode() {
    if (take('{')) {
      char32_t value = 0;
      while (more() && text_[at_] != '}') {
        value = value * 16 + digit();
        if (value >= kCharEnd) refuse("a character beyond U+10FFFF");
      }
      if (!take('}')) refuse("\\u{ without its end");
      return scalar(value);
    }
    const char32_t first = hex(4);
    if (first < 0xD800 || first > 0xDBFF) return scalar(first);
    if (!take('\\') || !take('u')) refuse("a lone surrogate");
    const char32_t second = hex(4);
    if (second < 0xDC00 || second > 0xDFFF) refuse("a lone surrogate");
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }
  char32_t scalar(char32_t value) const {
    if (value >= kSurrogates && value < kSurrogatesEnd) refuse("a lone surrogate");
    return value;
  }
  char32_t hex(int count) {
    char32_t value = 0;
    for (int i = 0; i < count; ++i) value = value * 16 + digit();
    return value;
  }
  char32_t digit() {
    if (!more()) refuse("an escape without its digits");
    const char c = text_[at_++];
    if (c >= '0' && c <= '9') return static_cast<char32_t>(c - '0');
    const char low = static_cast<char>(c | 0x20);
    if (low < 'a' || low > 'f') refuse("an escape without its digits");
    return static_cast<char32_t>(low - 'a' + 10);
  }

  CharSet char_class() {
    ++at_;
    const bool negated = take('^');
    CharSet out;
    while (true) {
      if (!more()) refuse("a character class without its end");
      if (take(']')) break;
      const CharSet first = class_atom();
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        const CharSet last = class_atom();
        if (!single(first) || !single(last)) refuse("a range between classes");
        const char32_t from = first.ranges()[0].first, to = last.ranges()[0].first;
        if (from > to) refuse("a range that ends before it starts");
        out.add(from, to);
      } else {
        out.add(first);
      }
      budget_.tick();
    }
    return negated ? out.complement() : out;
  }
  static bool single(const CharSet& set) {
    return set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].second;
  }
  CharSet class_atom() {
    if (!more()) refuse("a character class without its end");
    if (take('\\')) return escape(true);
    const char32_t c = code_point();
    return {{c, c}};
  }

  std::string_view text_;
  Budget& budget_;
  std::size_t at_ = 0;
  std::vector<Part> parts_;
};

// Thompson's construction.
class Builder {
 public:
  Builder(const std::vector<Part>& parts, CharNfa& nfa, Budget& budget)
      : parts_(parts), nfa_(nfa), budget_(budget) {}

  std::uint32_t state() {
    budget_.use(sizeof(CharNfa::State) + 32);
    nfa_.states.emplace_back();
    return static_cast<std::uint32_t>(nfa_.states.size() - 1);
  }
  void jump(std::uint32_t from, std::uint32_t to, CharNfa::Jump when = CharNfa::Jump::always) {
    nfa_.states[from].jumps.emplace_back(when, to);
  }
  void chars(std::uint32_t from, CharSet set, std::uint32_t to) {
    const auto at = std::find_if(nfa_.sets.begin(), nfa_.sets.end(), [&](const CharSet& s) {
      return std::equal(s.ranges().begin(), s.ranges().end(), set.ranges().begin(),
                        set.ranges().end());
    });
    const auto index = static_cast<std::uint32_t>(at - nfa_.sets.begin());
    if (at == nfa_.sets.end()) nfa_.sets.push_back(std::move(set));
    nfa_.states[from].chars.emplace_back(index, to);
  }

  // The state after the part, entered at `from`.
  std::uint32_t build(std::uint32_t index, std::uint32_t from) {
    const Part& part = parts_[index];
    switch (part.kind) {
      case Part::Kind::chars: {
        const std::uint32_t to = state();
        chars(from, part.set, to);
        return to;
      }
      case Part::Kind::sequence:
        for (const std::uint32_t child : part.children) from = build(child, from);
        return from;
      case Part::Kind::choice: {
        if (part.children.size() == 1) return build(part.children[0], from);
        const std::uint32_t to = state();
        for (const std::uint32_t child : part.children) {
          const std::uint32_t first = state();
          jump(from, first);
          jump(build(child, first), to);
        }
        return to;
      }
      case Part::Kind::repeat:
        return repeat(part, from);
      case Part::Kind::at_start:
      case Part::Kind::at_end: {
        const std::uint32_t to = state();
        jump(from, to,
             part.kind == Part::Kind::at_start ? CharNfa::Jump::at_start : CharNfa::Jump::at_end);
        return to;
      }
    }
    return from;
  }

 private:
  std::uint32_t repeat(const Part& part, std::uint32_t from) {
    for (std::uint32_t i = 0; i < part.least; ++i) from = build(part.children[0], from);
    if (!part.most) {
      const std::uint32_t loop = state();
      jump(from, loop);
      jump(build(part.children[0], loop), loop);
      return loop;
    }
    const std::uint32_t end = state();
    for (std::uint32_t i = part.least; i < *part.most; ++i) {
      jump(from, end);
      const std::uint32_t first = state();
      jump(from, first);
      from = build(part.children[0], first);
    }
    jump(from, end);
    return end;
  }

  const std::vector<Part>& parts_;
  CharNfa& nfa_;
  Budget& budget_;
};

}  // namespace

CharNfa parse_regex(std::string_view pattern, Budget& budget) {
  Parser parser(pattern, budget);
  const std::uint32_t root = parser.parse();
  CharNfa nfa;
  Builder builder(parser.parts(), nfa, budget);
  nfa.start = builder.state();
  builder.chars(nfa.start, CharSet::all(), nfa.start);  // found anywhere
  const std::uint32_t first = builder.state();
  builder.jump(nfa.start, first);
  const std::uint32_t last = builder.build(root, first);
  nfa.accept = builder.state();
  builder.jump(last, nfa.accept);
  builder.chars(nfa.accept, CharSet::all(), nfa.accept);
  return nfa;
}

}  // namespace triax::grammar
