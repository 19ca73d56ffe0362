// The trainer against its definition, and what it makes as a tokenizer.
#include "triax/tokenizer/bpe_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "triax/tokenizer/bpe.h"
#include "triax/tokenizer/split.h"
#include "triax/tokenizer/tokenizer_testing.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax {
namespace {

std::vector<std::string> train(const std::vector<std::string>& texts, std::size_t vocabulary,
                               const BpeTrainOptions& options = {}) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return train_bpe(views, vocabulary, options);
}

// The definition, word for word: encodes everything anew for each token.
std::vector<std::string> train_plainly(const std::vector<std::string>& texts,
                                       std::size_t vocabulary) {
  std::map<std::string, std::int64_t> pieces;
  for (const std::string& text : texts) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = next_piece(text, at);
      const std::string piece = text.substr(at, end - at);
      if (piece[0] < '0' || piece[0] > '9') ++pieces[piece];
      at = end;
    }
  }
  std::vector<std::string> tokens = single_byte_tokens();
  while (tokens.size() < vocabulary) {
    const RankTable ranks = RankTable::parse(rank_file_text(tokens), "so far");
    BpeMerger merger(ranks);
    std::map<std::string, std::int64_t> pairs;
    for (const auto& [piece, count] : pieces) {
      std::vector<std::int32_t> ids;
      merger.encode(piece, ids);
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        pairs[std::string(ranks.bytes(ids[i])) + std::string(ranks.bytes(ids[i + 1]))] += count;
      }
    }
    std::string best;
    std::int64_t most = 1;
    for (const auto& [bytes, count] : pairs) {
      if (count > most) {
        most = count;
        best = bytes;
      }
    }
    if (best.empty()) break;
    tokens.push_back(best);
  }
  return tokens;
}

TEST(BpeTrainer, SmallKnownExample) {
  const auto tokens = train({"aaab aaab ab"}, 259);
  // Pieces: aaab, " aaab", " ab". Pairs: aa 4, ab 3; " a" 2. Then aa|ab has "aaab" 2.
  ASSERT_EQ(tokens.size(), 259u);
  EXPECT_EQ(tokens[256], "aa");
  EXPECT_EQ(tokens[257], "ab");
  EXPECT_EQ(tokens[258], "aaab");
}

TEST(BpeTrainer, EqualsTheDefinitionOnRandomTexts) {
  Rng rng(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> texts(1 + rng.next() % 3);
    const std::size_t letters = 2 + rng.next() % 4;
    for (std::string& text : texts) {
      for (std::uint64_t i = 20 + rng.next() % 200; i > 0; --i) {
        text.push_back(rng.next() % 5 == 0 ? ' ' : "abcd1"[rng.next() % letters]);
      }
    }
    ASSERT_EQ(train(texts, 300), train_plainly(texts, 300)) << texts[0];
  }
}

TEST(BpeTrainer, OrderOfTheTextsDoesNotMatter) {
  const std::vector<std::string> texts = {"the cat sat on the mat", "a hat, a cat", "that that"};
  const std::vector<std::string> back(texts.rbegin(), texts.rend());
  EXPECT_EQ(train(texts, 280), train(back, 280));
}

TEST(BpeTrainer, DigitsStaySingleUnlessAskedFor) {
  const std::vector<std::string> texts(20, "12 and 12 and 123");
  for (const std::string& token : train(texts, 300)) {
    const auto digits =
        std::count_if(token.begin(), token.end(), [](char c) { return c >= '0' && c <= '9'; });
    EXPECT_LE(digits, 1) << token;
  }
  BpeTrainOptions options;
  options.merge_digits = true;
  const auto tokens = train(texts, 300, options);
  EXPECT_NE(std::find(tokens.begin(), tokens.end(), "12"), tokens.end());
}

TEST(BpeTrainer, FewerTokensWhenNothingRepeats) {
  EXPECT_EQ(train({"abcdef"}, 300).size(), 256u);
  EXPECT_EQ(train({}, 300).size(), 256u);
}

TEST(BpeTrainer, MakesATokenizerThatReadsBackAnyText) {
  std::vector<std::string> texts = {
      "Mia carried the lantern to the barn. Tom said: \"It's late!\"\n",
      std::string("bad \xFF byte ") + "na\xC3\xAFve \xE4\xB8\xAD"};
  for (int i = 0; i < 4; ++i) texts.push_back(texts[0]);
  const auto folder = std::filesystem::path(::testing::TempDir()) / "triax_bpe_trainer";
  write_tokenizer_folder(folder, train(texts, 320));
  const Tokenizer tokenizer = Tokenizer::load(folder);
  EXPECT_EQ(tokenizer.vocab_size(), tokenizer.rank_count() + 256);
  EXPECT_TRUE(tokenizer.id_of(Role::Open).has_value());
  EXPECT_LT(tokenizer.encode(texts[0]).size(), texts[0].size() / 2);
  Rng rng(4);
  for (int round = 0; round < 50; ++round) {
    const std::string text = testing::random_text(rng, 60);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
  std::filesystem::remove_all(folder);
}

TEST(BpeTrainer, StopsWhenTold) {
  BpeTrainOptions options;
  std::size_t last = 0;
  options.progress = [&](std::size_t done, std::size_t) {
    last = done;
    return false;
  };
  std::string text;
  Rng rng(5);
  for (int i = 0; i < 4000; ++i) text.push_back("abcdefgh "[rng.next() % 9]);
  EXPECT_EQ(train({text}, 600, options).size(), 320u);
  EXPECT_EQ(last, 320u);
}

TEST(BpeTrainer, RefusesSizesThatCannotBe) {
  EXPECT_NE(testing::error_of([] { train({"a"}, 255); }).find("256"), std::string::npos);
}

}  // namespace
}  // namespace triax
