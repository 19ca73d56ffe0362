// Declares tools, asks for one of them, and answers with its result.
#include "triax/world/tools.h"

#include <algorithm>
#include <array>
#include <set>

#include "triax/core/error.h"
#include "triax/world/coin.h"
#include "triax/world/tool_families.h"

namespace triax::world {
namespace {

struct Declared {
  const ToolFamily* family = nullptr;
  std::string name;
  std::vector<std::string> keys;  // the name of each parameter of the family
  bool unseen_name = false, unseen_schema = false;
};

// "lamp_yard", "get_stuvol", "marble": what a tool or a parameter may be called.
// Never one that is held out.
std::string coined_identifier(Dice& dice) {
  static const std::vector<std::string> kBefore = {"get_", "find_", "do_", "my_", "the_", "new_"};
  for (;;) {
    std::string text = coined_noun(dice);
    if (dice.chance(0.3)) text = dice.pick(kBefore) + text;
    if (dice.chance(0.2)) text += "_" + coined_noun(dice);
    std::replace(text.begin(), text.end(), ' ', '_');
    if (!is_held_tool_word(text)) return text;
  }
}

Declared declare(Dice& dice, const ToolFamily& family, const Unseen& unseen) {
  Declared out;
  out.family = &family;
  out.unseen_name = unseen.entities && (family.held || dice.chance(0.7));
  out.name = out.unseen_name ? dice.pick(family.names.held) : dice.pick(family.names.train);
  const bool coins = unseen.none();
  if (coins && dice.chance(0.5)) out.name = coined_identifier(dice);
  std::set<std::string> taken;
  for (const Parameter& parameter : family.parameters) {
    std::string key;
    do {
      const bool held = unseen.entities && dice.chance(0.4);
      key = held ? dice.pick(parameter.names.held) : dice.pick(parameter.names.train);
      if (coins && dice.chance(0.35)) key = coined_identifier(dice);
      out.unseen_schema = out.unseen_schema || held;
    } while (!taken.insert(key).second);
    out.keys.push_back(key);
  }
  return out;
}

Json declaration(Dice& dice, const Declared& tool) {
  const ToolFamily& family = *tool.family;
  Json properties = Json::object(), required = Json::array();
  const bool described = dice.chance(0.5);
  for (std::size_t i = 0; i < tool.keys.size(); ++i) {
    const Parameter& parameter = family.parameters[i];
    Json schema = {{"type", parameter.type}};
    if (described) schema["description"] = parameter.description;
    if (!parameter.choices.empty()) schema["enum"] = parameter.choices;
    properties[tool.keys[i]] = schema;
    required.push_back(tool.keys[i]);
  }
  return {
      {"type", "function"},
      {"function",
       {{"name", tool.name},
        {"description", dice.pick(family.descriptions)},
        {"parameters", {{"type", "object"}, {"properties", properties}, {"required", required}}}}}};
}

// The tool that is needed and up to two others, in random order.
std::vector<Declared> choose_tools(Dice& dice, const ToolFamily& needed, const Unseen& unseen) {
  std::vector<Declared> tools = {declare(dice, needed, unseen)};
  std::set<std::string> names = {tools[0].name}, families = {needed.name};
  static constexpr std::array<double, 3> kCounts = {0.5, 0.35, 0.15};
  const std::size_t count = 1 + dice.weighted(kCounts);
  const auto& all = all_tool_families();
  while (tools.size() < count) {
    const ToolFamily& family = all[dice.below(all.size())];
    if (family.held || !families.insert(family.name).second) continue;
    Declared tool = declare(dice, family, unseen);
    if (names.insert(tool.name).second) tools.push_back(std::move(tool));
  }
  return tools;
}

Json call_of(const Declared& tool, const ToolQuestion& question) {
  Json arguments = Json::object();
  for (std::size_t i = 0; i < tool.keys.size(); ++i) {
    for (const Slot& slot : question.slots) {
      if (slot.role == tool.family->parameters[i].role) arguments[tool.keys[i]] = slot.value;
    }
  }
  return {{"name", tool.name}, {"arguments", arguments}};
}

std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void think_call(ToolItem& item, const Declared& tool, const std::vector<ToolQuestion>& questions) {
  item.think_high = "I need " + tool.name + ".";
  item.think_max =
      "This is about " + tool.family->subject + ". The tool for it is " + tool.name + ".";
  for (std::size_t q = 0; q < questions.size(); ++q) {
    const Json arguments = item.calls[q]["arguments"];
    for (const auto& [key, value] : arguments.items()) {
      item.think_max += " " + key + ": " + plain(value) + ".";
    }
  }
  for (const std::string& result : item.results) {
    item.after_high +=
        (item.after_high.empty() ? "" : " ") + std::string("Result: ") + result + ".";
    item.after_max += (item.after_max.empty() ? "" : " ") + std::string("The tool ") + tool.name +
                      " says: " + result + ".";
  }
  item.after_max += " That is what was asked for.";
}

// Something that needs no tool, whatever is declared.
void ask_nothing(Dice& dice, ToolItem& item) {
  static const std::vector<std::pair<const char*, const char*>> kTalk = {
      {"Hello!", "Hello! How can I help you?"},
      {"Thank you very much.", "You are welcome."},
      {"Good morning!", "Good morning! What can I do for you?"},
      {"Who are you?", "I am triax, a small model."},
      {"Goodbye!", "Goodbye!"},
      {"That was helpful.", "I am glad to hear it."},
      {"How are you?", "I am fine, thank you."}};
  const auto& [text, answer] = kTalk[dice.below(kTalk.size())];
  item.text = text;
  item.answer = answer;
  item.family = "none";
  item.think_high = "No tool is needed.";
  item.think_max = "The user only talks. No tool is needed for that.";
}

const ToolFamily& choose_family(Dice& dice, const Unseen& unseen) {
  const auto& all = all_tool_families();
  for (;;) {
    const ToolFamily& family = all[dice.below(all.size())];
    if (!family.held || (unseen.entities && dice.chance(0.5))) return family;
  }
}

// One question, now and then two at once, that `tool` answers.
void ask_tool(Dice& dice, ToolItem& item, const Declared& tool, const Unseen& unseen) {
  item.family = tool.family->name;
  item.unseen_name = tool.unseen_name;
  item.unseen_schema = tool.unseen_schema;
  item.unseen_family = tool.family->held;
  const bool twice = dice.chance(0.07);
  std::vector<ToolQuestion> questions;
  for (int i = 0; i < (twice ? 2 : 1); ++i) {
    questions.push_back(tool.family->ask(dice, unseen));
    item.text += (i == 0 ? "" : " ") + questions.back().text;
    item.calls.push_back(call_of(tool, questions.back()));
    item.results.push_back(questions.back().result);
    item.answer += (i == 0 ? "" : " ") + questions.back().answer;
  }
  think_call(item, tool, questions);
}

}  // namespace

std::vector<ToolItem> make_tool_items(Dice& dice, const Unseen& unseen, std::size_t count) {
  std::vector<Declared> tools = choose_tools(dice, choose_family(dice, unseen), unseen);
  const Declared first = tools[0];
  dice.shuffle(tools);
  Json declarations = Json::array();
  for (const Declared& one : tools) declarations.push_back(declaration(dice, one));
  std::vector<ToolItem> out(count);
  for (ToolItem& item : out) {
    item.tools = declarations;
    if (dice.chance(0.06)) {
      ask_nothing(dice, item);
    } else {
      ask_tool(dice, item, &item == &out[0] ? first : dice.pick(tools), unseen);
    }
  }
  return out;
}

ToolItem make_tool_item(Dice& dice, const Unseen& unseen) {
  return make_tool_items(dice, unseen, 1)[0];
}

Json tool_document(const std::vector<ToolItem>& items, Effort effort) {
  Chat chat(effort);
  chat.tools(items.at(0).tools);
  const auto at = [&](const std::string& high, const std::string& max) {
    return effort == Effort::low ? std::string() : effort == Effort::high ? high : max;
  };
  for (const ToolItem& item : items) {
    chat.user(item.text);
    if (item.calls.empty()) {
      chat.assistant(at(item.think_high, item.think_max), item.answer);
      continue;
    }
    chat.assistant_calls(at(item.think_high, item.think_max), item.calls);
    chat.results(item.results);
    chat.assistant(at(item.after_high, item.after_max), item.answer);
  }
  return chat.document("tools");
}

std::string call_fault(const Json& tools, const Json& call) {
  const std::string name = call.value("name", "");
  for (const Json& tool : tools) {
    const Json& function = tool.at("function");
    if (function.at("name") != name) continue;
    const Json& parameters = function.at("parameters");
    if (!call.contains("arguments") || !call["arguments"].is_object()) {
      return "arguments that are no object";
    }
    const Json& arguments = call["arguments"];
    for (const Json& key : parameters.at("required")) {
      if (!arguments.contains(key.get<std::string>())) {
        return "without " + key.get<std::string>();
      }
    }
    for (const auto& [key, value] : arguments.items()) {
      if (!parameters["properties"].contains(key))
        return "an argument " + key + " that is not declared";
      const Json& schema = parameters["properties"][key];
      const std::string type = schema.at("type");
      const bool right = type == "string"    ? value.is_string()
                         : type == "integer" ? value.is_number_integer()
                         : type == "number"  ? value.is_number()
                                             : true;
      if (!right) return key + " is no " + type;
      if (schema.contains("enum") &&
          std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
        return key + " is none of the values allowed";
      }
    }
    return {};
  }
  return "there is no tool " + name;
}

std::vector<std::string> tool_families(bool held) {
  std::vector<std::string> out;
  for (const ToolFamily& family : all_tool_families()) {
    if (family.held == held) out.push_back(family.name);
  }
  return out;
}

}  // namespace triax::world
