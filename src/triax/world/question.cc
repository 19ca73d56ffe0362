// Which questions a story can answer, and what they ask about.
#include "triax/world/question.h"

#include <algorithm>
#include <set>
#include <utility>

#include "triax/core/error.h"
#include "triax/world/coin.h"
#include "triax/world/explain.h"
#include "triax/world/question_words.h"
#include "triax/world/replay.h"

namespace triax::world {
namespace {

class Finder {
 public:
  Finder(Dice& dice, const Happening& happening)
      : dice_(dice), cast_(happening.cast), events_(happening.events), state_(happening.cast) {
    for (const Event& event : events_) state_.apply(event);
  }

  std::vector<Query> run() {
    for (int thing = 0; thing < count(cast_.things); ++thing) {
      if (state_.known_thing(thing)) about_thing(thing);
    }
    for (int person = 0; person < count(cast_.people); ++person) {
      if (!state_.known_person(person)) continue;
      add({.ask = Ask::where_person, .person = person});
      for (int c = 0; c < count(cast_.counted); ++c) {
        if (state_.count(person, c) >= 0) {
          add({.ask = Ask::how_many, .person = person, .counted = c});
        }
      }
    }
    about_events();
    dice_.shuffle(found_);
    return std::move(found_);
  }

 private:
  template <class T>
  static int count(const std::vector<T>& list) {
    return static_cast<int>(list.size());
  }
  void add(const Query& query) { found_.push_back(query); }

  void about_thing(int thing) {
    add({.ask = Ask::where_thing, .thing = thing});
    const std::vector<int> places = places_of(cast_, events_, thing);
    const int now = places.back();
    if (places.size() >= 2 && std::count(places.begin(), places.end(), now) == 1) {
      add({.ask = Ask::where_before, .thing = thing, .place = now});
    }
    if (state_.spot(thing).kind == Spot::Kind::person) add({.ask = Ask::who_has, .thing = thing});
    if (state_.colour(thing) >= 0) add({.ask = Ask::what_colour, .thing = thing});
    if (state_.inside(thing).size() == 1) add({.ask = Ask::what_inside, .thing = thing});
    add({.ask = Ask::is_it_in, .thing = thing, .place = dice_.chance(0.5) ? now : other(places)});
  }

  // A place where the thing is not: one where it was, or any.
  int other(const std::vector<int>& places) {
    std::vector<int> from;
    for (const int place : places) {
      if (place != places.back()) from.push_back(place);
    }
    if (from.empty() || dice_.chance(0.3)) {
      from.clear();
      for (int place = 0; place < count(cast_.places); ++place) {
        if (place != places.back()) from.push_back(place);
      }
    }
    return dice_.pick(from);
  }

  void about_events() {
    std::set<std::vector<int>> done;
    for (const Event& e : events_) {
      if (e.what == What::give) {
        if (times([&](const Event& x) { return gives(x, e.thing) && x.other == e.other; }) == 1) {
          add({.ask = Ask::who_gave, .thing = e.thing, .other = e.other});
        }
        if (times([&](const Event& x) { return gives(x, e.thing) && x.actor == e.actor; }) == 1) {
          add({.ask = Ask::to_whom, .thing = e.thing, .person = e.actor});
        }
      } else if (e.what == What::say) {
        add({.ask = Ask::who_said, .person = e.actor, .saying = e.saying});
      } else if (e.what == What::go && e.reason >= 0) {
        const auto same = [&](const Event& x) {
          return x.what == What::go && x.actor == e.actor && x.place == e.place;
        };
        if (times(same) == 1) add({.ask = Ask::why, .person = e.actor, .place = e.place});
      }
    }
  }

  static bool gives(const Event& x, int thing) { return x.what == What::give && x.thing == thing; }

  template <class Match>
  std::size_t times(Match match) const {
    return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), match));
  }

  Dice& dice_;
  const Cast& cast_;
  const std::vector<Event>& events_;
  State state_;
  std::vector<Query> found_;
};

std::string answer_text(const Cast& cast, const Query& q, const std::string& truth) {
  switch (q.ask) {
    case Ask::where_thing:
    case Ask::where_person:
    case Ask::where_before:
      for (const Place& place : cast.places) {
        if (place.noun == truth) return capitalised(place.where()) + ".";
      }
      return {};
    case Ask::to_whom:
      return "To " + truth + ".";
    case Ask::why:
      return "Because " + truth + ".";
    case Ask::what_inside:
      return "The " + truth + ".";
    default:
      return capitalised(truth) + ".";
  }
}

std::vector<std::string> candidates_of(const Cast& cast, const std::vector<Event>& events,
                                       const Query& q) {
  std::vector<std::string> out;
  switch (q.ask) {
    case Ask::where_thing:
    case Ask::where_person:
    case Ask::where_before:
      for (const Place& place : cast.places) out.push_back(place.noun);
      break;
    case Ask::what_colour:
      out = cast.colours;
      break;
    case Ask::how_many:
      for (int n = 0; n < 20; ++n) out.push_back(number_word(n));
      break;
    case Ask::why:
      for (const Event& e : events) {
        if (e.reason < 0) continue;
        const Person& who = cast.people[static_cast<std::size_t>(e.actor)];
        out.push_back(filled(cast.reasons[static_cast<std::size_t>(e.reason)],
                             {{"he", who.he()}, {"his", who.his()}, {"him", who.him()}}));
      }
      break;
    case Ask::what_inside:
      for (const Thing& thing : cast.things) {
        if (!thing.container) out.push_back(thing.noun);
      }
      break;
    case Ask::is_it_in:
      out = {"yes", "no"};
      break;
    default:
      for (const Person& person : cast.people) out.push_back(person.name);
  }
  return out;
}

bool speaks_of_unseen(const Cast& cast, const Query& q, const std::string& truth) {
  const auto person = [&](int i) {
    return i >= 0 && cast.people[static_cast<std::size_t>(i)].unseen;
  };
  if (q.thing >= 0 && cast.things[static_cast<std::size_t>(q.thing)].unseen) return true;
  if (person(q.person) || person(q.other)) return true;
  if (q.place >= 0 && cast.unseen_places[static_cast<std::size_t>(q.place)]) return true;
  const std::vector<std::string>& colours = Lexicon::get().colours.held;
  if (std::find(colours.begin(), colours.end(), truth) != colours.end()) return true;
  for (const Thing& thing : cast.things) {
    if (thing.unseen && thing.noun == truth) return true;
  }
  for (const Person& who : cast.people) {
    if (who.unseen && who.name == truth) return true;
  }
  for (std::size_t i = 0; i < cast.places.size(); ++i) {
    if (cast.unseen_places[i] && cast.places[i].noun == truth) return true;
  }
  return false;
}

std::string question_text(Dice& dice, const Cast& cast, const Query& q, const Unseen& unseen) {
  const Words& words = question_words(q.ask);
  const std::string text = unseen.templates ? dice.pick(words.held) : dice.pick(words.train);
  std::vector<std::pair<std::string_view, std::string>> values;
  if (q.thing >= 0) {
    values.emplace_back("o", "the " + cast.things[static_cast<std::size_t>(q.thing)].noun);
  }
  if (q.person >= 0) values.emplace_back("A", cast.people[static_cast<std::size_t>(q.person)].name);
  if (q.other >= 0) values.emplace_back("B", cast.people[static_cast<std::size_t>(q.other)].name);
  if (q.place >= 0) {
    const Place& place = cast.places[static_cast<std::size_t>(q.place)];
    values.emplace_back("p", "the " + place.noun);
    values.emplace_back("P", place.where());
  }
  if (q.counted >= 0)
    values.emplace_back("c", cast.counted[static_cast<std::size_t>(q.counted)].many);
  if (q.saying >= 0) {
    const Person& who = cast.people[static_cast<std::size_t>(q.person)];
    values.emplace_back("s", filled(cast.sayings[static_cast<std::size_t>(q.saying)].reported,
                                    {{"he", who.he()}, {"his", who.his()}, {"him", who.him()}}));
  }
  const std::string out = filled(text, values);
  return unseen.none() ? in_company(dice, out) : out;
}

}  // namespace

const char* ask_name(Ask ask) {
  static constexpr const char* kNames[kAsks] = {
      "where_thing", "where_person", "where_before", "who_has", "who_gave",    "to_whom",
      "what_colour", "how_many",     "who_said",     "why",     "what_inside", "is_it_in"};
  return kNames[static_cast<std::size_t>(ask)];
}

std::vector<Query> possible_queries(Dice& dice, const Happening& happening) {
  return Finder(dice, happening).run();
}

Question make_question(Dice& dice, const Happening& happening, const Query& query,
                       const Unseen& unseen) {
  const Cast& cast = happening.cast;
  Question out;
  out.query = query;
  const Explanation why = explain(cast, happening.events, query);
  out.truth = why.truth;
  TRIAX_CHECK(!out.truth.empty());
  TRIAX_CHECK(out.truth == replay_answer(cast, happening.events, query),
              "two ways to an answer do not agree");
  out.text = question_text(dice, cast, query, unseen);
  out.answer = answer_text(cast, query, out.truth);
  out.think_low = why.low;
  out.think_high = why.high;
  out.think_max = why.max;
  out.changes = why.changes;
  out.candidates = candidates_of(cast, happening.events, query);
  out.unseen_entity = speaks_of_unseen(cast, query, out.truth);
  return out;
}

}  // namespace triax::world
