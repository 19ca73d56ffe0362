// The split scanner: each alternative of the pattern as one function over flags of code points.
#include "triax/tokenizer/split.h"

#include "triax/tokenizer/unicode_tables.h"
#include "triax/tokenizer/utf8.h"

namespace triax {
namespace {

constexpr std::size_t kNoMatch = static_cast<std::size_t>(-1);
constexpr unsigned kBothGroups = kCharUpperGroup | kCharLowerGroup;
constexpr unsigned kWordNumber = kCharLetter | kCharNumber;

// A code point's flags and length in bytes. Length 0, no flags: the end of the text.
struct Char {
  unsigned flags;
  unsigned length;
};

inline Char char_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {0, 0};
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {detail::kAsciiFlags[byte], 1};
  const Utf8Step step = utf8_decode_valid(text, at);
  return {char_flags_table(step.code_point), step.length};
}

// End of the longest run from `at` of characters with any of `flags`.
std::size_t run_end(std::string_view text, std::size_t at, unsigned flags) {
  for (Char c = char_at(text, at); c.flags & flags; c = char_at(text, at)) at += c.length;
  return at;
}

// U* L+ from `at`.
std::size_t match_lower_word(std::string_view text, std::size_t at) {
  // Where U* would have to give back characters, L+ starts at the last one that is in both groups,
  // and ends right after it: what follows it is not in L.
  std::size_t after_last_both = kNoMatch;
  Char c = char_at(text, at);
  for (; c.flags & kCharUpperGroup; c = char_at(text, at)) {
    at += c.length;
    if (c.flags & kCharLowerGroup) after_last_both = at;
  }
  if (c.flags & kCharLowerGroup) return run_end(text, at, kCharLowerGroup);
  return after_last_both;
}

// U+ L* from `at`.
std::size_t match_upper_word(std::string_view text, std::size_t at) {
  if (!(char_at(text, at).flags & kCharUpperGroup)) return kNoMatch;
  return run_end(text, run_end(text, at, kCharUpperGroup), kCharLowerGroup);
}

// `at`, or the end of the contraction that stands there.
std::size_t skip_contraction(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size() || text[at] != '\'') return at;
  const auto lower = [&](std::size_t i) {
    return i < text.size() ? static_cast<char>(text[i] | 0x20) : '\0';
  };
  const char first = lower(at + 1);
  const char second = lower(at + 2);
  switch (first) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 2;
    case 'r':
    case 'v':
      return second == 'e' ? at + 3 : at;
    case 'l':
      return second == 'l' ? at + 3 : at;
    default:
      return text.substr(at + 1, 2) == "\xC5\xBF" ? at + 3 : at;  // U+017F folds to s
  }
}

// Alternatives 2 and 3 at `at`, where `first` stands.
std::size_t match_word(std::string_view text, std::size_t at, Char first) {
  const bool may_lead = !(first.flags & (kCharNewline | kWordNumber));
  if (!may_lead && !(first.flags & kBothGroups)) return kNoMatch;
  for (const auto match : {match_lower_word, match_upper_word}) {
    std::size_t end = may_lead ? match(text, at + first.length) : kNoMatch;
    if (end == kNoMatch) end = match(text, at);  // the optional leading character given back
    if (end != kNoMatch) return skip_contraction(text, end);
  }
  return kNoMatch;
}

// Alternative 4 at `at`, where a number stands.
std::size_t match_number(std::string_view text, std::size_t at) {
  for (int digits = 0; digits < 3; ++digits) {
    const Char c = char_at(text, at);
    if (!(c.flags & kCharNumber)) break;
    at += c.length;
  }
  return at;
}

// Alternative 5 at `at`.
std::size_t match_symbols(std::string_view text, std::size_t at) {
  const auto is_symbol = [](Char c) {
    return c.length != 0 && !(c.flags & (kCharWhiteSpace | kWordNumber));
  };
  std::size_t end = text[at] == ' ' ? at + 1 : at;
  Char c = char_at(text, end);
  if (!is_symbol(c)) return kNoMatch;
  for (; is_symbol(c); c = char_at(text, end)) end += c.length;
  return run_end(text, end, kCharNewline);
}

// Alternatives 6, 7 and 8 at `at`, where white space stands.
std::size_t match_white_space(std::string_view text, std::size_t at) {
  std::size_t end = at;
  std::size_t last = at;
  std::size_t after_newline = kNoMatch;
  for (Char c = char_at(text, end); c.flags & kCharWhiteSpace; c = char_at(text, end)) {
    last = end;
    end += c.length;
    if (c.flags & kCharNewline) after_newline = end;
  }
  if (after_newline != kNoMatch) return after_newline;
  if (end == text.size() || last == at) return end;
  return last;  // the last of the run is left for the next piece
}

}  // namespace

std::size_t next_piece(std::string_view text, std::size_t at) {
  const Char first = char_at(text, at);
  if (first.flags & kCharHan) return run_end(text, at, kCharHan);
  if (std::size_t end = match_word(text, at, first); end != kNoMatch) return end;
  if (first.flags & kCharNumber) return match_number(text, at);
  if (std::size_t end = match_symbols(text, at); end != kNoMatch) return end;
  return match_white_space(text, at);
}

std::vector<std::string_view> slices(std::string_view text, const SliceLimits& limits) {
  std::vector<std::string_view> out;
  if (text.empty()) return out;
  if (text.size() <= limits.run && text.size() <= limits.part) {  // bytes >= code points
    out.push_back(text);
    return out;
  }
  std::size_t start = 0;      // of the slice, in bytes
  std::size_t part = 0;       // code points since the part began
  std::size_t run = 0;        // code points since the run began
  unsigned run_is_space = 0;  // kCharSliceSpace or 0
  for (std::size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    const unsigned is_space = c.flags & kCharSliceSpace;
    const bool part_full = part == limits.part;
    if (part_full || (run == limits.run && is_space == run_is_space)) {
      out.push_back(text.substr(start, at - start));
      start = at;
      run = 0;
      if (part_full) part = 0;
    } else if (is_space != run_is_space) {
      run = 0;
    }
    run_is_space = is_space;
    ++run;
    ++part;
    at += c.length;
  }
  out.push_back(text.substr(start));
  return out;
}

}  // namespace triax
