// The generated tables against totals and single characters of Unicode 16.
#include "triax/tokenizer/unicode_tables.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace triax {
namespace {

int count_with(unsigned flags) {
  int count = 0;
  for (char32_t c = 0; c < 0x110000; ++c) count += (char_flags(c) & flags) == flags;
  return count;
}

TEST(UnicodeTables, AsciiShortcutAgreesWithTheTable) {
  for (char32_t c = 0; c < 128; ++c) EXPECT_EQ(char_flags(c), char_flags_table(c)) << unsigned{c};
}

// Totals of Unicode 16.0.0: L, N and White_Space as in DerivedGeneralCategory.txt and PropList.txt,
// Han as in Scripts.txt.
TEST(UnicodeTables, TotalsAreThoseOfUnicode16) {
  EXPECT_EQ(count_with(kCharLetter), 141'028);
  EXPECT_EQ(count_with(kCharNumber), 1'911);
  EXPECT_EQ(count_with(kCharWhiteSpace), 25);
  EXPECT_EQ(count_with(kCharSliceSpace), 29);
  EXPECT_EQ(count_with(kCharHan), 99'030);
  EXPECT_EQ(count_with(kCharNewline), 2);
}

TEST(UnicodeTables, SingleCharacters) {
  constexpr unsigned kBoth = kCharUpperGroup | kCharLowerGroup;
  EXPECT_EQ(char_flags(0x4E2D), kCharHan | kCharLetter);
  EXPECT_EQ(char_flags(0x3005), kCharHan | kCharLetter);  // iteration mark: Lm, Han
  EXPECT_EQ(char_flags(0x3006), kBoth | kCharLetter);     // closing mark: Lo, not Han
  EXPECT_EQ(char_flags(0x3007), kCharHan | kCharNumber);  // zero: Nl, Han
  EXPECT_EQ(char_flags(0x2E80), kCharHan);                // radical: a symbol
  EXPECT_EQ(char_flags(0x16FF0), kCharHan);               // reading mark: M, in no group as Han
  EXPECT_EQ(char_flags(0x301), kBoth);                    // combining acute
  EXPECT_EQ(char_flags(0x1C5), kCharLetter | kCharUpperGroup);  // Lt
  EXPECT_EQ(char_flags(0x17F), kCharLetter | kCharLowerGroup);
  EXPECT_EQ(char_flags(0x1D7CE), kCharNumber);
  EXPECT_EQ(char_flags(0x85), kCharWhiteSpace | kCharSliceSpace);
  EXPECT_EQ(char_flags(0x3000), kCharWhiteSpace | kCharSliceSpace);
  EXPECT_EQ(char_flags(0x200B), 0);  // zero width space: not White_Space
  EXPECT_EQ(char_flags(0x1F600), 0);
  EXPECT_EQ(char_flags(0xE0100), kBoth);
  EXPECT_EQ(char_flags(0xE01EF), kBoth);
  EXPECT_EQ(char_flags(0xE01F0), 0);
  EXPECT_EQ(char_flags(0x10FFFF), 0);
  EXPECT_EQ(char_flags(0x110000), 0);
  EXPECT_EQ(char_flags(0xFFFFFFFF), 0);
}

TEST(UnicodeTables, LettersAddedInUnicode16) {
  for (char32_t c = 0x13460; c <= 0x143FA; ++c) {
    ASSERT_EQ(char_flags(c), kCharLetter | kCharUpperGroup | kCharLowerGroup) << unsigned{c};
  }
  EXPECT_EQ(char_flags(0x1C89), kCharLetter | kCharUpperGroup);
  EXPECT_EQ(char_flags(0xA7DA), kCharLetter | kCharUpperGroup);
  EXPECT_EQ(char_flags(0x10D40), kCharNumber);  // Garay digit zero
}

}  // namespace
}  // namespace triax
