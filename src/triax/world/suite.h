// Items to grade a model on: always made anew from a seed, from the held-out part of the world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "triax/world/baseline.h"
#include "triax/world/document.h"
#include "triax/world/lexicon.h"

namespace triax::world {

struct SuiteOptions {
  std::uint64_t seed = 1;
  std::size_t stories = 2000, sums = 1000, tools = 500;
  std::optional<Effort> effort;  // none: low, high and max in turn
};

struct SuiteItem {
  std::string group;  // "story", "arithmetic", "tool_call", "tool_answer"
  std::string kind;   // within the group: "where_thing", "add", "clock", ...
  Effort effort = Effort::max;
  Unseen unseen;                  // what it has that training never sees
  bool unseen_asked = false;      // what is asked about, or the truth, is such an entity
  Json messages = Json::array();  // the prompt: everything before the turn that is graded
  Json tools = Json::array();
  std::string truth;        // of a text
  std::vector<Json> calls;  // of a tool call: {name, arguments}, in their order
  Baselines baselines;      // stories only
  int changes = 0;
  std::size_t sentences = 0, people = 0, things = 0;
  Json operands = Json::array();

  std::string prompt() const;  // the last user text
};

// Deterministic in the options. No two items have the same prompt.
std::vector<SuiteItem> make_suite(const SuiteOptions& options);

// What a model made of an item.
struct SuiteAnswer {
  std::string thinking, content;
  std::vector<Json> calls;  // {name, arguments}: arguments as an object, or text that is none
  bool well_formed = true;  // the turn was closed as the format wants it
};

struct Verdict {
  bool correct = false;
  bool well_formed = false;  // of calls: all of them are calls that the declarations allow
  std::string fault;         // in a word, where it is wrong
};
Verdict judge(const SuiteItem& item, const SuiteAnswer& answer);

// One line of the items file: prompt, truth, answer, correct and what else helps to grade again.
Json item_record(const SuiteItem& item, const SuiteAnswer& answer, const Verdict& verdict);

}  // namespace triax::world
