// Makes and judges the items.
#include "triax/world/suite.h"

#include <array>
#include <unordered_set>

#include "triax/core/error.h"
#include "triax/world/arithmetic.h"
#include "triax/world/corpus.h"
#include "triax/world/grade.h"
#include "triax/world/question.h"
#include "triax/world/story.h"
#include "triax/world/tools.h"

namespace triax::world {
namespace {

constexpr std::string_view kTools = "suite tool";
constexpr double kEasy = 0.15;  // share of the story questions kept that a baseline answers

Effort effort_of(const SuiteOptions& options, std::size_t index) {
  return options.effort ? *options.effort : static_cast<Effort>(index % 3);
}

Json user_message(const std::string& text) {
  return {{"role", "user"}, {"content", text}};
}

SuiteItem story_item(Dice& dice, std::size_t index, Effort) {
  SuiteItem item;
  item.unseen = unseen_of(dice);
  const auto ask = static_cast<Ask>(index % kAsks);
  const StoryItem story = make_story(dice, Length::suite, ask, 1, item.unseen, kEasy);
  const Question& question = story.questions[0];
  item.group = "story";
  item.kind = ask_name(question.query.ask);
  item.unseen_asked = question.unseen_entity;
  item.truth = question.truth;
  item.baselines = story.baselines[0];
  item.changes = question.changes;
  item.sentences = story.sentences;
  item.people = story.people;
  item.things = story.things;
  item.messages.push_back(user_message(story_prompt(dice, story, item.unseen)));
  return item;
}

SuiteItem sum_item(Dice& dice, std::size_t index, Effort) {
  static constexpr std::array<const char*, 3> kNames = {"add", "subtract", "multiply"};
  SuiteItem item;
  item.unseen = unseen_of(dice);
  const bool words = index % 4 == 3;
  const SumItem sum =
      words ? make_problem(dice, true, item.unseen) : make_sum(dice, true, item.unseen);
  item.group = "arithmetic";
  item.kind = kNames[static_cast<std::size_t>(sum.sums[0].operation)];
  if (words) item.kind += " in words";
  item.truth = sum.truth;
  item.operands = {sum.sums[0].a, sum.sums[0].b};
  item.messages.push_back(user_message(sum.text));
  return item;
}

// The call, and for every second item the answer that follows from the result.
SuiteItem tool_item(Dice& dice, std::size_t index, Effort effort) {
  SuiteItem item;
  item.unseen = unseen_of(dice);
  const ToolItem tool = make_tool_item(dice, item.unseen);
  item.kind = tool.family;
  item.unseen_asked = tool.unseen_name || tool.unseen_schema || tool.unseen_family;
  item.tools = tool.tools;
  const bool after = index % 3 == 2 && !tool.calls.empty();
  item.group = after ? "tool_answer" : "tool_call";
  if (!after) {
    item.messages.push_back(user_message(tool.text));
    item.calls = tool.calls;
    if (tool.calls.empty()) item.truth = tool.answer;
    return item;
  }
  item.truth = tool.answer;
  const Json document = tool_document({tool}, effort);
  for (const Json& message : document.at("messages")) item.messages.push_back(message);
  item.messages.erase(item.messages.size() - 1);
  return item;
}

}  // namespace

std::string SuiteItem::prompt() const {
  for (std::size_t i = messages.size(); i > 0; --i) {
    if (messages[i - 1].at("role") == "user") return messages[i - 1]["content"];
  }
  return {};
}

std::vector<SuiteItem> make_suite(const SuiteOptions& options) {
  std::vector<SuiteItem> items;
  std::unordered_set<std::string> prompts;
  const auto add = [&](std::string_view what, std::size_t count, auto make) {
    std::uint64_t stream = 0;
    for (std::size_t i = 0; i < count; ++stream) {
      TRIAX_CHECK(stream < 10 * count + 1000, "the suite runs out of new prompts");
      Dice dice(stream_key(what, options.seed, stream));
      // Spread over kinds: tools come in threes, questions in dozens.
      const Effort effort = effort_of(options, what == kTools ? i / 3 : i / kAsks + i);
      SuiteItem item = make(dice, i, effort);
      item.effort = effort;
      std::string key = item.prompt() + "\n" + item.tools.dump();
      if (!prompts.insert(std::move(key)).second) continue;
      items.push_back(std::move(item));
      ++i;
    }
  };
  add("suite story", options.stories, story_item);
  add("suite sum", options.sums, sum_item);
  add(kTools, options.tools, tool_item);
  return items;
}

Verdict judge(const SuiteItem& item, const SuiteAnswer& answer) {
  Verdict verdict;
  verdict.well_formed = answer.well_formed;
  if (!answer.well_formed) verdict.fault = "the turn is not closed";
  if (item.group != "tool_call" || item.calls.empty()) {
    if (!answer.calls.empty()) {
      verdict.fault = "a call that nobody needs";
    } else if (item.group == "tool_call") {
      verdict.correct = answer.well_formed;  // no tool was needed, and none was called
    } else {
      verdict.correct = same_answer(answer.content, item.truth);
      if (!verdict.correct && verdict.fault.empty()) verdict.fault = "another answer";
    }
    return verdict;
  }
  for (const Json& call : answer.calls) {
    const std::string fault = call_fault(item.tools, call);
    if (fault.empty()) continue;
    verdict.well_formed = false;
    verdict.fault = fault;
  }
  if (answer.calls.empty()) {
    verdict.well_formed = false;
    verdict.fault = "no call";
  }
  verdict.correct = verdict.well_formed && answer.calls.size() == item.calls.size();
  for (std::size_t i = 0; verdict.correct && i < item.calls.size(); ++i) {
    verdict.correct = same_call(answer.calls[i], item.calls[i]);
  }
  if (!verdict.correct && verdict.fault.empty()) verdict.fault = "other arguments or another tool";
  return verdict;
}

Json item_record(const SuiteItem& item, const SuiteAnswer& answer, const Verdict& verdict) {
  Json out;
  out["group"] = item.group;
  out["kind"] = item.kind;
  out["thinking_effort"] = effort_name(item.effort);
  out["messages"] = item.messages;
  if (!item.tools.empty()) out["tools"] = item.tools;
  out["prompt"] = item.prompt();
  if (item.calls.empty()) {
    out["truth"] = item.truth;
    out["answer"] = answer.content;
  } else {
    out["truth"] = item.calls;
    out["answer"] = answer.calls;
    out["content"] = answer.content;
  }
  out["thinking"] = answer.thinking;
  out["correct"] = verdict.correct;
  out["well_formed"] = verdict.well_formed;
  if (!verdict.fault.empty()) out["fault"] = verdict.fault;
  if (item.group == "story") {
    out["last_mention"] = item.baselines.last;
    out["most_frequent_mention"] = item.baselines.frequent;
    out["changes"] = item.changes;
    out["sentences"] = item.sentences;
  }
  if (!item.operands.empty()) out["operands"] = item.operands;
  out["unseen_entities"] = item.unseen.entities;
  out["unseen_templates"] = item.unseen.templates;
  out["unseen_asked"] = item.unseen_asked;
  return out;
}

}  // namespace triax::world
