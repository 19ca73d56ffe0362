// Rank files: the real one, other forms of it, and each fault.
#include "triax/tokenizer/rank_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "triax/core/hash.h"
#include "triax/tokenizer/base64.h"
#include "triax/tokenizer/tokenizer_testing.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax {
namespace {

using ::testing::HasSubstr;

std::string error_of_text(const std::string& text) {
  return testing::error_of([&] { RankTable::parse(text, "t.model"); });
}

TEST(Base64, RoundTripAndRefusals) {
  std::string bytes;
  for (int length = 0; length < 20; ++length) {
    std::string back;
    ASSERT_TRUE(base64_decode(base64_encode(bytes), back)) << length;
    EXPECT_EQ(back, bytes);
    bytes.push_back(static_cast<char>(251 - 37 * length));
  }
  EXPECT_EQ(base64_encode("hello"), "aGVsbG8=");
  std::string out;
  for (const char* bad : {"a", "ab", "abc", "ab=c", "=abc",
                          "ab==ab==", "a===", "====", "aGVsbG9=", "ab-_", "a b=", "YR=="}) {
    EXPECT_FALSE(base64_decode(bad, out)) << bad;
  }
}

TEST(RankFile, TheRealFileLoads) {
  const auto file = testing::k3_folder() / "tiktoken.model";
  EXPECT_EQ(hex(sha256(read_text_file(file))),
            "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103");
  const RankTable table = RankTable::load(file);
  ASSERT_EQ(table.size(), 163'584u);
  EXPECT_EQ(table.longest(), 256u);
  for (std::int32_t rank = 0; rank < 163'584; ++rank)
    ASSERT_EQ(table.find(table.bytes(rank)), rank);
  EXPECT_EQ(table.find(""), -1);
  EXPECT_EQ(table.find("no such token at all"), -1);
  EXPECT_EQ(table.find(std::string(300, ' ')), -1);
}

TEST(RankFile, AnyOrderEmptyLinesAndCarriageReturns) {
  const auto tokens = byte_tokens(100);
  const std::string text = rank_file_text(tokens);
  std::string reversed = "\n";
  for (std::size_t end = text.size() - 1; end != 0;) {
    const std::size_t start = text.rfind('\n', end - 1);
    const std::size_t from = start == std::string::npos ? 0 : start + 1;
    reversed += text.substr(from, end - from) + "\r\n";
    end = from == 0 ? 0 : from - 1;
  }
  reversed.resize(reversed.size() - 2);  // no line end after the last line
  for (const std::string& form : {text, reversed}) {
    const RankTable table = RankTable::parse(form, "t.model");
    ASSERT_EQ(table.size(), tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      ASSERT_EQ(table.find(tokens[i]), static_cast<std::int32_t>(i));
      ASSERT_EQ(table.bytes(static_cast<std::int32_t>(i)), tokens[i]);
    }
  }
}

TEST(RankFile, FaultsNameTheLine) {
  const std::string good = rank_file_text(single_byte_tokens());
  EXPECT_THAT(error_of_text(""), HasSubstr("single byte 0x00"));
  EXPECT_THAT(error_of_text(good + "aGVsbG8="), HasSubstr("t.model: line 257: no space"));
  EXPECT_THAT(error_of_text(good + "aGVsbG8= "), HasSubstr("line 257: the rank"));
  EXPECT_THAT(error_of_text(good + "aGVsbG8= -1"), HasSubstr("line 257: the rank"));
  EXPECT_THAT(error_of_text(good + "aGVsbG8= 256 "), HasSubstr("line 257: the rank"));
  EXPECT_THAT(error_of_text(good + "aGVsbG8= 99999999999"), HasSubstr("line 257: the rank"));
  EXPECT_THAT(error_of_text(good + "aGVsbG8= 257\n"),
              HasSubstr("line 257: rank 257, but the file has only 257 lines"));
  EXPECT_THAT(error_of_text(good + "\naGVsbG8= 7"),
              HasSubstr("line 258: rank 7 stands already in line 8"));
  EXPECT_THAT(error_of_text(good + "aGVsbG8 256"), HasSubstr("line 257: the token is not base64"));
  EXPECT_THAT(error_of_text(good + " 256"), HasSubstr("line 257: empty token"));
  EXPECT_THAT(error_of_text(good + "\n\naGVsbG8= 257"), HasSubstr("rank 256 is missing"));
  EXPECT_THAT(error_of_text(good + "IQ== 256"),
              HasSubstr("line 257: the token has the same bytes as that of line 1"));
  EXPECT_THAT(error_of_text(good + "aGVsbG8= 256\naGVsbG8= 257"),
              HasSubstr("line 258: the token has the same bytes as that of line 257"));
  EXPECT_THAT(error_of_text(good.substr(0, good.size() - 9)),
              HasSubstr("no token for the single byte 0xad"));
}

TEST(RankFile, MissingFileIsAnError) {
  EXPECT_THAT(testing::error_of([] { RankTable::load("/no/such/tiktoken.model"); }),
              HasSubstr("/no/such/tiktoken.model: cannot be opened"));
}

TEST(RankFile, WriterRefusesWhatCannotBeRead) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "triax_bad.model";
  EXPECT_THROW(write_rank_file(file, std::vector<std::string>{"a"}), Error);
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace triax
