// Requests: what is read from them, and errors that name the field.
#include "triax/chat/conversation.h"

#include <gmock/gmock.h>

#include "triax/chat/chat_testing.h"

namespace triax::chat {
namespace {

using testing::golden;
using ::testing::HasSubstr;
using testing::Refusal;
using testing::refusal_of;

const std::string kHello = R"("messages":[{"role":"user","content":"hi"}])";

Conversation with(const std::string& fields) {
  return parse_conversation("{" + kHello + (fields.empty() ? "" : "," + fields) + "}");
}

TEST(Conversation, ReadsEveryPartOfAMessage) {
  const Conversation c = parse_conversation(R"({"model":"x","unknown":{"a":[1]},"messages":[
    {"role":"developer","content":"rules"},
    {"role":"user","name":"marco","content":[{"type":"text","text":"a"},
      {"type":"image_url","image_url":{"url":"data:,"}},{"type":"video_url","video_url":"data:;v"}]},
    {"role":"assistant","content":null,"reasoning_content":"","reasoning":"r","tool_calls":[
      {"id":"i","type":"function","function":{"name":"f","arguments":"{}"}},{"name":"g"}]},
    {"role":"tool","tool_call_id":"i","tool":"t","content":"done"},
    {"role":"assistant","content":"so","partial":true}]})");
  ASSERT_EQ(c.messages.size(), 5u);
  EXPECT_EQ(c.messages[0].author, Author::system);
  EXPECT_EQ(c.messages[1].name, "marco");
  ASSERT_EQ(c.messages[1].content.size(), 3u);
  EXPECT_EQ(c.messages[1].content[1].kind, Part::Kind::image);
  EXPECT_EQ(c.messages[1].content[1].text, "data:,");
  EXPECT_EQ(c.messages[1].content[2].kind, Part::Kind::video);
  EXPECT_EQ(c.messages[1].content[2].text, "data:;v");
  EXPECT_EQ(c.messages[1].text(), "a");
  EXPECT_EQ(c.messages[2].reasoning, "r");
  ASSERT_EQ(c.messages[2].tool_calls.size(), 2u);
  EXPECT_EQ(c.messages[2].tool_calls[0].arguments.text(), "{}");
  EXPECT_TRUE(c.messages[2].tool_calls[1].arguments.is_null());
  EXPECT_EQ(c.messages[3].tool_call_id, "i");
  EXPECT_EQ(c.messages[3].tool, "t");
  EXPECT_TRUE(c.messages[4].partial);
  EXPECT_TRUE(c.thinking);
  EXPECT_EQ(c.effort, "max");
}

TEST(Conversation, ThinkingAndEffort) {
  const auto effort = [](const std::string& fields) {
    const Conversation c = with(fields);
    return c.thinking ? c.effort.value_or("-") : std::string("off");
  };
  EXPECT_EQ(effort(""), "max");
  EXPECT_EQ(effort(R"("reasoning_effort":"low")"), "low");
  EXPECT_EQ(effort(R"("reasoning_effort":"none")"), "off");
  EXPECT_EQ(effort(R"("reasoning_effort":null)"), "max");
  EXPECT_EQ(effort(R"("thinking":{"type":"disabled"})"), "off");
  EXPECT_EQ(effort(R"("thinking":{"type":"disabled"},"reasoning_effort":"high")"), "off");
  EXPECT_EQ(effort(R"("thinking":{"type":"enabled","effort":"high"},"reasoning_effort":"low")"),
            "high");
  EXPECT_EQ(effort(R"("thinking":{"type":"enabled"},"reasoning_effort":"low")"), "low");
  EXPECT_EQ(effort(R"("thinking":{"type":"enabled","keep":"all"})"), "max");
  EXPECT_EQ(effort(R"("thinking":{"effort":"low"},"reasoning_effort":"none")"), "low");
  EXPECT_EQ(effort(R"("chat_template_kwargs":{"thinking":false,"preserve_thinking":true})"), "off");
  EXPECT_EQ(effort(R"("chat_template_kwargs":{"thinking_effort":"high"})"), "high");
  EXPECT_EQ(effort(R"("reasoning_effort":"low","chat_template_kwargs":{"thinking_effort":"high"})"),
            "low");
  ParseRules silent;
  silent.effort.reset();
  EXPECT_FALSE(parse_conversation("{" + kHello + "}", silent).effort);
}

TEST(Conversation, ErrorsNameTheField) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "messages"},
      {R"([])", ""},
      {R"({"messages":)", ""},
      {R"({"messages":{}})", "messages"},
      {R"({"messages":["x"]})", "messages[0]"},
      {R"({"messages":[{"content":"x"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"user"},{"role":"alien","content":"x"}]})", "messages[1].role"},
      {R"({"messages":[{"role":7}]})", "messages[0].role"},
      {R"({"messages":[{"role":"user","name":1}]})", "messages[0].name"},
      {R"({"messages":[{"role":"user","content":5}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":[1]}]})", "messages[0].content[0]"},
      {R"({"messages":[{"role":"user","content":[{"type":"smell"}]}]})",
       "messages[0].content[0].type"},
      {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})",
       "messages[0].content[0].text"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
       "messages[0].content[0].image_url"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})",
       "messages[0].content[0].image_url.url"},
      {R"({"messages":[{"role":"assistant","reasoning_content":1}]})",
       "messages[0].reasoning_content"},
      {R"({"messages":[{"role":"assistant","partial":"yes"}]})", "messages[0].partial"},
      {R"({"messages":[{"role":"assistant","tool_calls":{}}]})", "messages[0].tool_calls"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{}}]}]})",
       "messages[0].tool_calls[0].function.name"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":[1]}}]}]})",
       "messages[0].tool_calls[0].function.arguments"},
      {R"({"messages":[{"role":"tool","tool_call_id":4}]})", "messages[0].tool_call_id"},
      {R"({"messages":[{"role":"system","tools":"f"}]})", "messages[0].tools"},
      {R"({"messages":[{"role":"system","tools":["f"]}]})", "messages[0].tools[0]"},
      {"{" + kHello + R"(,"tools":{}})", "tools"},
      {"{" + kHello + R"(,"tools":[3]})", "tools[0]"},
      {"{" + kHello + R"(,"tool_choice":"maybe"})", "tool_choice"},
      {"{" + kHello + R"(,"tool_choice":{"type":"tool"}})", "tool_choice.type"},
      {"{" + kHello + R"(,"tool_choice":{"type":"function"}})", "tool_choice.function"},
      {"{" + kHello + R"(,"tool_choice":{"type":"function","function":{}}})",
       "tool_choice.function.name"},
      {"{" + kHello + R"(,"response_format":{"type":"yaml"}})", "response_format.type"},
      {"{" + kHello + R"(,"response_format":3})", "response_format"},
      {"{" + kHello + R"(,"thinking":"on"})", "thinking"},
      {"{" + kHello + R"(,"thinking":{"type":"deep"}})", "thinking.type"},
      {"{" + kHello + R"(,"reasoning_effort":3})", "reasoning_effort"},
      {"{" + kHello + R"(,"chat_template_kwargs":[]})", "chat_template_kwargs"}};
  for (const auto& [json, field] : cases) {
    const Refusal refusal = refusal_of([&] { parse_conversation(json); });
    EXPECT_EQ(refusal.field, field) << json << ": " << refusal.line;
  }
}

std::string contract_field(const std::string& json) {
  const JsonValue request = JsonValue::parse(json);
  const Conversation c = parse_conversation(request);
  return refusal_of([&] { check_contract(c, request); }).field;
}

std::string tool(const std::string& name) {
  return R"({"type":"function","function":{"name":")" + name + "\"}}";
}

TEST(Contract, NamesWhatTheHostedApiRefuses) {
  const std::string open = "{" + kHello + ",";
  EXPECT_EQ(contract_field(R"({"messages":[]})"), "messages");
  for (const std::string& name : {std::string(), std::string("1f"), std::string("a@b"),
                                  std::string("a b"), std::string(257, 'a')}) {
    EXPECT_EQ(contract_field(open + "\"tools\":[" + tool(name) + "]}"), "tools[0].function.name")
        << name;
  }
  EXPECT_EQ(contract_field(open + R"("tools":[{"function":{"name":"f"}}]})"), "tools[0].type");
  EXPECT_EQ(contract_field(open + R"("tools":[{"type":"function"}]})"), "tools[0].function");
  EXPECT_EQ(contract_field(
                open + R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}]})"),
            "tools[0].function.parameters");
  EXPECT_EQ(contract_field(open + "\"tools\":[" + tool("f") + "," + tool("f") + "]}"),
            "tools[1].function.name");
  EXPECT_EQ(contract_field(R"({"messages":[{"role":"system","tools":[)" + tool("f") +
                           R"(]}],"tools":[)" + tool("f") + "]}"),
            "messages[0].tools[0].function.name");
  EXPECT_EQ(contract_field(R"({"messages":[{"role":"user","tools":[]}]})"), "messages[0].tools");
  EXPECT_EQ(contract_field(R"({"messages":[{"role":"system","content":"x","tools":[]}]})"),
            "messages[0].content");
  EXPECT_EQ(contract_field(R"({"messages":[{"role":"tool","name":"f","content":"x"}]})"),
            "messages[0].tool_call_id");
  EXPECT_EQ(contract_field(open + R"("tool_choice":"required"})"), "tool_choice");
  EXPECT_EQ(contract_field(open + R"("tools":[],"tool_choice":"required"})"), "tool_choice");
  EXPECT_EQ(contract_field(open + "\"tools\":[" + tool("f") +
                           R"(],"tool_choice":{"type":"function","function":{"name":"g"}}})"),
            "tool_choice.function.name");
  EXPECT_EQ(contract_field(open + R"("response_format":"json_object"})"), "response_format");
  EXPECT_EQ(contract_field(open + R"("response_format":{"type":"json_schema"}})"),
            "response_format.json_schema");
  EXPECT_EQ(contract_field(
                open + R"("response_format":{"type":"json_schema","json_schema":{"schema":{}}}})"),
            "response_format.json_schema.name");
  EXPECT_EQ(contract_field(
                open + R"("response_format":{"type":"json_schema","json_schema":{"name":"n"}}})"),
            "response_format.json_schema.schema");
}

TEST(Contract, TakesWhatTheHostedApiTakes) {
  for (
      const std::string& json :
      {"{" + kHello + R"(,"tool_choice":"none"})", "{" + kHello + R"(,"tool_choice":"auto"})",
       R"({"messages":[{"role":"system","tools":[)" + tool("f") +
           R"(]},{"role":"user","content":"x"}],"tool_choice":"required"})",
       "{" + kHello + ",\"tools\":[" + tool("_f-1") + "," + tool("f") + "]}",
       "{" + kHello +
           R"(,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{},"strict":false}}})"}) {
    const JsonValue request = JsonValue::parse(json);
    EXPECT_NO_THROW(check_contract(parse_conversation(request), request)) << json;
  }
}

TEST(Contract, EverySchemaOfTheVerifierIsAToolsParameters) {
  std::size_t count = 0;
  for (const JsonValue& entry : golden("tool_schemas.json")) {
    const std::string json =
        "{" + kHello + R"(,"tools":[{"type":"function","function":{"name":"f","parameters":)" +
        json_text(*entry.find("schema"), kJsonCompact) + "}}],\"tool_choice\":\"required\"}";
    const JsonValue request = JsonValue::parse(json);
    const Conversation c = parse_conversation(request);
    ASSERT_NO_THROW(check_contract(c, request)) << json;
    EXPECT_THAT(render(c).text(), HasSubstr(json_text(*entry.find("schema"), kJsonSorted)));
    ++count;
  }
  EXPECT_EQ(count, 212u);
}

TEST(Conversation, WritesWhatItReads) {
  const std::string json =
      R"({"messages":[{"role":"system","content":"s"},)"
      R"({"role":"user","content":[{"type":"text","text":"a"},)"
      R"({"type":"image_url","image_url":{"url":"data:,"}}]},)"
      R"({"role":"assistant","content":"","reasoning_content":"r","tool_calls":)"
      R"([{"id":"i","type":"function","function":{"name":"f","arguments":)"
      R"("{\"a\": 1e2}"}}]},)"
      R"({"role":"tool","content":"x","tool_call_id":"i"}],)"
      R"("thinking":{"type":"enabled","effort":"low"}})";
  EXPECT_EQ(json_text(request_json(parse_conversation(json)), kJsonCompact), json);
}

}  // namespace
}  // namespace triax::chat
