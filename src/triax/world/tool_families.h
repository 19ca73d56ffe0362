// What a family of tools is for, and the many ways one can be declared.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "triax/world/dice.h"
#include "triax/world/document.h"
#include "triax/world/lexicon.h"

namespace triax::world {

// A value that a question puts into a call.
struct Slot {
  std::string role;  // "city": which parameter of the family it fills
  Json value;        // as the argument
};

struct ToolQuestion {
  std::string text;
  std::vector<Slot> slots;
  std::string result;
  std::string answer;
};

struct Parameter {
  std::string role;
  Words names;       // the name it may have
  const char* type;  // "string", "number", "integer"
  std::string description;
  std::vector<std::string> choices;  // an enumeration where there are any
};

struct ToolFamily {
  std::string name;
  bool held = false;  // never in training
  Words names;
  std::vector<std::string> descriptions;
  std::vector<Parameter> parameters;
  std::string subject;  // "the time in {city}": for the thinking
  ToolQuestion (*ask)(Dice& dice, const Unseen& unseen);
};

const std::vector<ToolFamily>& all_tool_families();

// Is this a city, an explained word, or the name of a tool or parameter that training never has?
bool is_held_tool_word(const std::string& word);

}  // namespace triax::world
