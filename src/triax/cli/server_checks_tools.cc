// Checks of tool calls, of their declarations, and of answers in a form.
#include <algorithm>
#include <set>

#include "triax/cli/server_checks.h"
#include "triax/core/error.h"

namespace triax::cli {
namespace {

using nlohmann::json;

constexpr int kTries = 24;  // seeds for an answer that talks up to its limit instead of calling

json tool(const std::string& name, const json& parameters) {
  return {
      {"type", "function"},
      {"function",
       {{"name", name}, {"description", "A tool."}, {"strict", true}, {"parameters", parameters}}}};
}

json record(const json& properties) {
  json names = json::array();
  for (const auto& [key, value] : properties.items()) names.push_back(key);
  return {{"type", "object"},
          {"properties", properties},
          {"required", names},
          {"additionalProperties", false}};
}

const json kCity = record({{"city", {{"type", "string"}, {"enum", {"Oslo", "Lima"}}}}});
const json kOff = {{"type", "disabled"}};

// Forms of arguments that a model of any skill can fill in few tokens.
const std::vector<std::pair<std::string, json>>& schemas() {
  static const std::vector<std::pair<std::string, json>> all = {
      {"an enumeration", kCity},
      {"numbers in ranges", record({{"n", {{"type", "integer"}, {"minimum", 1}, {"maximum", 9}}},
                                    {"on", {{"type", "boolean"}}}})},
      {"an object within",
       record({{"at", record({{"x", {{"enum", {1, 2}}}}, {"y", {{"enum", {3, 4}}}}})}})},
      {"a list", record({{"all",
                          {{"type", "array"},
                           {"items", {{"enum", {"a", "b"}}}},
                           {"minItems", 1},
                           {"maxItems", 2}}}})},
      {"a reference",
       {{"type", "object"},
        {"properties", {{"a", {{"$ref", "#/$defs/k"}}}}},
        {"required", {"a"}},
        {"additionalProperties", false},
        {"$defs", {{"k", {{"enum", {"yes", "no"}}}}}}}},
      {"no arguments", record(json::object())}};
  return all;
}

json target(const json& schema, const json& root) {
  if (!schema.contains("$ref")) return schema;
  const std::string ref = schema["$ref"];
  return root.at(json::json_pointer(ref.substr(1)));
}

bool is_type(const std::string& type, const json& v) {
  if (type == "integer") return v.is_number_integer();
  if (type == "number") return v.is_number();
  if (type == "string") return v.is_string();
  if (type == "boolean") return v.is_boolean();
  if (type == "array") return v.is_array();
  if (type == "object") return v.is_object();
  return v.is_null();
}

std::string fault_in(const json& given, const json& root, const json& v, const std::string& where) {
  const json schema = target(given, root);
  if (schema.contains("type") && !is_type(schema["type"], v)) {
    return fmt::format("{} is no {}", where, schema["type"].dump());
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), v) == schema["enum"].end()) {
    return fmt::format("{} is {}, none of {}", where, v.dump(), schema["enum"].dump());
  }
  if (v.is_number()) {
    if ((schema.contains("minimum") && v < schema["minimum"]) ||
        (schema.contains("maximum") && v > schema["maximum"])) {
      return fmt::format("{} is {}, out of range", where, v.dump());
    }
  }
  if (v.is_array()) {
    if (v.size() < schema.value("minItems", std::size_t{0}) ||
        v.size() > schema.value("maxItems", v.size())) {
      return fmt::format("{} has {} items", where, v.size());
    }
    for (std::size_t i = 0; i < v.size() && schema.contains("items"); ++i) {
      const auto fault = fault_in(schema["items"], root, v[i], fmt::format("{}[{}]", where, i));
      if (!fault.empty()) return fault;
    }
  }
  if (!v.is_object()) return {};
  for (const json& name : schema.value("required", json::array())) {
    if (!v.contains(name.get<std::string>())) return fmt::format("{} lacks {}", where, name.dump());
  }
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, value] : v.items()) {
    if (properties.contains(key)) {
      const auto fault = fault_in(properties[key], root, value, where + "." + key);
      if (!fault.empty()) return fault;
    } else if (schema.value("additionalProperties", true) == false) {
      return fmt::format("{} has {}, which is not declared", where, in_quotes(key));
    }
  }
  return {};
}

void check_call(const json& call, const std::string& name, const json& schema) {
  if (call.at("name") != name) fail("it calls {}", call.at("name").dump());
  if (call.at("type") != "function") fail("its type is {}", call.at("type").dump());
  const std::string id = call.at("id");
  const bool good = !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  if (!good) fail("its id is {}", in_quotes(id));
  const std::string text = call.at("arguments");
  const json arguments = json::parse(text, nullptr, false);
  if (arguments.is_discarded()) fail("its arguments are no JSON: {}", in_quotes(text));
  const std::string fault = schema_fault(schema, arguments);
  if (!fault.empty()) fail("its arguments do not fit the schema: {}", fault);
}

}  // namespace

std::string schema_fault(const json& schema, const json& value, const std::string& where) {
  return fault_in(schema, schema, value, where);
}

// A call that the request forces. A model may talk first: then it is asked with other seeds.
ChatReading ServerChecks::forced_call(json body, bool stream) {
  body["max_tokens"] = 400;
  body["thinking"] = kOff;
  ChatReading r;
  for (int seed = 0; seed < kTries; ++seed) {
    body["seed"] = seed;
    r = ask_ok(body, stream);
    if (r.finish != "length") break;
  }
  if (r.calls.empty()) fail("no call: finish_reason {}, {}", r.finish, in_quotes(r.content));
  if (r.finish != "tool_calls") fail("finish_reason is {}", in_quotes(r.finish));
  std::set<std::string> ids;
  for (const json& call : r.calls) {
    if (!ids.insert(call.at("id").get<std::string>()).second) fail("two calls have the same id");
  }
  return r;
}

void ServerChecks::tool_calls() {
  for (const auto& [what, schema] : schemas()) {
    both("a required call, strict: " + what, [&, &parameters = schema](bool stream) {
      const ChatReading r = forced_call(request({{"tools", json::array({tool("look", parameters)})},
                                                 {"tool_choice", "required"}}),
                                        stream);
      for (const json& call : r.calls) check_call(call, "look", parameters);
      return r.calls[0]["arguments"].get<std::string>();
    });
  }
  const json two = json::array({tool("look", kCity), tool("listen", kCity)});
  both("a named tool is the one that is called", [&](bool stream) {
    const json named = {{"type", "function"}, {"function", {{"name", "listen"}}}};
    const ChatReading r = forced_call(request({{"tools", two}, {"tool_choice", named}}), stream);
    check_call(r.calls[0], "listen", kCity);
    return std::string();
  });
  both("tool_choice auto: what is called is declared", [&](bool stream) {
    const ChatReading r =
        ask_ok(request({{"tools", two}, {"tool_choice", "auto"}, {"max_tokens", 32}}), stream);
    for (const json& call : r.calls) {
      if (call["name"] != "look" && call["name"] != "listen") fail("calls {}", call["name"].dump());
    }
    return r.finish;
  });
  both("tool_choice none: no call", [&](bool stream) {
    const ChatReading r = ask_ok(
        request({{"tools", two}, {"tool_choice", "none"}, {"max_tokens", 32}, {"thinking", kOff}}),
        stream);
    if (!r.calls.empty()) fail("it calls {}", r.calls[0]["name"].dump());
    return r.finish;
  });
  check("a call and its result make the next turn", [&] {
    json body = request({{"tools", two}, {"tool_choice", "required"}});
    const ChatReading r = forced_call(body, false);
    json calls = json::array(), after = body;
    for (const json& c : r.calls) {
      calls.push_back({{"id", c["id"]},
                       {"type", "function"},
                       {"function", {{"name", c["name"]}, {"arguments", c["arguments"]}}}});
    }
    after["messages"].push_back(
        {{"role", "assistant"}, {"content", r.content}, {"tool_calls", calls}});
    for (const json& c : calls) {
      after["messages"].push_back(
          {{"role", "tool"}, {"tool_call_id", c["id"]}, {"content", "It rains."}});
    }
    after["tool_choice"] = "auto";
    const ChatReading next = ask_ok(after);
    return fmt::format("{} prompt tokens", next.usage.at("prompt_tokens").get<std::int64_t>());
  });
  takes("tool_choice none without tools", {{"tool_choice", "none"}});
  takes("tool_choice auto without tools", {{"tool_choice", "auto"}});
  refuses("tool_choice maybe", {{"tools", two}, {"tool_choice", "maybe"}});
  refuses("tool_choice required without tools", {{"tool_choice", "required"}});
  refuses("tool_choice required with an empty list",
          {{"tools", json::array()}, {"tool_choice", "required"}});
}

void ServerChecks::tool_declarations() {
  const auto declare = [&](const json& t) { return json{{"tools", json::array({t})}}; };
  takes("a tool without parameters",
        declare({{"type", "function"}, {"function", {{"name", "f"}}}}));
  takes("a tool name of 256 characters", declare(tool(std::string(256, 'f'), kCity)));
  refuses("a tool name of 257 characters", declare(tool(std::string(257, 'f'), kCity)));
  refuses("a tool name that begins with a digit", declare(tool("1f", kCity)));
  refuses("a tool name with @", declare(tool("f@g", kCity)));
  refuses("an empty tool name", declare(tool("", kCity)));
  refuses("a tool without a name",
          declare({{"type", "function"}, {"function", {{"description", "x"}}}}));
  refuses("a tool without a function", declare({{"type", "function"}}));
  refuses("a tool without a type", declare({{"function", {{"name", "f"}}}}));
  refuses("two tools of one name", {{"tools", json::array({tool("f", kCity), tool("f", kCity)})}});
}

// Tools that system messages declare.
void ServerChecks::dynamic_tools() {
  const auto with = [&](const json& tools, const json& content = "", const char* role = "system") {
    json body = request();
    json message = {{"role", role}, {"tools", tools}};
    if (!content.is_null()) message["content"] = content;
    body["messages"].insert(body["messages"].begin(), message);
    return body;
  };
  const json one = json::array({tool("look", kCity)});
  both("a tool of a system message can be required", [&](bool stream) {
    json body = with(one);
    body["tool_choice"] = "required";
    const ChatReading r = forced_call(body, stream);
    check_call(r.calls[0], "look", kCity);
    return std::string();
  });
  check("global tools and those of a message stand side by side", [&] {
    json body = with(one);
    body["tools"] = json::array({tool("listen", kCity)});
    ask_ok(body);
    return std::string();
  });
  json twice = with(one);
  twice["tools"] = one;
  refuses_body("a tool of a message with a global tool's name", twice.dump());
  refuses_body("tools of a message with text", with(one, "Some text.").dump());
  refuses_body("tools of a user's message", with(one, "", "user").dump());
  refuses_body("tools of a message that are no list", with("look").dump());
  refuses_body("tools of a message that are no objects", with(json::array({"look"})).dump());
}

void ServerChecks::formats() {
  const json schema = record({{"a", {{"enum", {1, 2}}}}, {"ok", {{"type", "boolean"}}}});
  const json form = {{"type", "json_schema"},
                     {"json_schema", {{"name", "answer"}, {"schema", schema}, {"strict", true}}}};
  both("response_format json_schema: it fits, in one line", [&](bool stream) {
    const ChatReading r = ask_ok(
        request({{"response_format", form}, {"thinking", kOff}, {"max_tokens", 400}}), stream);
    const json value = json::parse(r.content, nullptr, false);
    if (value.is_discarded()) fail("it is no JSON: {}", in_quotes(r.content));
    const std::string fault = schema_fault(schema, value);
    if (!fault.empty()) fail("{}", fault);
    if (r.content.find_first_of("\n\t") != std::string::npos) fail("it has line ends or tabs");
    return r.content;
  });
  check("response_format json_object: it begins an object", [&] {
    const ChatReading r = ask_ok(request(
        {{"response_format", {{"type", "json_object"}}}, {"thinking", kOff}, {"max_tokens", 32}}));
    if (!r.content.starts_with('{')) fail("it says {}", in_quotes(r.content));
    return r.finish;
  });
  takes("response_format text", {{"response_format", {{"type", "text"}}}});
  const auto refused = [&](const std::string& name, const json& value) {
    refuses("response_format " + name, {{"response_format", value}});
  };
  refused("of an unknown type", {{"type", "xml"}});
  refused("that is a text", "json_object");
  refused("json_schema alone", {{"type", "json_schema"}});
  refused("without a name", {{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}});
  refused("without a schema", {{"type", "json_schema"}, {"json_schema", {{"name", "a"}}}});
  refused("with strict as text",
          {{"type", "json_schema"},
           {"json_schema", {{"name", "a"}, {"schema", schema}, {"strict", "yes"}}}});
}

}  // namespace triax::cli
