// Names, roles and faults of the special tokens.
#include "triax/tokenizer/special_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "triax/tokenizer/tokenizer_testing.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax {
namespace {

using ::testing::HasSubstr;

std::string error_of_config(const std::string& json) {
  return testing::error_of([&] { SpecialTokens::from_config(json, 300, "c.json"); });
}

TEST(SpecialTokens, TableIsInTheOrderOfRoles) {
  for (std::size_t i = 0; i < kRoles; ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kK3Specials[i].role), i);
  }
}

TEST(SpecialTokens, StandardNamesFollowTheRanks) {
  const SpecialTokens specials = SpecialTokens::standard(768);
  EXPECT_EQ(specials.id_of(Role::Bos), 768);
  EXPECT_EQ(specials.id_of(Role::EndOfMsg), 770);
  EXPECT_EQ(specials.id_of(Role::Eot), 777);
  EXPECT_EQ(specials.id_of(Role::MediaPad), 789);
  EXPECT_EQ(specials.id_of(Role::Pad), 1023);
  EXPECT_EQ(specials.name(776), "<|reserved_token_776|>");
  EXPECT_EQ(specials.find("<|reserved_token_1021|>"), 1021);
  EXPECT_EQ(specials.find("<|reserved_token_777|>"), std::nullopt);
  EXPECT_FALSE(specials.contains(767));
  EXPECT_TRUE(specials.contains(1023));
  EXPECT_FALSE(specials.contains(1024));
  EXPECT_TRUE(specials.special(770));
  EXPECT_FALSE(specials.special(771));  // <|open|>
}

TEST(SpecialTokens, WrittenConfigGivesTheStandardOnesBack) {
  const SpecialTokens standard = SpecialTokens::standard(768);
  const SpecialTokens read = SpecialTokens::from_config(tokenizer_config_text(768), 768, "c.json");
  for (std::int32_t id = 768; id < 1024; ++id) {
    EXPECT_EQ(read.name(id), standard.name(id));
    EXPECT_EQ(read.special(id), standard.special(id));
  }
  for (const K3Special& k3 : kK3Specials) EXPECT_EQ(read.id_of(k3.role), standard.id_of(k3.role));
}

TEST(SpecialTokens, RolesFollowTheFileNotTheNumber) {
  const SpecialTokens specials = SpecialTokens::from_config(
      R"({"added_tokens_decoder": {"311": {"content": "<|sep|>"}, "302": {"content": "<s>", "special": false},
          "305": {"content": "[EOS]"}, "306": {"content": "[EOT]"}},
          "bos_token": {"content": "<s>"}, "eos_token": "[EOT]", "pad_token": null})",
      300, "c.json");
  EXPECT_EQ(specials.id_of(Role::Sep), 311);
  EXPECT_EQ(specials.id_of(Role::Bos), 302);
  EXPECT_EQ(specials.id_of(Role::Eos), 306);
  EXPECT_EQ(specials.id_of(Role::Eot), 306);
  EXPECT_EQ(specials.id_of(Role::Open), std::nullopt);
  EXPECT_EQ(specials.name(303), "<|reserved_token_303|>");
  EXPECT_FALSE(specials.special(302));
}

TEST(SpecialTokens, NoListOfNamesMeansTheStandardOnes) {
  const SpecialTokens specials = SpecialTokens::from_config("{}", 300, "c.json");
  EXPECT_EQ(specials.id_of(Role::Open), 303);
}

TEST(SpecialTokens, LongestNameMatches) {
  const SpecialTokens specials = SpecialTokens::from_config(
      R"({"added_tokens_decoder": {"300": {"content": "<a"}, "301": {"content": "<ab>"}, "302": {"content": "é"}}})",
      300, "c.json");
  EXPECT_EQ(specials.match("x<ab>", 1), 301);
  EXPECT_EQ(specials.match("<ab", 0), 300);
  EXPECT_EQ(specials.match("<abc>", 0), 300);
  EXPECT_EQ(specials.match("<", 0), std::nullopt);
  EXPECT_EQ(specials.match("<b", 0), std::nullopt);
  EXPECT_EQ(specials.match("<|reserved_token_310|>", 0), 310);
  EXPECT_EQ(specials.match("<|reserved_token_31|>", 0), std::nullopt);
  EXPECT_EQ(specials.match("aé", 1), 302);
  EXPECT_EQ(specials.match("a", 1), std::nullopt);
}

TEST(SpecialTokens, FaultsOfTheConfigAreNamed) {
  EXPECT_THAT(error_of_config("{"), HasSubstr("c.json: not a JSON object"));
  EXPECT_THAT(error_of_config("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of_config(R"({"added_tokens_decoder": []})"), HasSubstr("is not an object"));
  for (const char* id : {"299", "556", "-1"}) {
    EXPECT_THAT(error_of_config(std::string(R"({"added_tokens_decoder": {")") + id +
                                R"(": {"content": "x"}}})"),
                HasSubstr(std::string("id ") + id +
                          " lies outside 300..555, the 256 ids after the 300 ranks"));
  }
  for (const char* id : {"", "x", "301x", "99999999999", "a\\nb"}) {
    EXPECT_THAT(error_of_config(std::string(R"({"added_tokens_decoder": {")") + id +
                                R"(": {"content": "x"}}})"),
                HasSubstr("is not a token id"));
  }
  for (const char* value : {"7", "{}", R"({"content": ""})", R"({"content": 3})"}) {
    EXPECT_THAT(error_of_config(std::string(R"({"added_tokens_decoder": {"301": )") + value + "}}"),
                HasSubstr("id 301 has no `content`"));
  }
  EXPECT_THAT(
      error_of_config(
          R"({"added_tokens_decoder": {"301": {"content": "x"}, "303": {"content": "x"}}})"),
      HasSubstr("ids 301 and 303 have the same name"));
  EXPECT_THAT(error_of_config(R"({"eos_token": "</s>"})"),
              HasSubstr(R"(eos_token is "</s>", which is none)"));
  EXPECT_THAT(error_of_config(R"({"eos_token": 3})"), HasSubstr("eos_token is neither"));
}

}  // namespace
}  // namespace triax
