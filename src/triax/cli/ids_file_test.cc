// Ids from text: both notations, and what is none.
#include "triax/cli/ids_file.h"

#include <gtest/gtest.h>

#include "triax/core/error.h"

namespace triax::cli {
namespace {

using Ids = std::vector<std::int32_t>;

std::string fault(std::string_view text) {
  try {
    parse_ids(text, "x.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(ParseIds, JsonArrayOrWhiteSpace) {
  EXPECT_EQ(parse_ids("[1, 2,3]", "x"), (Ids{1, 2, 3}));
  EXPECT_EQ(parse_ids(" [\n 1 ,\n 2147483647 ]\n", "x"), (Ids{1, 2147483647}));
  EXPECT_EQ(parse_ids("1 2\t3\r\n4\n", "x"), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(parse_ids("7", "x"), Ids{7});
  EXPECT_EQ(parse_ids("", "x"), Ids{});
  EXPECT_EQ(parse_ids(" \n", "x"), Ids{});
  EXPECT_EQ(parse_ids("[]", "x"), Ids{});
}

TEST(ParseIds, WhatIsNoIdIsNamed) {
  EXPECT_EQ(fault("[1, 2.5]"),
            "x.json: item 1 is \"2.5\", expected a token id (a whole number from 0)");
  EXPECT_NE(fault("1 -2").find("item 1 is \"-2\""), std::string::npos);
  EXPECT_NE(fault("1 2147483648").find("item 1"), std::string::npos);
  EXPECT_NE(fault("[1, \"2\"]").find("item 1"), std::string::npos);
  EXPECT_NE(fault("[1,,2]").find("item 1"), std::string::npos);
  EXPECT_NE(fault("[[1]]").find("item 0"), std::string::npos);
  EXPECT_NE(fault("1,2").find("item 0"), std::string::npos);
  EXPECT_NE(fault("[1,").find("no closing"), std::string::npos);
  EXPECT_NE(fault("[").find("no closing"), std::string::npos);
  EXPECT_NE(fault("[1,]").find("ends with a comma"), std::string::npos);
  EXPECT_EQ(fault("[1, a\nb]").find('\n'), std::string::npos) << "one line";
}

TEST(CheckIds, VocabularyIsTheLimit) {
  EXPECT_NO_THROW(check_ids(Ids{0, 9}, 10, "x"));
  EXPECT_THROW(check_ids(Ids{0, 10}, 10, "x"), Error);
  EXPECT_THROW(check_ids(Ids{-1}, 10, "x"), Error);
}

}  // namespace
}  // namespace triax::cli
