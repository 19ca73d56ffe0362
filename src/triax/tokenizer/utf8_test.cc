// UTF-8 steps over all scalar values and ill-formed parts.
#include "triax/tokenizer/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace triax {
namespace {

TEST(Utf8, EveryScalarValueRoundTrips) {
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    text.clear();
    utf8_append(text, c);
    const Utf8Step step = utf8_step(text, 0);
    ASSERT_EQ(step.kind, Utf8Kind::kCodePoint) << unsigned{c};
    ASSERT_EQ(step.code_point, c);
    ASSERT_EQ(step.length, text.size());
    const Utf8Step valid = utf8_decode_valid(text, 0);
    ASSERT_EQ(valid.code_point, c);
    ASSERT_EQ(valid.length, text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Step part = utf8_step(std::string_view(text).substr(0, cut), 0);
      ASSERT_EQ(part.kind, Utf8Kind::kIncomplete) << unsigned{c};
      ASSERT_EQ(part.length, cut);
    }
  }
}

TEST(Utf8, MaximalIllFormedPartsBecomeOneReplacementEach) {
  const std::string r(kReplacementUtf8);
  EXPECT_EQ(utf8_repair("a\x80z"), "a" + r + "z");
  EXPECT_EQ(utf8_repair("\xC0\xAF"), r + r);          // overlong
  EXPECT_EQ(utf8_repair("\xE0\x9F\xBF"), r + r + r);  // overlong
  EXPECT_EQ(utf8_repair("\xF0\x8F\xBF\xBF"), r + r + r + r);
  EXPECT_EQ(utf8_repair("\xED\xA0\x80"), r + r + r);  // surrogate
  EXPECT_EQ(utf8_repair("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(utf8_repair("\xF0\x9F\x98x"), r + "x");  // three bytes, one part
  EXPECT_EQ(utf8_repair("\xE4\xB8\xE4\xB8\xAD"), r + "\xE4\xB8\xAD");
  EXPECT_EQ(utf8_repair("\xE4\xB8"), r);  // cut off by the end
  EXPECT_EQ(utf8_repair("12345678\xFF"
                        "12345678"),
            "12345678" + r + "12345678");
}

TEST(Utf8, Validity) {
  EXPECT_TRUE(utf8_valid(""));
  EXPECT_TRUE(utf8_valid("plain ascii, more than eight bytes"));
  EXPECT_TRUE(utf8_valid("12345678\xE4\xB8\xAD"));
  EXPECT_FALSE(utf8_valid("12345678\xE4\xB8"));
  EXPECT_FALSE(utf8_valid("\xED\xBF\xBF"));
  EXPECT_FALSE(
      utf8_valid("1234567\x80"
                 "abc"));
}

}  // namespace
}  // namespace triax
