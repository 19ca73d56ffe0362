#include <gtest/gtest.h>

#include "triax/sampling/grammar/grammar_testing.h"

namespace triax::testing {
namespace {

bool takes(const char* schema, const std::string& text) {
  return takes_text(compile_document(k3_index(), schema), text);
}
std::string refusal(const std::string& schema) {
  return error_of([&] { compile_document(k3_index(), schema); });
}

TEST(Schema, EveryToolSchemaIsAcceptedAsParameters) {
  for (const Json& schema : tool_schemas()) {
    TurnRules rules;
    rules.tools = {{"f", schema.dump()}};
    EXPECT_NO_THROW(compile_turn(k3_index(), rules)) << schema.dump();
    EXPECT_NO_THROW(compile_document(k3_index(), schema.dump())) << schema.dump();
  }
}

// Whatever is drawn token by token is a document of the schema, and no draw gets stuck.
void check_walks(const std::string& text, std::size_t walks, Rng& rng,
                 const std::shared_ptr<const TokenIndex>& index) {
  const Json schema = Json::parse(text);
  const auto grammar = compile_document(index, text);
  for (std::size_t w = 0; w < walks; ++w) {
    Walk walk(grammar, rng);
    walk.hint(schema, false);
    if (is_endless(schema)) {
      for (int i = 0; i < 20; ++i) ASSERT_TRUE(walk.step(1000));
      EXPECT_FALSE(walk.matcher().may_end());
      continue;
    }
    ASSERT_TRUE(walk.finish(6 + w, 3000)) << text << "\n" << walk.text().substr(0, 300);
    std::string document = walk.text();
    document.resize(document.size() -
                    index->tokenizer().token_bytes(walk.ids().back()).size());  // the end token
    Json value;
    ASSERT_NO_THROW(value = Json::parse(document)) << text << "\n" << document;
    EXPECT_TRUE(Validator(schema).valid(value)) << text << "\n" << document;
  }
}

TEST(Schema, WalksEndInValidDocuments) {
  Rng rng(1);
  for (const Json& schema : tool_schemas()) check_walks(schema.dump(), 2, rng, k3_index());
  for (const Json& schema : tool_schemas()) check_walks(schema.dump(), 2, rng, small_index());
}

TEST(Schema, ValidDocumentsAreTaken) {
  Rng rng(2);
  std::size_t found = 0;
  for (const Json& schema : tool_schemas()) {
    const auto grammar = compile_document(k3_index(), schema.dump());
    Guesser guesser(schema, rng);
    for (int i = 0; i < 3; ++i) {
      Json document;
      if (!guesser.document(document)) continue;
      ++found;
      EXPECT_TRUE(takes_text(grammar, document.dump())) << schema.dump() << "\n" << document.dump();
      std::string spaced = document.dump();
      // Python's separators, where they can be put in without looking into strings.
      if (spaced.find_first_of("\\<") == std::string::npos) {
        std::string out;
        bool in_string = false;
        for (const char c : spaced) {
          out += c;
          if (c == '"') in_string = !in_string;
          if (!in_string && (c == ',' || c == ':')) out += ' ';
        }
        EXPECT_TRUE(takes_text(grammar, out)) << schema.dump() << "\n" << out;
      }
    }
  }
  EXPECT_GT(found, 500u);
}

TEST(Schema, MoreKeywordsWalkToValidDocuments) {
  Rng rng(3);
  for (
      const char* schema : {
          R"({"type":"array","prefixItems":[{"type":"integer"},{"const":"x"}],"items":{"type":"null"},"minItems":1,"maxItems":4})",
          R"({"type":"array","prefixItems":[{"type":"boolean"}],"items":false})",
          R"({"allOf":[{"type":"object","properties":{"a":{"type":"number"}}},{"properties":{"a":{"minimum":1,"maximum":2},"b":{"type":"string"}},"required":["a"]}]})",
          R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"],"additionalProperties":false},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"],"additionalProperties":false}]})",
          R"({"type":"object","patternProperties":{"^x_":{"type":"integer"},"^y":{"type":"boolean"}},"additionalProperties":false,"properties":{"x_1":{"maximum":5},"z":{}}})",
          R"({"type":"object","propertyNames":{"pattern":"^[a-c]{2}$"},"additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2})",
          R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"required":["c"],"minProperties":2,"maxProperties":2})",
          R"({"type":"object","properties":{"a":{"type":"null"}},"required":["a","undeclared"],"maxProperties":3})",
          R"({"type":"string","pattern":"^a.*b$","minLength":3,"maxLength":6})",
          R"({"type":"string","minLength":2,"maxLength":3})",
          R"({"type":"number","multipleOf":0.25,"exclusiveMinimum":-1,"maximum":3.5})",
          R"({"type":"integer","multipleOf":7,"minimum":-30})",
          R"({"const":{"a":[1,2.50,"x"],"b":null}})",
          R"({"type":["object","null"],"properties":{"t":{"type":"string","nullable":true,"maxLength":2}},"required":["t"],"additionalProperties":false})",
          R"({"minLength":2,"maxLength":4})",
          R"({"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"},"maxItems":2}},"required":["v"],"additionalProperties":false}},"$ref":"#/$defs/tree"})",
      }) {
    check_walks(schema, 12, rng, k3_index());
    check_walks(schema, 4, rng, small_index());
  }
}

TEST(Schema, MasksAgreeWithWhatIsAccepted) {
  Rng rng(4);
  const std::vector<Json>& schemas = tool_schemas();
  for (std::size_t i = 0; i < schemas.size(); i += 3) {
    Walk walk(compile_document(k3_index(), schemas[i].dump()), rng);
    for (std::size_t step = 0; step < 12 && !walk.matcher().finished(); ++step) {
      walk.check_mask(200);
      ASSERT_TRUE(walk.step(5)) << schemas[i].dump() << "\n" << walk.text();
    }
  }
}

TEST(Schema, WhatIsInvalidIsNotTaken) {
  const char* object =
      R"({"type":"object","properties":{"a":{"type":"integer","minimum":-3,"maximum":12},"b":{"enum":["x","y"]}},"required":["a"],"additionalProperties":false})";
  EXPECT_TRUE(takes(object, R"({"a":12})"));
  EXPECT_TRUE(takes(object, R"({"b":"y","a":-3})"));
  EXPECT_TRUE(takes(object, R"({"b": "x", "a": 0})"));
  for (const char* text : {R"({"a":13})", R"({"a":-4})", R"({"a":1.5})", R"({"b":"x"})", R"({})",
                           R"({"a":1,"a":2})", R"({"a":1,"c":2})", R"({"a":1,"b":"z"})",
                           R"({"a":01})", R"({"a" :1})", "{\"a\":\n1}", R"({"a":1,})", R"([1])"}) {
    EXPECT_FALSE(takes(object, text)) << text;
  }
  const char* open = R"({"type":"object","properties":{"a":{"type":"null"}}})";
  EXPECT_TRUE(takes(open, R"({"ab":1,"":2,"b":[{"c":"\ud83d\ude00"}]})"));
  EXPECT_FALSE(takes(open, R"({"a":1})"));
  EXPECT_FALSE(takes(open, R"({"\u0061":1})"));  // another spelling of a declared name
  const char* text = R"({"type":"string","maxLength":3})";
  EXPECT_TRUE(takes(text, R"("a\ud83d\ude00漢")"));
  EXPECT_TRUE(takes(text, "\"😀é\\n\""));
  EXPECT_FALSE(takes(text, R"("abcd")"));
  EXPECT_FALSE(takes(text, R"("\ud83d")"));
  EXPECT_FALSE(takes(text, "\"\n\""));
}

TEST(Schema, RecursionThatCannotEndIsLeftOut) {
  const char* schema =
      R"({"$defs":{"X":{"type":"object","properties":{"next":{"$ref":"#/$defs/X"}},"required":["next"]}},"type":"object","properties":{"node":{"$ref":"#/$defs/X"},"ok":{"type":"null"}}})";
  EXPECT_TRUE(takes(schema, R"({"ok":null})"));
  EXPECT_FALSE(takes(schema, R"({"node":)"));
  EXPECT_FALSE(takes(schema, R"({"node":{}})"));
  EXPECT_NE(refusal(R"({"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"]})")
                .find("no JSON value"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"allOf":[{"type":"string"},{"type":"null"}]})").find("no JSON value"),
            std::string::npos);
}

// Alternatives within alternatives do not double what is kept at every level.
TEST(Schema, NestedAlternativesStaySmall) {
  const char* schema =
      R"({"anyOf":[{"type":"array","items":{"$ref":"#"}},{"type":"array","items":{"$ref":"#"},"minItems":0},{"type":"array","items":{"$ref":"#"},"maxItems":3},{"const":1}]})";
  const auto grammar = compile_document(k3_index(), schema);
  GrammarMatcher matcher(grammar);
  std::vector<std::uint64_t> mask(grammar->index->words());
  const Tokenizer& t = grammar->index->tokenizer();
  for (int i = 0; i < 40; ++i) {
    matcher.fill_mask(mask);
    ASSERT_TRUE(matcher.accept(t.ranks().find_byte('[')));
  }
  EXPECT_EQ(takes(schema, "[[1,1,1,1],[[]],1]"), true);
  EXPECT_EQ(takes(schema, "[[1,1,1,1],[[]],2]"), false);
  for (int i = 0; i < 40; ++i) {
    matcher.fill_mask(mask);
    ASSERT_TRUE(matcher.accept(t.ranks().find_byte(']')));
  }
  EXPECT_TRUE(matcher.may_end());
}

TEST(Schema, FormatsAreEnforced) {
  const auto format = [](const char* f, const std::string& text) {
    return takes((std::string(R"({"type":"string","format":")") + f + "\"}").c_str(),
                 "\"" + text + "\"");
  };
  EXPECT_TRUE(format("date", "2024-02-29"));
  EXPECT_TRUE(format("date", "2000-02-29"));
  EXPECT_FALSE(format("date", "1900-02-29"));
  EXPECT_FALSE(format("date", "2023-02-29"));
  EXPECT_FALSE(format("date", "2024-04-31"));
  EXPECT_TRUE(format("date-time", "2024-01-31T23:59:59.5+01:00"));
  EXPECT_FALSE(format("date-time", "2024-01-31 23:59:59Z"));
  EXPECT_TRUE(format("uuid", "01234567-89ab-cdef-0123-456789abcdef"));
  EXPECT_FALSE(format("uuid", "0123456789abcdef0123456789abcdef"));
  EXPECT_TRUE(format("email", "a.b@example.org"));
  EXPECT_FALSE(format("email", "a.b.example.org"));
  EXPECT_TRUE(format("ipv4", "255.0.10.199"));
  EXPECT_FALSE(format("ipv4", "256.0.0.1"));
  for (const char* good : {"::", "::1", "1:2:3:4:5:6:7:8", "1::8", "fe80::1:2", "::ffff:1.2.3.4"}) {
    EXPECT_TRUE(format("ipv6", good)) << good;
  }
  for (const char* bad : {":::", "1:2:3", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::"}) {
    EXPECT_FALSE(format("ipv6", bad)) << bad;
  }
  EXPECT_TRUE(format("uri", "https://example.org/a?b=c#d"));
  EXPECT_FALSE(format("uri", "no uri"));
  EXPECT_TRUE(format("duration", "P1DT2H"));
  EXPECT_FALSE(format("duration", "P"));
  EXPECT_TRUE(takes(R"({"type":"integer","format":"int32"})", "2147483647"));
  EXPECT_FALSE(takes(R"({"type":"integer","format":"int32"})", "2147483648"));
  EXPECT_NE(refusal(R"({"type":"string","format":"regex"})").find("\"regex\" is not enforced"),
            std::string::npos);
}

TEST(Schema, WhatIsNotSupportedIsNamed) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"type":"object","properties":{"a":{"not":{}}}})", "\"#/properties/a\": \"not\""},
      {R"({"if":{},"then":{}})", "\"if\""},
      {R"({"type":"array","contains":{}})", "\"contains\""},
      {R"({"type":"array","uniqueItems":true})", "\"uniqueItems\""},
      {R"({"dependentRequired":{}})", "\"dependentRequired\""},
      {R"({"unevaluatedProperties":false})", "\"unevaluatedProperties\""},
      {R"({"requierd":["a"]})", "\"requierd\""},
      {R"({"type":"strng"})", "\"type\""},
      {R"({"$ref":"#/nowhere"})", "leads nowhere"},
      {R"({"$ref":"https://example.org/s"})", "\"$ref\""},
      {R"({"$ref":"#"})", "refers to itself alone"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "\"oneOf\""},
      {R"({"pattern":"(?=a)b"})", "look-ahead"},
      {R"({"pattern":"\\bfoo"})", "word boundary"},
      {R"({"pattern":"(a)\\1"})", "back reference"},
      {R"({"pattern":"\\p{L}"})", "Unicode property"},
      {R"({"type":"object","minProperties":2})", "\"minProperties\""},
      {R"({"minLength":-1})", "\"minLength\""},
      {R"({"enum":[]})", "\"enum\""},
      {"[]", "expected an object"},
      {"{", "no JSON"},
  };
  for (const auto& [schema, message] : kCases) {
    const std::string line = refusal(schema);
    EXPECT_NE(line.find(message), std::string::npos) << schema << "\n" << line;
  }
}

TEST(Schema, LimitsStopWhatIsTooLarge) {
  CompileOptions small;
  small.limits = {60, std::size_t{4} << 20};
  const char* doubling = R"({"type":"string","pattern":"^(a|b)*a(a|b){40}$"})";
  EXPECT_NE(error_of([&] { compile_document(k3_index(), doubling, small); }).find("pass 4 MiB"),
            std::string::npos);
  small.limits = {1e-9, std::size_t{64} << 20};
  EXPECT_NE(error_of([&] { compile_document(k3_index(), doubling, small); }).find("takes longer"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"type":"string","pattern":"(x{1,1000}){1,1000}"})").find("too large"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"type":"string","pattern":"a","minLength":100000000})").find("too large"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += R"({"items":)";
  EXPECT_NE(refusal(deep).find("deep"), std::string::npos);
  std::string wide = R"({"allOf":[)";  // 3^20 alternatives
  for (int i = 0; i < 20; ++i) {
    if (i > 0) wide += ",";
    wide += R"({"anyOf":[{"minimum":)" + std::to_string(i) + R"(},{"maximum":1},{"type":"null"}]})";
  }
  EXPECT_NE(refusal(wide + "]}").find("multiply"), std::string::npos);
}

TEST(Schema, ObjectsCanBeClosedAndSpaceChosen) {
  const char* schema = R"({"type":"object","properties":{"a":{}}})";
  CompileOptions options;
  options.schema.open_objects = false;
  options.schema.space.where = WhiteSpace::Where::none;
  const auto strict = compile_document(k3_index(), schema, options);
  EXPECT_TRUE(takes_text(strict, R"({"a":[1,2]})"));
  EXPECT_FALSE(takes_text(strict, R"({"a":[1, 2]})"));
  EXPECT_FALSE(takes_text(strict, R"({"b":1})"));
  options.schema.space.where = WhiteSpace::Where::anywhere;
  options.schema.space.run = 9;
  const auto loose = compile_document(k3_index(), schema, options);
  EXPECT_TRUE(takes_text(loose, "{\n    \"a\" : [\n        1 ,\n        2\n    ]\n}"));
  EXPECT_FALSE(takes_text(loose, "{\n          \"a\":1}"));
}

}  // namespace
}  // namespace triax::testing
