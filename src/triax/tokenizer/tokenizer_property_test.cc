// Properties over random input, for K3's vocabulary and a small one; seeds are fixed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "triax/tokenizer/tokenizer.h"
#include "triax/tokenizer/tokenizer_testing.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax {
namespace {

using Ids = std::vector<std::int32_t>;

const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer(RankTable::parse(rank_file_text(byte_tokens(512)), "small"),
                                   SpecialTokens::standard(768));
  return tokenizer;
}

class TokenizerProperty : public ::testing::TestWithParam<const Tokenizer& (*)()> {
 protected:
  const Tokenizer& tokenizer() const { return GetParam()(); }
};

TEST_P(TokenizerProperty, DecodeUndoesEncode) {
  Rng rng(11);
  for (int round = 0; round < 2'000; ++round) {
    const std::string text = testing::random_text(rng, rng.next() % 200);
    ASSERT_EQ(tokenizer().decode(tokenizer().encode(text)), text);
    ASSERT_EQ(tokenizer().decode(tokenizer().encode_control(text)), text);
  }
}

TEST_P(TokenizerProperty, EveryIdDecodes) {
  for (std::int32_t id = 0; id < tokenizer().vocab_size(); ++id) {
    ASSERT_FALSE(tokenizer().token_bytes(id).empty()) << id;
    ASSERT_EQ(tokenizer().decode_bytes(Ids{id}), tokenizer().token_bytes(id)) << id;
    ASSERT_TRUE(utf8_valid(tokenizer().decode(Ids{id}))) << id;
  }
}

TEST_P(TokenizerProperty, StreamReleasesTheDecodedTextInWholeCodePoints) {
  Rng rng(12);
  for (int round = 0; round < 1'000; ++round) {
    Ids ids;
    const bool bytes = round % 2 == 0;  // single bytes only, to make and break code points
    for (std::uint64_t i = rng.next() % 60; i > 0; --i) {
      ids.push_back(bytes ? tokenizer().ranks().find_byte(static_cast<char>(rng.next()))
                          : static_cast<std::int32_t>(rng.next() % tokenizer().vocab_size()));
    }
    StreamDecoder stream(tokenizer());
    std::string released;
    for (const std::int32_t id : ids) {
      const std::string text = stream.push(id);
      ASSERT_TRUE(utf8_valid(text));
      ASSERT_LE(stream.held().size(), 3u);
      released += text;
    }
    ASSERT_EQ(released + stream.finish(), tokenizer().decode(ids));
  }
}

TEST_P(TokenizerProperty, AnyBytesEncodeAsTheirRepairedText) {
  Rng rng(13);
  for (int round = 0; round < 1'000; ++round) {
    std::string bytes;
    for (std::uint64_t i = rng.next() % 80; i > 0; --i)
      bytes.push_back(static_cast<char>(rng.next()));
    const Ids ids = tokenizer().encode(bytes);
    ASSERT_EQ(ids, tokenizer().encode(utf8_repair(bytes)));
    ASSERT_EQ(tokenizer().decode(ids), utf8_repair(bytes));
  }
}

TEST_P(TokenizerProperty, NamesBetweenTextAreTheOnlySpecialIds) {
  Rng rng(14);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    Ids expected;
    for (int part = 0; part < 4; ++part) {
      const std::string words = testing::random_text(rng, rng.next() % 20);
      const Ids ids = tokenizer().encode(words);
      const auto id =
          tokenizer().rank_count() + static_cast<std::int32_t>(rng.next() % kSpecialTokens);
      expected.insert(expected.end(), ids.begin(), ids.end());
      expected.push_back(id);
      text += words;
      text += tokenizer().token_bytes(id);
    }
    ASSERT_EQ(tokenizer().encode_control(text), expected);
    for (const std::int32_t id : tokenizer().encode(text)) ASSERT_LT(id, tokenizer().rank_count());
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TokenizerProperty,
                         ::testing::Values(&testing::k3_tokenizer, &small_tokenizer));

}  // namespace
}  // namespace triax
