// The scanner against published cases and a plain backtracking matcher.
#include "triax/tokenizer/split.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "triax/tokenizer/tokenizer_testing.h"
#include "triax/tokenizer/unicode_tables.h"

namespace triax {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(std::string_view text) {
  Pieces out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = next_piece(text, at);
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

TEST(Split, PublishedCases) {
  EXPECT_EQ(
      split("\u201cHello,\u201d \u4e16\u754c\u4e16\u4e16\u2014\u2014I'm ChatGPT. CAN'T wait 'til "
            "2026."),
      (Pieces{"\u201cHello", ",\u201d", " ", "\u4e16\u754c\u4e16\u4e16", "\u2014\u2014", "I'm",
              " Chat", "GPT", ".", " CAN'T", " wait", " '", "til", " ", "202", "6", "."}));
  EXPECT_EQ(split("}\n/// doc\n"), (Pieces{"}\n", "///", " doc", "\n"}));
  EXPECT_EQ(split("\u7d05\u3002\u767d\n\u9aee\u3002\n\n\u3000\u3000\u8a71"),
            (Pieces{"\u7d05", "\u3002", "\u767d", "\n", "\u9aee", "\u3002\n\n", "\u3000", "\u3000",
                    "\u8a71"}));
  EXPECT_EQ(split("\u4e00\u4e8c3456\u4e03x\u516b\u3007\u4e5d"),
            (Pieces{"\u4e00\u4e8c", "345", "6", "\u4e03", "x", "\u516b\u3007\u4e5d"}));
  EXPECT_EQ(split("12\u30074 x"), (Pieces{"12\u3007", "4", " x"}));
  EXPECT_EQ(split("  two  spaces\t\n"), (Pieces{" ", " two", " ", " spaces", "\t\n"}));
  EXPECT_EQ(split("caf\u00e9's \u4e2d's 12345"),
            (Pieces{"caf\u00e9's", " ", "\u4e2d", "'s", " ", "123", "45"}));
}

TEST(Split, WordsGiveBackCharacters) {
  // L+ must find a mark or caseless letter within the run of U.
  EXPECT_EQ(split("ABC\u0301DE"), (Pieces{"ABC\u0301", "DE"}));
  EXPECT_EQ(split("A\u02b0B"), (Pieces{"A\u02b0", "B"}));
  // A leading mark: "lead, then U+" has no L; without the lead the mark itself is L.
  EXPECT_EQ(split("\u0301A"), (Pieces{"\u0301", "A"}));
  EXPECT_EQ(split("\u0301a"), (Pieces{"\u0301a"}));
  EXPECT_EQ(split("-ABC-"), (Pieces{"-ABC", "-"}));
  EXPECT_EQ(split("HTTPServer"), (Pieces{"HTTPServer"}));
  EXPECT_EQ(split("getHTTP"), (Pieces{"get", "HTTP"}));
}

TEST(Split, Contractions) {
  EXPECT_EQ(split("we'LL we'lx"), (Pieces{"we'LL", " we", "'lx"}));
  EXPECT_EQ(split("x'\u017f y'Re z'V"), (Pieces{"x'\u017f", " y'Re", " z", "'V"}));
  EXPECT_EQ(split("'sab"), (Pieces{"'sab"}));
  EXPECT_EQ(split("a'stop"), (Pieces{"a's", "top"}));
  EXPECT_EQ(split("a'"), (Pieces{"a", "'"}));
  EXPECT_EQ(split("a'l"), (Pieces{"a", "'l"}));
  EXPECT_EQ(split("\x13'\x13"), (Pieces{"\x13'\x13"}));  // no letter by setting the case bit
}

TEST(Split, WhiteSpace) {
  EXPECT_EQ(split("a \n \n  b"), (Pieces{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(split("a  "), (Pieces{"a", "  "}));
  EXPECT_EQ(split("\t\t1"), (Pieces{"\t", "\t", "1"}));
  EXPECT_EQ(split("\tx"), (Pieces{"\tx"}));
  EXPECT_EQ(split("\nx"), (Pieces{"\n", "x"}));
  EXPECT_EQ(split(" !\r\n\n x"), (Pieces{" !\r\n\n", " x"}));
  EXPECT_EQ(split("\x1c\x1d"), (Pieces{"\x1c\x1d"}));  // no White_Space: symbols
}

TEST(Split, LettersOfUnicode16AreWords) {
  EXPECT_EQ(split("1\U00013460\U000143FA1"), (Pieces{"1", "\U00013460\U000143FA", "1"}));
}

// The alternatives as a plain backtracking matcher on code points, to hold the scanner against.
class Reference {
 public:
  explicit Reference(std::vector<unsigned> flags, std::u32string text)
      : flags_(std::move(flags)), text_(std::move(text)) {}

  std::size_t match(std::size_t at) const {
    const std::size_t han = greedy(at, kCharHan);
    if (han > at) return han;
    for (const bool lower : {true, false}) {
      for (const bool lead : {true, false}) {
        if (lead && !(at < text_.size() && leads(at))) continue;
        if (const std::size_t end = word(at + lead, lower)) return end;
      }
    }
    std::size_t end = at;
    while (end < at + 3 && has(end, kCharNumber)) ++end;
    if (end > at) return end;
    for (const bool space : {true, false}) {
      if (space && text_[at] != U' ') continue;
      end = at + space;
      while (end < text_.size() && !has(end, kCharWhiteSpace | kCharLetter | kCharNumber)) ++end;
      if (end > at + space) return greedy(end, kCharNewline);
    }
    const std::size_t run = greedy(at, kCharWhiteSpace);
    for (std::size_t k = run; k + 1 > at; --k) {  // white space*, giving back
      if (greedy(k, kCharNewline) > k) return greedy(k, kCharNewline);
      if (k == at) break;
    }
    for (std::size_t k = run; k > at; --k) {
      if (k == text_.size() || has(k, kCharWhiteSpace)) return k;
    }
    return run;
  }

 private:
  bool has(std::size_t i, unsigned flags) const { return i < flags_.size() && (flags_[i] & flags); }
  bool leads(std::size_t i) const { return !has(i, kCharNewline | kCharLetter | kCharNumber); }
  std::size_t greedy(std::size_t at, unsigned flags) const {
    while (has(at, flags)) ++at;
    return at;
  }
  // U* L+ or U+ L* with every way of giving back; 0 = no match.
  std::size_t word(std::size_t at, bool lower) const {
    for (std::size_t k = greedy(at, kCharUpperGroup);; --k) {
      const std::size_t end = greedy(k, kCharLowerGroup);
      if (lower ? end > k : k > at) return contraction(end);
      if (k == at) return 0;
    }
  }
  std::size_t contraction(std::size_t at) const {
    for (const std::u32string tail : {U"s", U"t", U"re", U"ve", U"m", U"ll", U"d"}) {
      std::size_t i = at;
      if (i >= text_.size() || text_[i++] != U'\'') return at;
      bool same = true;
      for (const char32_t c : tail) {
        const char32_t found = i < text_.size() ? text_[i++] : U'\0';
        same = same && (found == c || found + 32 == c || (c == U's' && found == 0x17F));
      }
      if (same) return i;
    }
    return at;
  }

  std::vector<unsigned> flags_;
  std::u32string text_;
};

TEST(Split, AgreesWithABacktrackingMatcherOnRandomText) {
  Rng rng(1);
  for (int round = 0; round < 20'000; ++round) {
    std::u32string text;
    std::vector<unsigned> flags;
    std::vector<std::size_t> bytes = {0};  // of each code point
    std::string utf8;
    const std::size_t size = 1 + rng.next() % 12;
    for (std::size_t i = 0; i < size; ++i) {
      text.push_back(testing::random_code_point(rng));
      flags.push_back(char_flags(text.back()));
      utf8_append(utf8, text.back());
      bytes.push_back(utf8.size());
    }
    const Reference reference(flags, text);
    for (std::size_t at = 0; at < size; ++at) {
      ASSERT_EQ(next_piece(utf8, bytes[at]), bytes[reference.match(at)]) << utf8 << " at " << at;
    }
  }
}

TEST(Slices, RunsAndPartsAreCut) {
  const auto cut = [](std::string_view text, SliceLimits limits) {
    Pieces out;
    for (const auto slice : slices(text, limits)) out.emplace_back(slice);
    return out;
  };
  EXPECT_EQ(cut("", {10, 3}), Pieces{});
  EXPECT_EQ(cut("aaa", {10, 3}), Pieces{"aaa"});
  EXPECT_EQ(cut("aaaa", {10, 3}), (Pieces{"aaa", "a"}));
  EXPECT_EQ(cut("a bbbb", {10, 3}), (Pieces{"a bbb", "b"}));  // earlier runs stay in the slice
  EXPECT_EQ(cut("a    b", {10, 3}), (Pieces{"a   ", " b"}));
  EXPECT_EQ(cut("aa\x1c\x1f\x1e ab", {10, 3}), (Pieces{"aa\x1c\x1f\x1e", " ab"}));
  EXPECT_EQ(cut("\u00e9\u4e2d\U0001F600x", {10, 3}), (Pieces{"\u00e9\u4e2d\U0001F600", "x"}));
  EXPECT_EQ(cut("a b c d e", {4, 3}), (Pieces{"a b ", "c d ", "e"}));
  EXPECT_EQ(cut("abcdefgh", {4, 3}), (Pieces{"abc", "d", "efg", "h"}));  // a part starts a run anew
}

}  // namespace
}  // namespace triax
