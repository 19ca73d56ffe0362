// The merge against its definition, word for word.
#include "triax/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "triax/tokenizer/tokenizer_testing.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax {
namespace {

// The definition, word for word; quadratic.
std::vector<std::int32_t> merge_plainly(const RankTable& ranks, const std::string& piece) {
  if (const std::int32_t whole = ranks.find(piece); whole >= 0) return {whole};
  std::vector<std::string> parts;
  for (const char c : piece) parts.emplace_back(1, c);
  for (;;) {
    std::int32_t lowest = -1;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::int32_t rank = ranks.find(parts[i] + parts[i + 1]);
      if (rank >= 0 && (lowest < 0 || rank < lowest)) {
        lowest = rank;
        at = i;
      }
    }
    if (lowest < 0) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  std::vector<std::int32_t> ids;
  for (const std::string& part : parts) ids.push_back(ranks.find(part));
  return ids;
}

std::vector<std::int32_t> merge(const RankTable& ranks, const std::string& piece) {
  BpeMerger merger(ranks);
  std::vector<std::int32_t> ids;
  merger.encode(piece, ids);
  return ids;
}

TEST(Bpe, AgreesWithTheDefinitionAtEveryLength) {
  const RankTable& ranks = testing::k3_tokenizer().ranks();
  Rng rng(2);
  for (std::size_t size = 1; size < 260; ++size) {
    std::string letters, runs, bytes;
    for (std::size_t i = 0; i < size; ++i) {
      letters.push_back("etaoin shr"[rng.next() % 10]);
      runs.push_back(rng.next() % 40 == 0 ? 'b' : 'a');
      bytes.push_back(static_cast<char>(rng.next()));
    }
    for (const std::string& piece : {letters, runs, bytes}) {
      ASSERT_EQ(merge(ranks, piece), merge_plainly(ranks, piece)) << piece;
    }
  }
}

TEST(Bpe, SmallVocabulary) {
  const RankTable ranks = RankTable::parse(rank_file_text(byte_tokens(512)), "small");
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    std::string piece;
    for (std::uint64_t i = rng.next() % 200; i > 0; --i)
      piece.push_back(" etaoinshrd"[rng.next() % 11]);
    ASSERT_EQ(merge(ranks, piece), merge_plainly(ranks, piece)) << piece;
  }
}

TEST(Bpe, LowestRankWinsAndTheLeftmostOfEquals) {
  std::vector<std::string> tokens = single_byte_tokens();
  for (const char* token : {"bc", "ab", "aa"}) tokens.emplace_back(token);
  const RankTable ranks = RankTable::parse(rank_file_text(tokens), "tiny");
  const auto byte = [&](char c) { return ranks.find_byte(c); };
  EXPECT_EQ(merge(ranks, "abc"), (std::vector<std::int32_t>{byte('a'), 256}));
  EXPECT_EQ(merge(ranks, "aaa"), (std::vector<std::int32_t>{258, byte('a')}));
  const std::string longer(201, 'a');
  std::vector<std::int32_t> expected(100, 258);
  expected.push_back(byte('a'));
  EXPECT_EQ(merge(ranks, longer), expected);
  EXPECT_TRUE(merge(ranks, "").empty());
}

// A token no sequence of merges reaches is still found when it is the whole piece.
TEST(Bpe, WholePieceFirst) {
  std::vector<std::string> tokens = single_byte_tokens();
  tokens.emplace_back("xyz");
  const RankTable ranks = RankTable::parse(rank_file_text(tokens), "tiny");
  EXPECT_EQ(merge(ranks, "xyz"), std::vector<std::int32_t>{256});
  EXPECT_EQ(merge(ranks, "xyzx").size(), 4u);
}

}  // namespace
}  // namespace triax
