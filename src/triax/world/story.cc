// Draws stories until one fits.
#include "triax/world/story.h"

#include <algorithm>
#include <set>

#include "triax/core/error.h"
#include "triax/world/question_words.h"

namespace triax::world {
namespace {

PlotWish wish_for(Dice& dice, Length length, Ask ask, const Unseen& unseen) {
  PlotWish wish;
  wish.unseen = unseen;
  if (length == Length::small) {
    wish.people = dice.between(1, 3);
    wish.things = dice.between(1, 3);
    wish.containers = wish.things > 1 && dice.chance(0.5) ? 1 : 0;
    wish.places = dice.between(2, 4);
    wish.events = dice.between(4, 9);
  } else if (length == Length::medium) {
    wish.people = dice.between(2, 4);
    wish.things = dice.between(2, 4);
    wish.containers = dice.chance(0.6) ? 1 : 0;
    wish.places = dice.between(3, 5);
    wish.events = dice.between(9, 15);
  } else {
    wish.people = dice.between(4, 5);
    wish.things = dice.between(4, 5);
    wish.containers = dice.between(1, 2);
    wish.places = dice.between(4, 6);
    wish.events = dice.between(17, 25);
  }
  wish.sub_plot = length != Length::small || dice.chance(0.5);
  const double extra = length == Length::suite ? 0.3 : 0.2;
  wish.counted = ask == Ask::how_many || dice.chance(0.1) ? 1 : 0;
  wish.speech = ask == Ask::who_said || dice.chance(extra);
  wish.reasons = ask == Ask::why || dice.chance(extra);
  wish.paint = ask == Ask::what_colour || dice.chance(0.1);
  if (ask == Ask::what_inside) wish.containers = std::max(wish.containers, 1);
  if (ask == Ask::what_inside) wish.things = std::max(wish.things, 2);
  if (ask == Ask::who_gave || ask == Ask::to_whom) wish.people = std::max(wish.people, 2);
  return wish;
}

// Who and what appears in the events.
void count_cast(StoryItem& item) {
  std::set<int> people, things;
  for (const Event& e : item.happening.events) {
    people.insert({e.actor, e.other});
    things.insert({e.thing, e.container});
  }
  people.erase(-1);
  things.erase(-1);
  item.people = people.size();
  item.things = things.size();
}

bool fits(const StoryItem& item, Length length) {
  if (length != Length::suite) return true;
  return item.sentences >= 8 && item.sentences <= 20 && item.people >= 4 && item.things >= 4;
}

// Takes the question unless it is too easy.
bool add_question(Dice& dice, StoryItem& item, const Query& query, Length length,
                  const Unseen& unseen, double easy) {
  Question question = make_question(dice, item.happening, query, unseen);
  if (length == Length::suite && question.changes < 3) return false;
  const Baselines base = baselines(item.story, question.candidates);
  const bool guessed = base.last == question.truth || base.frequent == question.truth;
  if (guessed && !dice.chance(easy)) return false;
  item.questions.push_back(std::move(question));
  item.baselines.push_back(base);
  return true;
}

// Not two questions with the same answer to the same thing.
bool alike(const Query& a, const Query& b) {
  const auto where = [](Ask ask) { return ask == Ask::where_thing || ask == Ask::is_it_in; };
  return (a.ask == b.ask || (where(a.ask) && where(b.ask))) && a.thing == b.thing &&
         a.person == b.person;
}

}  // namespace

StoryItem make_story(Dice& dice, Length length, Ask first, std::size_t questions,
                     const Unseen& unseen, double easy) {
  for (int tries = 0; tries < 2000; ++tries) {
    StoryItem item;
    item.happening = make_up(dice, wish_for(dice, length, first, unseen));
    const Told told = tell(dice, item.happening, unseen);
    item.story = told.text();
    item.sentences = told.sentences.size();
    item.unseen_phrases = told.unseen_phrases;
    count_cast(item);
    if (!fits(item, length)) continue;
    const std::vector<Query> queries = possible_queries(dice, item.happening);
    for (const Query& query : queries) {
      if (query.ask == first && add_question(dice, item, query, length, unseen, easy)) break;
    }
    if (item.questions.empty()) continue;
    for (const Query& query : queries) {
      if (item.questions.size() >= questions) break;
      const bool again = std::any_of(item.questions.begin(), item.questions.end(),
                                     [&](const Question& q) { return alike(q.query, query); });
      if (!again) add_question(dice, item, query, length, unseen, easy);
    }
    return item;
  }
  fail("no story fits the question {}; the weights of the plots need a look", ask_name(first));
}

std::string story_prompt(Dice& dice, const StoryItem& item, const Unseen& unseen) {
  std::string text;
  if (dice.chance(0.2)) {
    const Words& openers = question_openers();
    text = (unseen.templates ? dice.pick(openers.held) : dice.pick(openers.train)) + "\n";
  }
  return text + item.story + "\n" + item.questions.at(0).text;
}

const std::string& thinking_of(const Question& question, Effort effort) {
  return effort == Effort::low    ? question.think_low
         : effort == Effort::high ? question.think_high
                                  : question.think_max;
}

Json story_document(Dice& dice, const StoryItem& item, Effort effort, const Unseen& unseen) {
  Chat chat(effort);
  for (std::size_t i = 0; i < item.questions.size(); ++i) {
    const Question& question = item.questions[i];
    chat.user(i == 0 ? story_prompt(dice, item, unseen) : question.text);
    chat.assistant(thinking_of(question, effort), question.answer);
  }
  return chat.document("story_qa");
}

}  // namespace triax::world
