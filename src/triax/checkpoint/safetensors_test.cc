// One header at a time: what is read, and each way in which a header can be wrong.
#include "triax/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/checkpoint_folder.h"

namespace triax {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

SafetensorsHeader parse_file(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), file.size(), "s.safetensors");
}
SafetensorsHeader parse(std::string_view header, std::size_t data) {
  return parse_file(test::file_around(header, data));
}
std::string refusal(std::string_view header, std::size_t data = 8) {
  return error_of([&] { parse(header, data); });
}
// A header of one tensor with this description.
std::string refusal_of(std::string_view description, std::size_t data = 8) {
  return refusal("{\"t\":" + std::string(description) + "}", data);
}

TEST(SafetensorsHeader, ReadsEntriesInTheOrderOfTheirData) {
  const auto header = parse(R"({"__metadata__":{"format":"pt","a":"b"},)"
                            R"("late":{"dtype":"U8","shape":[3],"data_offsets":[12,15]},)"
                            R"("first":{"data_offsets":[0,12],"shape":[1,3],"dtype":"F32"}}   )",
                            15);
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0].name, "first");
  EXPECT_EQ(header.entries[0].dtype, DType::F32);
  EXPECT_EQ(header.entries[0].shape, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(header.entries[0].offset, header.data_start);
  EXPECT_EQ(header.entries[0].bytes, 12u);
  EXPECT_EQ(header.entries[1].name, "late");
  EXPECT_EQ(header.entries[1].offset, header.data_start + 12);
  ASSERT_EQ(header.metadata.size(), 2u);
  EXPECT_EQ(header.metadata[0].second, "pt");
}

TEST(SafetensorsHeader, ScalarsEmptyTensorsAndEscapedNames) {
  const auto header = parse(R"({"\u0061\u00e9\"":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                            R"("none":{"dtype":"F32","shape":[4,0],"data_offsets":[8,8]}})",
                            8);
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0].name, "a\xc3\xa9\"");
  EXPECT_TRUE(header.entries[0].shape.empty());
  EXPECT_EQ(header.entries[1].bytes, 0u);
  EXPECT_TRUE(parse("{}", 0).entries.empty());
}

TEST(SafetensorsHeader, EveryDtypeOfTheRelease) {
  for (const auto& [name, type] : {std::pair{"F32", DType::F32},
                                   {"BF16", DType::BF16},
                                   {"U8", DType::U8},
                                   {"F8_E8M0", DType::F8_E8M0},
                                   {"F16", DType::F16},
                                   {"I32", DType::I32},
                                   {"I64", DType::I64}}) {
    const std::size_t bytes = 2 * dtype_size(type);
    const auto header = parse(
        fmt::format(R"({{"t":{{"dtype":"{}","shape":[2],"data_offsets":[0,{}]}}}})", name, bytes),
        bytes);
    EXPECT_EQ(header.entries.at(0).dtype, type);
  }
}

TEST(SafetensorsHeader, LengthThatCannotBeRight) {
  EXPECT_THAT(error_of([] { parse_file(""); }), HasSubstr("header"));
  EXPECT_THAT(error_of([] { parse_file("1234567"); }), HasSubstr("found 7"));
  EXPECT_THAT(error_of([] { parse_file(std::string(64, '\0')); }),
              HasSubstr("header has length 0"));
  EXPECT_THAT(error_of([] { parse_file(std::string(64, '\xff')); }),
              HasSubstr("header has length"));
  std::string cut = test::file_around("{}", 0);
  cut[0] = 100;
  EXPECT_THAT(error_of([&] { parse_file(cut); }),
              AllOf(HasSubstr("header"), HasSubstr("expected 108 bytes"), HasSubstr("found 10")));
  EXPECT_THAT(error_of([] {
                std::uint64_t length = kSafetensorsMaxHeader + 1;
                const auto bytes = std::as_bytes(std::span(&length, 1));
                safetensors_header_length(bytes, std::size_t{1} << 40, "s");
              }),
              HasSubstr("100000001"));
}

TEST(SafetensorsHeader, TextThatIsNoHeader) {
  for (const char* text :
       {"[]", "  {}", "{", "{}{}", "{\"a\"}", "{\"a\":1,}", "nonsense", "{]", "{\"a\":\"\xff\"}",
        "{\"__metadata__\":{\"a\":1}}", "{\"__metadata__\":3}"}) {
    EXPECT_THAT(refusal(text, 0), AllOf(HasSubstr("s.safetensors"), HasSubstr("header"))) << text;
  }
}

TEST(SafetensorsHeader, DescriptionsAreComplete) {
  EXPECT_THAT(refusal_of("3"), HasSubstr("\"t\""));
  EXPECT_THAT(refusal_of(R"({"shape":[8],"data_offsets":[0,8]})"), HasSubstr("no dtype"));
  EXPECT_THAT(refusal_of(R"({"dtype":"U8","data_offsets":[0,8]})"), HasSubstr("no shape"));
  EXPECT_THAT(refusal_of(R"({"dtype":"U8","shape":[8]})"), HasSubstr("no data_offsets"));
  EXPECT_THAT(refusal_of(R"({"dtype":"U8","shape":[8],"data_offsets":[0,8],"x":1})"),
              HasSubstr("unknown key \"x\""));
  EXPECT_THAT(refusal_of(R"({"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]})"),
              HasSubstr("dtype twice"));
}

TEST(SafetensorsHeader, UnknownDtypeIsNamed) {
  EXPECT_THAT(refusal_of(R"({"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]})"),
              AllOf(HasSubstr("\"t\""), HasSubstr("F8_E4M3")));
  EXPECT_THAT(refusal_of(R"({"dtype":7,"shape":[8],"data_offsets":[0,8]})"), HasSubstr("dtype"));
}

TEST(SafetensorsHeader, NumbersAreWholeAndNotNegative) {
  for (const char* shape : {"[-8]", "[8.0]", "[1e1]", "[\"8\"]", "[null]", "[[8]]", "8",
                            "[99999999999999999999999]", "[1,1,1,1,1,8]"}) {
    EXPECT_THAT(
        refusal_of(fmt::format(R"({{"dtype":"U8","shape":{},"data_offsets":[0,8]}})", shape)),
        AllOf(
            HasSubstr("s.safetensors"),
            testing::AnyOf(HasSubstr("shape"), HasSubstr("dimensions"), HasSubstr("not a valid"))))
        << shape;
  }
  for (const char* offsets : {"[-1,7]", "[0,8.0]", "[0]", "[0,8,8]", "[]", "{}", "[0,\"8\"]"}) {
    EXPECT_THAT(
        refusal_of(fmt::format(R"({{"dtype":"U8","shape":[8],"data_offsets":{}}})", offsets)),
        HasSubstr("data_offsets"))
        << offsets;
  }
}

TEST(SafetensorsHeader, ShapeAgainstBytes) {
  EXPECT_THAT(refusal_of(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
              AllOf(HasSubstr("needs 12 bytes"), HasSubstr("hold 8")));
  EXPECT_THAT(refusal_of(R"({"dtype":"U8","shape":[8],"data_offsets":[8,0]})"),
              HasSubstr("begins at 8 and ends at 0"));
}

// Products that wrap to the right number of bytes.
TEST(SafetensorsHeader, OverflowIsSeen) {
  EXPECT_THAT(
      refusal_of(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
      HasSubstr("overflow"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]})"),
              HasSubstr("overflow"));
  EXPECT_THAT(
      refusal_of(
          R"({"dtype":"U8","shape":[8],"data_offsets":[18446744073709551607,18446744073709551615]})"),
      HasSubstr("overflow"));
}

TEST(SafetensorsHeader, OverlapNamesBoth) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
                      R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})"),
              AllOf(HasSubstr("\"a\""), HasSubstr("\"b\""), HasSubstr("overlap")));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                      R"("b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})"),
              HasSubstr("overlap"));
}

TEST(SafetensorsHeader, GapsAreRefused) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[6,8]}})"),
              AllOf(HasSubstr("4 to 6"), HasSubstr("\"b\"")));
  EXPECT_THAT(refusal_of(R"({"dtype":"U8","shape":[4],"data_offsets":[4,8]})"),
              HasSubstr("belong to no tensor"));
}

TEST(SafetensorsHeader, DuplicateNames) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                      R"("\u0061":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})"),
              AllOf(HasSubstr("\"a\""), HasSubstr("twice")));
}

TEST(SafetensorsHeader, FileLength) {
  constexpr const char* kHeader = R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})";
  EXPECT_THAT(refusal(kHeader, 7), AllOf(HasSubstr("cut short"), HasSubstr("found")));
  EXPECT_THAT(refusal(kHeader, 9), HasSubstr("too long"));
  EXPECT_EQ(refusal(kHeader, 8), "(no error)");
}

TEST(SafetensorsHeader, NamesCannotBreakTheMessage) {
  const std::string name(5000, 'x');
  const std::string text = refusal("{\"a\\nb\\u0000" + name + R"(":{"dtype":"U9"}})");
  EXPECT_THAT(text, HasSubstr("a\\x0ab\\x00"));
  EXPECT_LT(text.size(), 600u);
}

}  // namespace
}  // namespace triax
