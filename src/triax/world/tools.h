// Tools: declarations as JSON schemas, questions that need them, calls, results.
#pragma once

#include <string>
#include <vector>

#include "triax/world/dice.h"
#include "triax/world/document.h"
#include "triax/world/lexicon.h"

namespace triax::world {

struct ToolItem {
  Json tools = Json::array();         // OpenAI declarations
  std::string text;                   // what the user asks
  std::vector<Json> calls;            // {name, arguments}; empty where no tool is needed
  std::vector<std::string> results;   // of the calls
  std::string think_high, think_max;  // before the calls
  std::string after_high, after_max;  // after the results
  std::string answer;                 // the last turn
  std::string family;                 // "calculator", ... or "none"
  bool unseen_name = false, unseen_schema = false, unseen_family = false;
};

// One question with one to three tools declared. With `unseen`, names, parameter names or whole
// families that training never has.
ToolItem make_tool_item(Dice& dice, const Unseen& unseen);
// Several, one after the other, with the same tools.
std::vector<ToolItem> make_tool_items(Dice& dice, const Unseen& unseen, std::size_t count);

// A conversation in which one item comes after the other.
Json tool_document(const std::vector<ToolItem>& items, Effort effort);

// What is wrong with a call against its declaration: unknown name, missing or unknown arguments, a
// value of another type, or none of an enumeration. Empty: nothing.
std::string call_fault(const Json& tools, const Json& call);

// The names of the families, those that training never sees last.
std::vector<std::string> tool_families(bool held);

}  // namespace triax::world
