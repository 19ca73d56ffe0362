// Patterns, strings and numbers as automata.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "triax/core/rng.h"
#include "triax/sampling/grammar/char_dfa.h"
#include "triax/sampling/grammar/number_dfa.h"
#include "triax/sampling/grammar/value.h"
#include "triax/tokenizer/utf8.h"

namespace triax::grammar {
namespace {

Budget unlimited() {
  return Budget(GrammarLimits{60, std::size_t{1} << 30});
}

TEST(Regex, FindsWhatTheStandardLibraryFinds) {
  Budget budget = unlimited();
  Rng rng(1);
  const std::vector<std::string> patterns = {
      "abc",        "^a+b?$",     "^(?:a|bc)*$", "a{2,3}",    "^a{2}b{1,}$", "[^ab]",
      "^[a-c]+c$",  "a.c",        "^$",          "^a|b$",     "\\d\\D",      "^\\w+\\s\\S$",
      "(a|b)(c|1)", "^(a*)*b$",   "a*?b",        "^[\\d-]+$", "x{0}",        "^(ab){0,2}$",
      "\\.",        "[.\\]\\\\]", "^a{1,2}{1}"};
  for (const std::string& pattern : patterns) {
    if (pattern == "^a{1,2}{1}") continue;  // the library takes it, ECMAScript does not
    const CharDfa dfa = CharDfa::regex(pattern, budget);
    const std::regex expected(pattern);
    for (int i = 0; i < 400; ++i) {
      std::string text;
      for (std::size_t n = rng.next() % 7; n > 0; --n) text += "abc1 -.\\]"[rng.next() % 9];
      EXPECT_EQ(dfa.matches(text), std::regex_search(text, expected)) << pattern << " " << text;
    }
  }
}

TEST(Regex, CharactersBeyondAscii) {
  Budget budget = unlimited();
  EXPECT_TRUE(CharDfa::regex("^.{3}$", budget).matches("é漢😀"));
  EXPECT_FALSE(CharDfa::regex("^.$", budget).matches("\n"));
  EXPECT_TRUE(CharDfa::regex("^[\\u4e00-\\u9fff]+$", budget).matches("漢字"));
  EXPECT_TRUE(CharDfa::regex("^\\ud83d\\ude00\\u{1F600}$", budget).matches("😀😀"));
  EXPECT_TRUE(CharDfa::regex("^\\s$", budget).matches("\u3000"));
  EXPECT_FALSE(CharDfa::regex("^\\w$", budget).matches("é"));
}

TEST(CharDfa, SetsOfTexts) {
  Budget budget = unlimited();
  const CharDfa word = CharDfa::regex("^[a-z]+$", budget);
  const CharDfa three = CharDfa::lengths(3, 3, budget);
  const CharDfa both = word.both(three, budget);
  EXPECT_TRUE(both.matches("abc"));
  EXPECT_FALSE(both.matches("ab"));
  EXPECT_FALSE(both.matches("ab1"));
  EXPECT_FALSE(word.complement(budget).matches("abc"));
  EXPECT_TRUE(word.complement(budget).matches("😀"));
  EXPECT_TRUE(word.both(word.complement(budget), budget).empty());
  EXPECT_TRUE(CharDfa::lengths(4, 2, budget).empty());
}

TEST(CharDfa, BytesSayTheSameAsCharacters) {
  Budget budget = unlimited();
  Rng rng(2);
  for (const char* pattern : {"^[^\"]*$", "é|漢", "^.{0,4}$", "[\\u0001-\\u00ff]$", "^[^a]+$"}) {
    const CharDfa dfa = CharDfa::regex(pattern, budget);
    const ByteDfa raw = dfa.raw(budget), json = dfa.json(budget);
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (std::size_t n = rng.next() % 6; n > 0; --n) {
        static constexpr char32_t kChars[] = {'a',    '"',     '\\',    '\n',    1,      0x7F,
                                              0xE9,   0x7FF,   0x800,   0x6F22,  0xD7FF, 0xE000,
                                              0xFFFF, 0x10000, 0x1F600, 0x10FFFF};
        utf8_append(text, kChars[rng.next() % 16]);
      }
      EXPECT_EQ(raw.matches(text), dfa.matches(text)) << pattern << " " << text;
      EXPECT_EQ(json.matches(json_string(text)), dfa.matches(text)) << pattern << " " << text;
    }
  }
}

// Strings made of pieces that matter, whole and broken.
std::string random_string(Rng& rng) {
  static const std::string kPieces[] = {"a",
                                        "\"",
                                        "\\",
                                        "\\n",
                                        "\\u00e9",
                                        "\\ud83d\\ude00",
                                        "\\ud83d",
                                        "\\ude00",
                                        "\xC3",
                                        "\xA9",
                                        "\xE6\xBC\xA2",
                                        "\xED\xA0\x80",
                                        "\xF0\x9F\x98\x80",
                                        "\xC0\x80",
                                        "\xF4\x90\x80\x80",
                                        "\x01",
                                        "\\x",
                                        "/",
                                        "\\/"};
  std::string out;
  for (std::size_t n = rng.next() % 4; n > 0; --n) out += kPieces[rng.next() % 19];
  return out;
}

TEST(ByteDfa, StringsAreJsonsStrings) {
  Budget budget = unlimited();
  const ByteDfa dfa = json_string_dfa(budget), key = json_key_dfa(budget);
  const ByteDfa raw = raw_text_dfa(budget);
  Rng rng(3);
  for (int i = 0; i < 5000; ++i) {
    const std::string inner = random_string(rng), text = "\"" + inner + "\"";
    EXPECT_EQ(dfa.matches(text), nlohmann::json::accept(text)) << text;
    EXPECT_EQ(raw.matches(inner), utf8_valid(inner)) << inner;
    // A key's only spelling is the one that json_string() writes.
    const bool canonical = nlohmann::json::accept(text) &&
                           json_string(nlohmann::json::parse(text).get<std::string>()) == text;
    EXPECT_EQ(key.matches(text), canonical) << text;
  }
}

TEST(ByteDfa, AttributesAreEscaped) {
  Budget budget = unlimited();
  const ByteDfa dfa = attribute_dfa(budget);
  EXPECT_TRUE(dfa.matches(attribute_text("a&b\"c<é")));
  EXPECT_TRUE(dfa.matches(""));
  EXPECT_FALSE(dfa.matches("a&b"));
  EXPECT_FALSE(dfa.matches("a\"b"));
  EXPECT_FALSE(dfa.matches("&lt;"));
}

std::string random_number(Rng& rng) {
  std::string out;
  if (rng.next() % 2 == 0) out += '-';
  if (rng.next() % 8 == 0) {
    out += '0';
  } else {
    out += static_cast<char>('1' + rng.next() % 9);
    for (std::size_t n = rng.next() % 3; n > 0; --n)
      out += static_cast<char>('0' + rng.next() % 10);
  }
  if (rng.next() % 2 == 0) {
    out += '.';
    for (std::size_t n = 1 + rng.next() % 3; n > 0; --n) {
      out += static_cast<char>('0' + (rng.next() % 3) * 5 % 10);
    }
  }
  return out;
}

TEST(Number, BoundsAreExact) {
  Budget budget = unlimited();
  Rng rng(4);
  for (int i = 0; i < 150; ++i) {
    NumberRule rule;
    rule.integer = rng.next() % 2 == 0;
    if (rng.next() % 3 != 0) {
      rule.low = NumberBound{Decimal::parse(random_number(rng)), rng.next() % 2 == 0};
    }
    if (rng.next() % 3 != 0) {
      rule.high = NumberBound{Decimal::parse(random_number(rng)), rng.next() % 2 == 0};
    }
    if (rng.next() % 3 == 0) {
      rule.multiples.push_back(Decimal::parse(rng.next() % 2 == 0 ? "0.25" : "6"));
    }
    if (rule.free()) continue;
    const ByteDfa dfa = number_dfa(rule, budget);
    for (int k = 0; k < 150; ++k) {
      const std::string text = random_number(rng);
      const double x = std::stod(text);
      bool expected = !rule.integer || text.find('.') == std::string::npos;
      if (rule.low) {
        const double low = std::stod((rule.low->value.negative ? "-" : "") +
                                     rule.low->value.whole() + "." + rule.low->value.fraction());
        expected = expected && (rule.low->exclusive ? x > low : x >= low);
      }
      if (rule.high) {
        const double high = std::stod((rule.high->value.negative ? "-" : "") +
                                      rule.high->value.whole() + "." + rule.high->value.fraction());
        expected = expected && (rule.high->exclusive ? x < high : x <= high);
      }
      if (!rule.multiples.empty()) {
        const double step = rule.multiples[0].whole() == "6" ? 6 : 0.25;
        expected = expected && std::fmod(x, step) == 0;
      }
      EXPECT_EQ(dfa.matches(text), expected) << text;
      if (!rule.integer) {
        EXPECT_EQ(keeps(Decimal::parse(text), rule), expected) << text;
      }
    }
  }
}

TEST(Number, FreeNumbersAreJsons) {
  Budget budget = unlimited();
  NumberRule integer;
  integer.integer = true;
  const ByteDfa all = number_dfa({}, budget), whole = number_dfa(integer, budget);
  for (const char* good : {"0", "-0", "10", "1.5", "1e5", "1E+5", "-2.50e-07"}) {
    EXPECT_TRUE(all.matches(good)) << good;
  }
  for (const char* bad : {"", "-", "01", "1.", ".5", "+1", "1e", "0x1", "NaN"}) {
    EXPECT_FALSE(all.matches(bad)) << bad;
  }
  EXPECT_TRUE(whole.matches("-12"));
  EXPECT_FALSE(whole.matches("1e5"));
}

TEST(Decimal, ComparesLiteralsOfAnySize) {
  const auto order = [](const char* a, const char* b) {
    return compare(Decimal::parse(a), Decimal::parse(b));
  };
  EXPECT_EQ(order("1e3", "1000.0"), 0);
  EXPECT_EQ(order("-0", "0"), 0);
  EXPECT_EQ(order("0.1", "0.09"), 1);
  EXPECT_EQ(order("-5", "-4"), -1);
  EXPECT_EQ(order("123456789012345678901234567890", "123456789012345678901234567891"), -1);
  EXPECT_EQ(order("1e400", "1e401"), -1);
  EXPECT_EQ(as_count(Decimal::parse("5.0")), 5u);
  EXPECT_EQ(as_count(Decimal::parse("1e30")), ~std::uint64_t{0});
  EXPECT_FALSE(as_count(Decimal::parse("0.5")).has_value());
  EXPECT_FALSE(as_count(Decimal::parse("-1")).has_value());
}

}  // namespace
}  // namespace triax::grammar
