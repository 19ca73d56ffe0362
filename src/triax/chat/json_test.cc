// JSON whose literals survive.
#include "triax/chat/json.h"

#include <gmock/gmock.h>

#include "triax/chat/chat_testing.h"

namespace triax::chat {
namespace {

using ::testing::HasSubstr;

std::string again(const std::string& text, const JsonStyle& style = kJsonCompact) {
  return json_text(JsonValue::parse(text), style);
}

TEST(Json, KeepsLiteralsOrderAndText) {
  const std::string text =
      R"({"z":1e2,"a":[1.50,-0,123456789012345678901234567890,1E400],"é":"\u00e9😀","n":null,"t":true})";
  EXPECT_EQ(
      again(text),
      R"({"z":1e2,"a":[1.50,-0,123456789012345678901234567890,1E400],"é":"é😀","n":null,"t":true})");
  EXPECT_EQ(again(" [ ] "), "[]");
  EXPECT_EQ(again("{\"a\" :\t{ } }"), "{\"a\":{}}");
}

TEST(Json, ALaterEqualKeyTakesTheEarlierPlace) {
  EXPECT_EQ(again(R"({"a":1,"b":2,"a":3})"), R"({"a":3,"b":2})");
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += fmt::format("\"k{}\":{},", i % 30, i);
  const JsonValue value = JsonValue::parse(many + "\"x\":0}");
  ASSERT_EQ(value.members().size(), 31u);
  EXPECT_EQ(value.members()[5].key, "k5");
  EXPECT_EQ(value.members()[5].value.text(), "35");
  EXPECT_EQ(value.members()[29].value.text(), "29");
}

TEST(Json, SortsByCodePointsAtEveryDepth) {
  EXPECT_EQ(
      again("{\"b\":1,\"a\":{\"\xF0\x9D\x84\x9E\":1,\"\xEF\xBF\xBC\":2,\"Z\":[{\"y\":1,\"x\":2}]}}",
            kJsonSorted),
      "{\"a\":{\"Z\":[{\"x\":2,\"y\":1}],\"\xEF\xBF\xBC\":2,\"\xF0\x9D\x84\x9E\":1},\"b\":1}");
  EXPECT_EQ(again(R"({"b":[1,2],"a":"x"})", kJsonPython), R"({"b": [1, 2], "a": "x"})");
}

TEST(Json, NumbersAsPythonWritesThem) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"0", "0"},
      {"-0", "0"},
      {"10000000000000000000", "10000000000000000000"},
      {"1.0", "1.0"},
      {"-0.0", "-0.0"},
      {"1e21", "1e+21"},
      {"1E2", "100.0"},
      {"0.1", "0.1"},
      {"1.50", "1.5"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"1.25e-7", "1.25e-07"},
      {"1e15", "1000000000000000.0"},
      {"1e16", "1e+16"},
      {"123456789012345680.0", "1.2345678901234568e+17"},
      {"1234567890123456.5", "1234567890123456.5"},
      {"0.1000000000000000055511151231257827", "0.1"},
      {"5e-324", "5e-324"},
      {"1e-400", "0.0"},
      {"-1e-99999999999999999999", "-0.0"},
      {"1e400", "Infinity"},
      {"-1e99999999999999999999", "-Infinity"},
      {"0.000001e500", "Infinity"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"}};
  for (const auto& [literal, want] : cases) EXPECT_EQ(python_number(literal), want) << literal;
}

TEST(Json, EscapesOnlyWhatItMust) {
  EXPECT_EQ(json_quote("a\"b\\c/\b\f\n\r\t\x01\x1f\x7f é"),
            "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f é\"");
  EXPECT_EQ(JsonValue::parse(R"("\"\\\/\b\f\n\r\tA")").text(), "\"\\/\b\f\n\r\tA");
}

TEST(Json, SurrogatesAndIllFormedBytesBecomeCodePoints) {
  EXPECT_EQ(JsonValue::parse(R"("\ud83d\ude00")").text(), "😀");
  EXPECT_EQ(JsonValue::parse(R"("\ud83d")").text(), "\xEF\xBF\xBD");
  EXPECT_EQ(JsonValue::parse(R"("\ude00x")").text(), "\xEF\xBF\xBDx");
  EXPECT_EQ(JsonValue::parse(R"("\ud83d\u0041")").text(),
            "\xEF\xBF\xBD"
            "A");
  EXPECT_EQ(JsonValue::parse("\"a\xFFz\"").text(), "a\xEF\xBF\xBDz");
}

TEST(Json, SaysWhereItIsWrong) {
  const auto error = [](const std::string& text) {
    try {
      JsonValue::parse(text);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    ADD_FAILURE() << text;
    return std::string();
  };
  EXPECT_THAT(error("{\"a\":1,\n  \"b\" 2}"), HasSubstr("line 2, column 7: a colon should stand"));
  EXPECT_THAT(error(""), HasSubstr("line 1, column 1"));
  EXPECT_THAT(error("[1,]"), HasSubstr("column 4"));
  for (const char* bad :
       {"{",     "[1",  "\"a",     "tru",       "nul",         "01",       "1.",      "1e",
        "-",     "+1",  ".5",      "NaN",       "Infinity",    "'a'",      "{a:1}",   "{\"a\":1,}",
        "[1 2]", "1 2", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"a\nb\"", "{\"a\"}", "]"}) {
    EXPECT_NE(error(bad), "") << bad;
  }
}

TEST(Json, DepthIsLimited) {
  const auto deep = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_NO_THROW(JsonValue::parse(deep(kJsonDepth)));
  EXPECT_THROW(JsonValue::parse(deep(kJsonDepth + 2)), Error);
  EXPECT_THROW(JsonValue::parse(std::string(1 << 20, '{')), Error);
  EXPECT_THROW(JsonValue::parse(std::string(1 << 20, '[')), Error);
  EXPECT_FALSE(is_json(deep(100000), true));
}

TEST(Json, RawObjectsAreReadAsPythonDoes) {
  std::vector<RawMember> members;
  ASSERT_TRUE(read_raw_object(
      " { \"a\" : 1.0e+05 , \"s\":\"x\ny\", \"a\":{\"x\" : 1} ,\"n\":-Infinity} tail }", members));
  ASSERT_EQ(members.size(), 4u);
  EXPECT_EQ(members[0].text, "1.0e+05");
  EXPECT_EQ(members[1].text, "x\ny");
  EXPECT_EQ(members[2].key, "a");
  EXPECT_EQ(members[2].text, "{\"x\" : 1}");
  EXPECT_EQ(members[3].text, "-Infinity");
  EXPECT_EQ(members[3].kind, JsonValue::Kind::number);
  for (const char* bad : {"", "  ", "[1]", "{\"a\":1,}", "{'a':1}", "{\"a\" 1}", "{\"a\":}", "{"}) {
    EXPECT_FALSE(read_raw_object(bad, members)) << bad;
  }
}

TEST(Json, KnowsOneValueFromOther) {
  EXPECT_TRUE(is_json(" [1, {\"a\": \"b\"}] ", false));
  EXPECT_TRUE(is_json("NaN", true));
  EXPECT_FALSE(is_json("NaN", false));
  for (const char* bad : {"", " ", "3 or 4", "True", "{a:1}", "1 2", "\"a\nb\""}) {
    EXPECT_FALSE(is_json(bad, true)) << bad;
  }
  EXPECT_EQ(json_trim(" \n3\t"), "3");
  EXPECT_EQ(json_trim(" "), "");
}

}  // namespace
}  // namespace triax::chat
