// The golden files of tests/golden/tokenizer, entry by entry, with K3's vocabulary.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "triax/core/hash.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/tokenizer/tokenizer_testing.h"

namespace triax {
namespace {

using Ids = std::vector<std::int32_t>;
using nlohmann::json;

std::string sha256_le32(const Ids& ids) {
  std::string bytes;
  for (const std::int32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(id >> shift));
  }
  return hex(sha256(bytes));
}

TEST(TokenizerGolden, Encode) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  const json entries = testing::golden("encode.json");
  ASSERT_EQ(entries.size(), 344u);
  for (const json& entry : entries) {
    const auto name = entry["name"].get<std::string>();
    const auto text = entry["text"].get<std::string>();
    const Ids ids = entry.value("allow_special", false) ? tokenizer.encode_control(text)
                                                        : tokenizer.encode(text);
    EXPECT_EQ(ids, entry["ids"].get<Ids>()) << name;
    EXPECT_EQ(tokenizer.decode(ids), text) << name;
    if (!entry.contains("pieces")) continue;
    const auto pieces = tokenizer.pieces(text);
    const auto expected = entry["pieces"].get<std::vector<std::string>>();
    EXPECT_TRUE(std::equal(pieces.begin(), pieces.end(), expected.begin(), expected.end())) << name;
  }
}

TEST(TokenizerGolden, EncodeBig) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  const json entries = testing::golden("encode_big.json");
  ASSERT_EQ(entries.size(), 12u);
  for (const json& entry : entries) {
    const auto name = entry["name"].get<std::string>();
    std::string text;
    for (const json& part : entry["recipe"]) {
      text += testing::repeat(part[0].get<std::string>(), part[1].get<std::size_t>());
    }
    const bool names = entry.value("allow_special", name.ends_with("_special"));
    const Ids ids = names ? tokenizer.encode_control(text) : tokenizer.encode(text);
    EXPECT_EQ(ids.size(), entry["count"].get<std::size_t>()) << name;
    EXPECT_EQ(sha256_le32(ids), entry["sha256_le32"].get<std::string>()) << name;
    const auto first = entry["first"].get<Ids>();
    const auto last = entry["last"].get<Ids>();
    EXPECT_TRUE(std::equal(first.begin(), first.end(), ids.begin())) << name;
    EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), ids.rbegin())) << name;
  }
}

TEST(TokenizerGolden, Decode) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  const json entries = testing::golden("decode.json");
  ASSERT_EQ(entries.size(), 46u);
  for (const json& entry : entries) {
    const auto ids = entry["ids"].get<Ids>();
    const auto text = entry["text"].get<std::string>();
    EXPECT_EQ(tokenizer.decode_bytes(ids), testing::from_hex(entry["bytes_hex"])) << entry["name"];
    EXPECT_EQ(tokenizer.decode(ids), text) << entry["name"];
    StreamDecoder stream(tokenizer);
    std::string released;
    for (const std::int32_t id : ids) released += stream.push(id);
    EXPECT_EQ(released + stream.finish(), text) << entry["name"];
  }
}

TEST(TokenizerGolden, StreamDecode) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  const json entries = testing::golden("stream_decode.json");
  ASSERT_EQ(entries.size(), 5u);
  for (const json& entry : entries) {
    const auto ids = entry["ids"].get<Ids>();
    EXPECT_EQ(tokenizer.encode(entry["text"].get<std::string>()), ids) << entry["name"];
    StreamDecoder stream(tokenizer);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(tokenizer.token_bytes(ids[i]), testing::from_hex(entry["token_bytes_hex"][i]));
      EXPECT_EQ(stream.push(ids[i]), entry["released"][i].get<std::string>()) << entry["name"] << i;
    }
    EXPECT_EQ(stream.finish(), "") << entry["name"];
  }
}

TEST(TokenizerGolden, InvalidUtf8) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  const json entries = testing::golden("invalid_utf8.json");
  ASSERT_EQ(entries.size(), 11u);
  for (const json& entry : entries) {
    const std::string bytes = testing::from_hex(entry["bytes_hex"]);
    EXPECT_EQ(utf8_repair(bytes), entry["text"].get<std::string>()) << entry["name"];
    EXPECT_EQ(tokenizer.encode(bytes), entry["ids"].get<Ids>()) << entry["name"];
    EXPECT_EQ(tokenizer.encode_control(bytes), entry["ids"].get<Ids>()) << entry["name"];
  }
}

TEST(TokenizerGolden, Vocabulary) {
  const Tokenizer& tokenizer = testing::k3_tokenizer();
  const json vocab = testing::golden("vocab.json");
  EXPECT_EQ(tokenizer.vocab_size(), vocab["vocab_size"].get<int>());
  EXPECT_EQ(tokenizer.rank_count(), vocab["ranks"].get<int>());
  EXPECT_EQ(tokenizer.ranks().longest(), vocab["longest_token_bytes"].get<std::size_t>());
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(tokenizer.ranks().find_byte(static_cast<char>(byte)),
              vocab["single_byte_ranks"][static_cast<std::size_t>(byte)].get<int>());
  }
  for (std::int32_t id = tokenizer.rank_count(); id < tokenizer.vocab_size(); ++id) {
    const std::string key = std::to_string(id);
    const json& names = vocab["special"];
    const std::string expected =
        names.contains(key) ? names[key].get<std::string>() : "<|reserved_token_" + key + "|>";
    EXPECT_EQ(tokenizer.token_bytes(id), expected);
    EXPECT_EQ(tokenizer.specials().find(expected), id);
  }
}

}  // namespace
}  // namespace triax
