// Documents by kind.
#include "triax/world/corpus.h"

#include <array>
#include <cstring>

#include "triax/core/error.h"
#include "triax/core/hash.h"
#include "triax/world/arithmetic.h"
#include "triax/world/prose.h"
#include "triax/world/recall.h"
#include "triax/world/story.h"
#include "triax/world/talk.h"
#include "triax/world/tools.h"

namespace triax::world {
namespace {

constexpr double kEasy = 0.5;  // share of questions kept that a baseline answers

Effort any_effort(Dice& dice) {
  static constexpr std::array<double, 3> kShares = {0.3, 0.35, 0.35};
  return static_cast<Effort>(dice.weighted(kShares));
}

Json unseen_json(const Unseen& unseen) {
  return {{"entities", unseen.entities}, {"templates", unseen.templates}};
}

const char* story_source(Length length) {
  return length == Length::small    ? "story_small"
         : length == Length::medium ? "story_medium"
                                    : "story_long";
}

// A story is long and its answers are short, so it is asked about several times; longer thinking
// takes the place of some questions.
std::size_t question_count(Dice& dice, Length length, Effort effort) {
  const std::size_t most = effort == Effort::low ? 8 : effort == Effort::high ? 6 : 4;
  return length == Length::small ? 1 + dice.below(most) : most;
}

Made make_story_qa(Dice& dice, Length length, Part part, const Unseen& unseen) {
  const Effort effort = any_effort(dice);
  const std::size_t questions = question_count(dice, length, effort);
  const auto first = static_cast<Ask>(dice.below(kAsks));
  const StoryItem item =
      make_story(dice, length, first, questions, unseen, part == Part::heldout ? 0.2 : kEasy);
  Made made{story_document(dice, item, effort, unseen), {}};
  made.document["source"] = story_source(length);
  made.meta["questions"] = Json::array();
  for (std::size_t i = 0; i < item.questions.size(); ++i) {
    const Question& q = item.questions[i];
    made.meta["questions"].push_back({{"ask", ask_name(q.query.ask)},
                                      {"truth", q.truth},
                                      {"last", item.baselines[i].last},
                                      {"frequent", item.baselines[i].frequent},
                                      {"changes", q.changes},
                                      {"unseen_entity", q.unseen_entity}});
  }
  return made;
}

Made make_arithmetic(Dice& dice, Part part, const Unseen& unseen) {
  const Effort effort = any_effort(dice);
  Chat chat(effort);
  Made made;
  made.meta["operands"] = Json::array();
  const int count = effort == Effort::low    ? dice.between(2, 9)
                    : effort == Effort::high ? dice.between(2, 8)
                                             : dice.between(1, 5);
  for (int i = 0; i < count; ++i) {
    const bool held = part == Part::heldout;
    const SumItem item =
        dice.chance(0.25) ? make_problem(dice, held, unseen) : make_sum(dice, held, unseen);
    chat.user(item.text);
    chat.assistant(item.thinking(effort), item.answer);
    for (const Sum& sum : item.sums) made.meta["operands"].push_back({sum.a, sum.b});
  }
  made.document = chat.document("arithmetic");
  return made;
}

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"story_small", "stories of a few sentences, and questions about them", 0.19},
      {"story_medium", "longer stories, and questions about them", 0.12},
      {"story_long", "stories as in the suite, and questions about them", 0.18},
      {"arithmetic", "sums and word problems", 0.21},
      {"tools", "tool calls, their results, and answers", 0.16},
      {"dialogue", "short conversations and small facts", 0.06},
      {"tale", "stories that are asked for", 0.04},
      {"prose", "stories alone", 0.04},
      {"recall", "lists, pairs and newest values, said again", 0.2}};
  return all;
}

std::uint64_t stream_key(std::string_view what, std::uint64_t seed, std::uint64_t index) {
  const auto digest = sha256(what);
  std::uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof key);
  return splitmix64_at(splitmix64_at(key, seed), index);
}

Unseen unseen_of(Dice& dice) {
  const std::size_t at = dice.below(10);
  return {at >= 4, at < 4 || at >= 7};
}

Made make_document(const std::string& kind, std::uint64_t seed, Part part, std::uint64_t index) {
  const bool held = part == Part::heldout;
  Dice dice(stream_key(kind + (held ? " heldout" : " train"), seed, index));
  const Unseen unseen = held ? unseen_of(dice) : Unseen{};
  Made made;
  if (kind == "story_small") {
    made = make_story_qa(dice, Length::small, part, unseen);
  } else if (kind == "story_medium") {
    made = make_story_qa(dice, Length::medium, part, unseen);
  } else if (kind == "story_long") {
    made = make_story_qa(dice, Length::suite, part, unseen);
  } else if (kind == "arithmetic") {
    made = make_arithmetic(dice, part, unseen);
  } else if (kind == "tools") {
    const Effort effort = any_effort(dice);
    // The declarations are long: most documents use them several times.
    const auto most = effort == Effort::low ? 4u : effort == Effort::high ? 3u : 2u;
    const std::vector<ToolItem> items = make_tool_items(dice, unseen, 1 + dice.below(most));
    const ToolItem& item = items[0];
    made.document = tool_document(items, effort);
    made.meta["family"] = item.family;
    made.meta["unseen_name"] = item.unseen_name;
    made.meta["unseen_schema"] = item.unseen_schema;
    made.meta["unseen_family"] = item.unseen_family;
  } else if (kind == "dialogue") {
    const Effort effort = any_effort(dice);
    made.document = talk_document(dice, effort, unseen);
  } else if (kind == "tale") {
    const Effort effort = any_effort(dice);
    made.document = tale_document(dice, effort, unseen);
  } else if (kind == "prose") {
    made.document = tale_text(dice, unseen);
  } else if (kind == "recall") {
    made.document = recall_text(dice, unseen);
  } else {
    std::string names;
    for (const Kind& one : kinds()) names += (names.empty() ? "" : ", ") + one.name;
    fail("there is no kind of document {}; kinds: {}", in_quotes(kind), names);
  }
  made.meta["unseen"] = unseen_json(unseen);
  return made;
}

std::vector<std::string> sentences_of(const std::string& text) {
  std::vector<std::string> out;
  std::string now;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '\n') now.push_back(c);
    const bool mark = c == '.' || c == '?' || c == '!' || c == '"';
    const bool end =
        c == '\n' || (mark && (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n'));
    if (!end) continue;
    while (!now.empty() && now.front() == ' ') now.erase(0, 1);
    if (now.size() > 1) out.push_back(now);
    now.clear();
  }
  if (now.size() > 1) out.push_back(now);
  return out;
}

}  // namespace triax::world
