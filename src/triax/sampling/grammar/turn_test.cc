// Whole turns of the chat format.
#include <gtest/gtest.h>

#include "triax/sampling/grammar/grammar_testing.h"

namespace triax::testing {
namespace {

using Choice = TurnRules::Choice;
using Format = TurnRules::Format;
using Opened = TurnRules::Opened;

// Ids of a turn written with O, C, S and E for the markers and 'text' between them: each text is
// encoded by itself.
std::vector<std::int32_t> turn_ids(const Tokenizer& t, const std::string& turn) {
  std::vector<std::int32_t> ids;
  std::string text;
  bool in_text = false;
  for (const char c : turn) {
    if (c == '\'') {
      if (in_text) {
        for (const std::int32_t id : t.encode(text)) ids.push_back(id);
        text.clear();
      }
      in_text = !in_text;
    } else if (in_text) {
      text += c;
    } else if (c != ' ') {
      ids.push_back(t.required_id(c == 'O'   ? Role::Open
                                  : c == 'C' ? Role::Close
                                  : c == 'S' ? Role::Sep
                                             : Role::EndOfMsg));
    }
  }
  return ids;
}

enum class Verdict { refused, unfinished, finished };

Verdict follow(const std::shared_ptr<const Grammar>& grammar, const std::string& turn) {
  GrammarMatcher matcher(grammar);
  std::vector<std::uint64_t> mask(grammar->index->words());
  for (const std::int32_t id : turn_ids(grammar->index->tokenizer(), turn)) {
    matcher.fill_mask(mask);
    const bool allowed = mask_allows(mask, static_cast<std::size_t>(id));
    EXPECT_EQ(matcher.accept(id), allowed) << turn;
    if (!allowed) return Verdict::refused;
  }
  return matcher.finished() ? Verdict::finished : Verdict::unfinished;
}

const std::string kToResponse = "'why' C 'think' S O 'response' S ";
const std::string kEnd = "C 'message' S E";
std::string call(const std::string& name, int index, const std::string& body) {
  return "O 'call' ' tool' '=\"' '" + name + "' '\"' ' index' '=\"' '" + std::to_string(index) +
         "' '\"' S " + body + " C 'call' S ";
}
std::string argument(const std::string& key, const std::string& type, const std::string& text) {
  return "O 'argument' ' key' '=\"' '" + key + "' '\"' ' type' '=\"' '" + type + "' '\"' S '" +
         text + "' C 'argument' S ";
}
std::string tools(const std::string& calls) {
  return "O 'tools' S " + calls + "C 'tools' S ";
}
const std::string kSaid = "'ok' C 'response' S ";

TurnRules two_tools() {
  TurnRules rules;
  rules.tools = {
      {"weather",
       R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":9},"unit":{"enum":["c","f"]},"where":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"number"}}]}},"required":["city"],"additionalProperties":false})"},
      {"ping", ""}};
  return rules;
}

class Turns : public ::testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<const TokenIndex> index() const {
    return GetParam() ? k3_index() : small_index();
  }
  std::shared_ptr<const Grammar> turn(const TurnRules& rules) const {
    return compile_turn(index(), rules);
  }
};
INSTANTIATE_TEST_SUITE_P(Vocabularies, Turns, ::testing::Values(true, false));

TEST_P(Turns, TextWithoutTools) {
  TurnRules rules;
  EXPECT_EQ(follow(turn(rules), kToResponse + kSaid + kEnd), Verdict::finished);
  EXPECT_EQ(follow(turn(rules), "C 'think' S O 'response' S C 'response' S " + kEnd),
            Verdict::finished);
  EXPECT_EQ(follow(turn(rules), kToResponse + kSaid + tools(call("f", 1, ""))), Verdict::refused);
  EXPECT_EQ(follow(turn(rules), "'x' O"), Verdict::refused);
  EXPECT_EQ(follow(turn(rules), "'x' E"), Verdict::refused);
  rules.opened = Opened::response;
  EXPECT_EQ(follow(turn(rules), kSaid + kEnd), Verdict::finished);
  EXPECT_EQ(follow(turn(rules), "'<|close|>think<|sep|>' C 'response' S " + kEnd),
            Verdict::finished);  // letters, not markers
}

TEST_P(Turns, CallsOfDeclaredTools) {
  const auto grammar = turn(two_tools());
  const std::string start = kToResponse + kSaid;
  const auto verdict = [&](const std::string& calls) {
    return follow(grammar, start + tools(calls) + kEnd);
  };
  const std::string city = argument("city", "string", "Paris \"&\n</x> {");
  EXPECT_EQ(follow(grammar, start + kEnd), Verdict::finished);
  EXPECT_EQ(verdict(call("ping", 1, "")), Verdict::finished);
  EXPECT_EQ(verdict(call("weather", 1, city)), Verdict::finished);
  EXPECT_EQ(verdict(call("weather", 1, argument("days", "number", "3") + city)), Verdict::finished);
  EXPECT_EQ(verdict(call("weather", 1, city + argument("unit", "string", "f"))), Verdict::finished);
  EXPECT_EQ(verdict(call("weather", 1, city + argument("where", "null", "null"))),
            Verdict::finished);
  EXPECT_EQ(verdict(call("weather", 1, city + argument("where", "array", "[1, 2.5]"))),
            Verdict::finished);
  EXPECT_EQ(verdict(call("ping", 1, "") + call("weather", 2, city) + call("ping", 3, "")),
            Verdict::finished);
  for (const std::string& calls :
       {call("pong", 1, ""), call("pin", 1, ""), call("ping", 2, ""), call("weather", 1, ""),
        call("ping", 1, city), call("weather", 1, city + city),
        call("weather", 1, city + argument("days", "number", "10")),
        call("weather", 1, city + argument("days", "string", "3")),
        call("weather", 1, city + argument("unit", "string", "k")),
        call("weather", 1, city + argument("where", "array", "[null]")),
        call("weather", 1, city + argument("country", "string", "F")), std::string()}) {
    EXPECT_EQ(verdict(calls), Verdict::refused) << calls;
  }
}

TEST_P(Turns, ToolChoice) {
  TurnRules rules = two_tools();
  const std::string start = kToResponse + kSaid;
  const std::string ping = call("ping", 1, "");
  const std::string city = call("weather", 1, argument("city", "string", "x"));
  rules.choice = Choice::none;
  EXPECT_EQ(follow(turn(rules), start + tools(ping) + kEnd), Verdict::refused);
  rules.choice = Choice::required;
  EXPECT_EQ(follow(turn(rules), start + kEnd), Verdict::refused);
  EXPECT_EQ(follow(turn(rules), start + tools(ping) + kEnd), Verdict::finished);
  rules.parallel = false;
  EXPECT_EQ(follow(turn(rules), start + tools(ping + call("ping", 2, "")) + kEnd),
            Verdict::refused);
  rules.choice = Choice::named;
  rules.named = "weather";
  EXPECT_EQ(follow(turn(rules), start + tools(ping) + kEnd), Verdict::refused);
  EXPECT_EQ(follow(turn(rules), start + tools(city) + kEnd), Verdict::finished);
  rules.named = "other";
  EXPECT_NE(error_of([&] { turn(rules); }).find("\"other\" is not among the tools"),
            std::string::npos);
  rules.tools.clear();
  rules.choice = Choice::required;
  EXPECT_NE(error_of([&] { turn(rules); }).find("no tool is declared"), std::string::npos);
  rules.tools = {{"a", ""}, {"a", ""}};
  EXPECT_NE(error_of([&] { turn(rules); }).find("there twice"), std::string::npos);
  rules.tools = {{"a", R"({"type":"object","required":["x"],"properties":{"x":false}})"}};
  EXPECT_NE(error_of([&] { turn(rules); }).find("tool \"a\": no value"), std::string::npos);
}

TEST_P(Turns, Formats) {
  TurnRules rules;
  rules.format = Format::json_schema;
  rules.schema =
      R"({"type":"object","properties":{"a":{"enum":[1,2]}},"required":["a"],"additionalProperties":false})";
  const auto say = [](const std::string& text) {
    return kToResponse + "'" + text + "' C 'response' S ";
  };
  EXPECT_EQ(follow(turn(rules), say(R"({"a":1})") + kEnd), Verdict::finished);
  EXPECT_EQ(follow(turn(rules), say(R"({"a":3})") + kEnd), Verdict::refused);
  EXPECT_EQ(follow(turn(rules), say(R"({"a":1} )") + kEnd), Verdict::refused);
  EXPECT_EQ(follow(turn(rules), say("") + kEnd), Verdict::refused);
  rules.tools = two_tools().tools;
  const std::string calls = tools(call("ping", 1, "")) + kEnd;
  EXPECT_EQ(follow(turn(rules), say(R"({"a":2})") + kEnd), Verdict::finished);
  EXPECT_EQ(follow(turn(rules), say(R"({"a":2})") + calls), Verdict::finished);
  EXPECT_EQ(follow(turn(rules), say("") + calls), Verdict::finished);
  EXPECT_EQ(follow(turn(rules), say("") + kEnd), Verdict::refused);
  rules.tools.clear();
  rules.format = Format::json_object;
  EXPECT_EQ(follow(turn(rules), say(R"({"x": [1, {"y": null}], "é": "\u00e9"})") + kEnd),
            Verdict::finished);
  EXPECT_EQ(follow(turn(rules), say("[1]") + kEnd), Verdict::refused);
}

TEST_P(Turns, ParametersThatAreNoObjectsAreABlock) {
  TurnRules rules;
  rules.tools = {{"f", R"({"anyOf":[{"type":"string"},{"type":"number"}]})"}};
  const auto verdict = [&](const std::string& text) {
    return follow(turn(rules), kToResponse + kSaid +
                                   tools(call("f", 1,
                                              "O 'json' ' type' '=\"' 'object' '\"' S '" + text +
                                                  "' C 'json' S ")) +
                                   kEnd);
  };
  EXPECT_EQ(verdict("\"x\""), Verdict::finished);
  EXPECT_EQ(verdict("12"), Verdict::finished);
  EXPECT_EQ(verdict("{}"), Verdict::refused);
}

TEST_P(Turns, NamesAreEscapedAndOtherArgumentsWritten) {
  TurnRules rules;
  rules.tools = {
      {"we\"ird&name",
       R"({"type":"object","properties":{"a\"b&c":{"type":"null"}},"additionalProperties":{"type":"integer"}})"}};
  const auto verdict = [&](const std::string& arguments) {
    return follow(turn(rules),
                  kToResponse + kSaid + tools(call("we&quot;ird&amp;name", 1, arguments)) + kEnd);
  };
  EXPECT_EQ(verdict(argument("a&quot;b&amp;c", "null", "null")), Verdict::finished);
  EXPECT_EQ(verdict(argument("other", "number", "7") + argument("a&amp;", "number", "-1")),
            Verdict::finished);
  EXPECT_EQ(verdict(argument("a&quot;b&amp;c", "number", "7")), Verdict::refused);
  EXPECT_EQ(verdict(argument("other", "string", "x")), Verdict::refused);
  EXPECT_EQ(verdict(argument("a&b", "number", "7")), Verdict::refused);
}

TEST_P(Turns, ForcedTokens) {
  TurnRules rules = two_tools();
  rules.choice = Choice::named;
  rules.named = "ping";
  GrammarMatcher matcher(turn(rules));
  EXPECT_TRUE(matcher.forced(100).empty());  // thinking is free
  const Tokenizer& t = index()->tokenizer();
  ASSERT_TRUE(matcher.accept(t.required_id(Role::Close)));
  EXPECT_EQ(matcher.forced(100), turn_ids(t, "'think' S O 'response' S"));
  for (const std::int32_t id : matcher.forced(100)) ASSERT_TRUE(matcher.accept(id));
  ASSERT_TRUE(matcher.accept(t.required_id(Role::Close)));
  const std::vector<std::int32_t> rest = matcher.forced(1000);
  EXPECT_EQ(rest, turn_ids(t, "'response' S " + tools(call("ping", 1, "")) + kEnd));
  EXPECT_EQ(matcher.forced(3).size(), 3u);
  for (const std::int32_t id : rest) ASSERT_TRUE(matcher.accept(id));
  EXPECT_TRUE(matcher.finished());
  EXPECT_FALSE(matcher.accept(rest[0]));
}

TEST_P(Turns, RollbackAndForkAreIndependent) {
  const auto grammar = turn(two_tools());
  GrammarMatcher matcher(grammar);
  const std::vector<std::int32_t> ids =
      turn_ids(index()->tokenizer(),
               kToResponse + kSaid + tools(call("weather", 1, argument("city", "string", "abc"))));
  std::vector<std::vector<std::uint64_t>> masks;
  std::vector<std::uint64_t> mask(grammar->index->words());
  for (const std::int32_t id : ids) {
    matcher.fill_mask(mask);
    masks.push_back(mask);
    ASSERT_TRUE(matcher.accept(id));
  }
  const auto copy = matcher.fork();
  copy->fill_mask(mask);
  const auto at_end = mask;
  for (std::size_t back = 1; back <= 20; ++back) {
    GrammarMatcher other = matcher;
    other.rollback(back);
    other.fill_mask(mask);
    EXPECT_EQ(mask, masks[ids.size() - back]);
    for (std::size_t i = ids.size() - back; i < ids.size(); ++i) ASSERT_TRUE(other.accept(ids[i]));
    other.fill_mask(mask);
    EXPECT_EQ(mask, at_end);
  }
}

TEST_P(Turns, PrefilledTextGoesOn) {
  TurnRules rules;
  rules.opened = Opened::response;
  rules.format = Format::json_schema;
  rules.schema = R"({"type":"object","properties":{"abc":{"type":"integer"}},"required":["abc"]})";
  GrammarMatcher matcher(turn(rules));
  EXPECT_FALSE(matcher.accept_text("{\"abc\": x"));
  ASSERT_TRUE(matcher.accept_text("{\"ab"));
  for (const std::int32_t id : turn_ids(index()->tokenizer(), "'c\":12}' C 'response' S " + kEnd)) {
    ASSERT_TRUE(matcher.accept(id));
  }
  EXPECT_TRUE(matcher.finished());
}

// Long sequences keep their memory, and their way back.
TEST_P(Turns, LongCountedTextIsLetGo) {
  TurnRules rules;
  rules.opened = Opened::response;
  rules.format = Format::json_schema;
  rules.schema = R"({"type":"string","maxLength":60000,"minLength":59999})";
  GrammarMatcher matcher(turn(rules));
  const Tokenizer& t = index()->tokenizer();
  const std::int32_t quote = t.ranks().find_byte('"'), letter = t.ranks().find_byte('a');
  ASSERT_TRUE(matcher.accept(quote));
  for (int i = 0; i < 59999; ++i) ASSERT_TRUE(matcher.accept(letter));
  matcher.rollback(100);
  EXPECT_FALSE(matcher.accept(quote));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(matcher.accept(letter));
  ASSERT_TRUE(matcher.accept(letter));
  EXPECT_FALSE(matcher.accept(letter));
  EXPECT_TRUE(matcher.accept(quote));
}

// Every turn that is drawn ends, and its arguments are valid.
TEST_P(Turns, WalksThroughCallsOfEveryToolSchema) {
  Rng rng(5);
  std::size_t at = 0;
  for (const Json& schema : tool_schemas()) {
    if (++at % (GetParam() ? 2 : 5) != 0 || is_endless(schema)) continue;
    TurnRules rules;
    rules.opened = Opened::response;
    rules.tools = {{"f", schema.dump()}};
    rules.choice = Choice::named;
    rules.named = "f";
    Walk walk(turn(rules), rng);
    walk.hint(schema, true);
    ASSERT_TRUE(walk.finish(3, 4000)) << schema.dump() << "\n" << walk.text().substr(0, 400);
    // Arguments of the text, read back.
    const std::string text = walk.text();
    Json arguments = Json::object();
    const std::string open = "<|open|>argument key=\"",
                      block = "<|open|>json type=\"object\"<|sep|>";
    std::size_t from = text.find("<|open|>call");
    if (const std::size_t json = text.find(block, from); json != std::string::npos) {
      const std::size_t start = json + block.size();
      arguments = Json::parse(text.substr(start, text.find("<|close|>json", start) - start));
    }
    while ((from = text.find(open, from)) != std::string::npos) {
      from += open.size();
      std::string key = text.substr(from, text.find("\" type=\"", from) - from);
      from += key.size() + 8;
      const std::string type = text.substr(from, text.find('"', from) - from);
      from = text.find("<|sep|>", from) + 7;
      const std::string value = text.substr(from, text.find("<|close|>argument", from) - from);
      for (const auto& [entity, c] : {std::pair{"&quot;", "\""}, std::pair{"&amp;", "&"}}) {
        for (std::size_t p; (p = key.find(entity)) != std::string::npos;) {
          key.replace(p, std::string(entity).size(), c);
        }
      }
      Json parsed;
      ASSERT_NO_THROW(parsed = type == "string" ? Json(value) : Json::parse(value)) << value;
      arguments[key] = parsed;
    }
    EXPECT_TRUE(Validator(schema).valid(arguments)) << schema.dump() << "\n" << text;
  }
}

}  // namespace
}  // namespace triax::testing
