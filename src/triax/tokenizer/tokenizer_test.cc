// Tokenizer folders, ids, long runs and the stream decoder.
#include "triax/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "triax/tokenizer/tokenizer_testing.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;
namespace fs = std::filesystem;

// An empty folder that is removed with the test.
class TokenizerFolder : public ::testing::Test {
 protected:
  TokenizerFolder()
      : folder_(fs::path(::testing::TempDir()) /
                (std::string("triax_") +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
  }
  ~TokenizerFolder() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(TokenizerFolder, SmallVocabularyLoads) {
  write_byte_tokenizer(folder_, 512);
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  EXPECT_EQ(tokenizer.rank_count(), 768);
  EXPECT_EQ(tokenizer.vocab_size(), 1024);
  EXPECT_EQ(tokenizer.stop_ids(), (Ids{769, 770, 777}));
  EXPECT_EQ(tokenizer.required_id(Role::MediaPad), 789);
  EXPECT_EQ(tokenizer.encode_control("<|open|>[EOS]<|reserved_token_900|>"), (Ids{771, 769, 900}));
  EXPECT_EQ(tokenizer.encode(" t").size(), 1u);
  const std::string text = "the others\u4e2d\u6587 [EOS] \U0001F600";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST_F(TokenizerFolder, WrittenTheSameEveryTime) {
  write_byte_tokenizer(folder_ / "a", 512);
  write_byte_tokenizer(folder_ / "b", 512);
  for (const char* file : {"tiktoken.model", "tokenizer_config.json"}) {
    EXPECT_EQ(read_text_file(folder_ / "a" / file), read_text_file(folder_ / "b" / file));
  }
  EXPECT_EQ(byte_tokens(0).size(), 256u);
  EXPECT_EQ(byte_tokens(3000).size(), 3256u);
}

TEST_F(TokenizerFolder, EveryMergeOfTheMadeUpVocabularyIsReached) {
  write_byte_tokenizer(folder_, 512);
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  for (std::int32_t rank = 0; rank < tokenizer.rank_count(); ++rank) {
    const std::string_view bytes = tokenizer.ranks().bytes(rank);
    if (bytes.size() == 1) continue;
    EXPECT_GE(tokenizer.ranks().find(bytes.substr(0, bytes.size() - 1)), 0);
  }
}

TEST_F(TokenizerFolder, ConfigMayBeMissing) {
  write_byte_tokenizer(folder_, 10);
  fs::remove(folder_ / "tokenizer_config.json");
  EXPECT_EQ(Tokenizer::load(folder_).id_of(Role::Sep), 271);
}

TEST_F(TokenizerFolder, FilesOfDifferentModelsAreRefused) {
  write_byte_tokenizer(folder_, 512);
  for (const std::int32_t ranks : {512, 300'000}) {
    write_text_file(folder_ / "tokenizer_config.json", tokenizer_config_text(ranks));
    EXPECT_THAT(testing::error_of([&] { Tokenizer::load(folder_); }),
                HasSubstr("lies outside 768..1023, the 256 ids after the 768 ranks"));
  }
  fs::copy_file(testing::k3_folder() / "tokenizer_config.json", folder_ / "tokenizer_config.json",
                fs::copy_options::overwrite_existing);
  EXPECT_THROW(Tokenizer::load(folder_), Error);
}

TEST_F(TokenizerFolder, MissingRankFileIsAnError) {
  EXPECT_THAT(testing::error_of([&] { Tokenizer::load(folder_); }), HasSubstr("tiktoken.model"));
}

TEST_F(TokenizerFolder, RolesThatAreNotThere) {
  write_byte_tokenizer(folder_, 0);
  write_text_file(folder_ / "tokenizer_config.json",
                  R"({"added_tokens_decoder": {"256": {"content": "[EOT]"}}})");
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  EXPECT_EQ(tokenizer.stop_ids(), Ids{256});
  EXPECT_EQ(tokenizer.id_of(Role::Open), std::nullopt);
  EXPECT_THAT(testing::error_of([&] { tokenizer.required_id(Role::Open); }),
              HasSubstr("no <|open|> token"));
}

TEST(Tokenizer, StopIdsOfK3) {
  EXPECT_EQ(testing::k3_tokenizer().stop_ids(), (Ids{163585, 163586, 163593}));
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreErrors) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  StreamDecoder stream(tokenizer);
  for (const std::int32_t id : {-1, tokenizer.vocab_size(), INT32_MAX, INT32_MIN}) {
    EXPECT_THROW(tokenizer.token_bytes(id), Error);
    EXPECT_THROW(tokenizer.decode(Ids{0, id}), Error);
    EXPECT_THROW(stream.push(id), Error);
  }
}

TEST(Tokenizer, SlicingAndLongRuns) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  Ids expected;
  for (const std::size_t run : {25'000u, 25'000u, 10'000u}) {
    const Ids ids = tokenizer.encode(std::string(run, 'a'));
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(tokenizer.encode(std::string(60'000, 'a')), expected);
}

// A quadratic step anywhere would make this test run for minutes, a recursion overflow the stack.
TEST(Tokenizer, AMegabyteOfOneCharacter) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  for (const char* c : {"a", "A", "1", " ", "\n", "\t", "'", "<", "[", "a.", "\u4e2d", "\u0301",
                        "\u3000", "\U0001F600", "\U00013460", "\u0301A", "A ", "'s"}) {
    const std::string text = testing::repeat(c, 1'000'000 / std::string_view(c).size());
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << c;
    EXPECT_EQ(tokenizer.encode_control(text), tokenizer.encode(text)) << c;
  }
}

TEST(StreamDecoder, HoldsReplacesAndFlushes) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  const auto id = [&](int byte) { return tokenizer.ranks().find_byte(static_cast<char>(byte)); };
  const std::string r(kReplacementUtf8);
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(id(0xF0)), "");
  EXPECT_EQ(stream.push(id(0x9F)), "");
  EXPECT_EQ(stream.held(), "\xF0\x9F");
  EXPECT_EQ(stream.push(id('x')), r + "x");  // the held part can no longer become a code point
  EXPECT_EQ(stream.push(id(0x80)), r);       // nor can a lone continuation
  EXPECT_EQ(stream.push(id(0xE4)), "");
  EXPECT_EQ(stream.finish(), r);
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.push(tokenizer.required_id(Role::Sep)), "<|sep|>");
}

}  // namespace
}  // namespace triax
