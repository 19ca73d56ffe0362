// A cast by lot, then one possible event after the other, drawn by the weights of a plot.
#include "triax/world/plot.h"

#include <algorithm>
#include <set>

#include "triax/core/error.h"
#include "triax/world/coin.h"

namespace triax::world {
namespace {

// Draws `count` different entries, with a share of unseen ones where wished.
template <class T, class Key>
std::vector<T> draw(Dice& dice, const Split<T>& from, int count, bool unseen, Key key,
                    std::set<std::string>& taken) {
  std::vector<T> out;
  for (int tries = 0; static_cast<int>(out.size()) < count && tries < 500; ++tries) {
    const T& one = from.pick(dice, unseen, 0.5);
    if (taken.insert(key(one)).second) out.push_back(one);
  }
  return out;
}

template <class T>
bool is_held(const Split<T>& from, const T& one) {
  return std::find(from.held.begin(), from.held.end(), one) != from.held.end();
}

std::string itself(const std::string& word) {
  return word;
}

void cast_people(Dice& dice, const PlotWish& wish, Cast& cast) {
  const Lexicon& words = Lexicon::get();
  std::set<std::string> taken;
  const bool training = wish.unseen.none();
  const bool made_up = !wish.unseen.entities && dice.chance(training ? 0.6 : 0.3);
  while (static_cast<int>(cast.people.size()) < wish.people) {
    const bool woman = dice.chance(0.5);
    const Words& list = woman ? words.women : words.men;
    Person person{list.pick(dice, wish.unseen.entities), woman, false};
    if (made_up && dice.chance(0.6)) {
      person.name =
          training && dice.chance(0.3) ? capitalised(any_letters(dice)) : made_up_name(dice, woman);
    }
    person.unseen = is_held(list, person.name);
    if (taken.insert(person.name).second) cast.people.push_back(person);
  }
}

// A coined noun that is not there yet.
std::string another(Dice& dice, std::set<std::string>& taken) {
  for (;;) {
    std::string noun = coined_noun(dice);
    if (taken.insert(noun).second) return noun;
  }
}

void cast_things(Dice& dice, const PlotWish& wish, Cast& cast) {
  const Lexicon& words = Lexicon::get();
  const bool unseen = wish.unseen.entities, coins = wish.unseen.none() && dice.chance(0.7);
  std::set<std::string> taken;
  const auto things =
      draw(dice, cast.theme->things, wish.things - wish.containers, unseen, itself, taken);
  const auto containers =
      draw(dice, cast.theme->containers, wish.containers, unseen, itself, taken);
  for (const std::string& noun : things) {
    Thing thing{noun, "", false, is_held(cast.theme->things, noun)};
    if (!unseen && dice.chance(0.06)) thing.noun = made_up_thing(dice);
    if (coins && dice.chance(0.6)) thing.noun = another(dice, taken);
    cast.things.push_back(thing);
  }
  for (const std::string& noun : containers) {
    cast.things.push_back({noun, "", true, is_held(cast.theme->containers, noun)});
    if (coins && dice.chance(0.6)) cast.things.back().noun = another(dice, taken);
  }
  for (Thing& thing : cast.things) {
    if (dice.chance(0.4)) thing.adjective = words.sizes.pick(dice, unseen, 0.3);
  }
}

Cast make_cast(Dice& dice, const PlotWish& wish) {
  const Lexicon& words = Lexicon::get();
  const bool unseen = wish.unseen.entities;
  Cast cast;
  cast.theme = &dice.pick(words.themes);
  cast_people(dice, wish, cast);
  cast_things(dice, wish, cast);
  std::set<std::string> taken;
  cast.places = draw(
      dice, cast.theme->places, wish.places, unseen, [](const Place& p) { return p.noun; }, taken);
  const bool coins = wish.unseen.none() && dice.chance(0.7);
  for (Place& place : cast.places) {
    if (coins && dice.chance(0.6)) {
      place = coined_place(dice);
      while (!taken.insert(place.noun).second) place = coined_place(dice);
    }
    const auto& held = cast.theme->places.held;
    cast.unseen_places.push_back(std::any_of(held.begin(), held.end(),
                                             [&](const Place& p) { return p.noun == place.noun; }));
  }
  cast.counted = draw(
      dice, cast.theme->counted, wish.counted, unseen, [](const Counted& c) { return c.many; },
      taken);
  for (Counted& counted : cast.counted) {
    if (!coins || !dice.chance(0.5)) continue;
    counted.one = another(dice, taken);
    counted.many = counted.one + "s";
  }
  cast.colours = draw(dice, words.colours, 5, unseen, itself, taken);
  cast.sayings =
      draw(dice, words.sayings, 4, unseen, [](const Saying& s) { return s.direct; }, taken);
  cast.reasons = draw(dice, words.reasons, 4, unseen, itself, taken);
  return cast;
}

class Maker {
 public:
  Maker(Dice& dice, const PlotWish& wish, Happening& out)
      : dice_(dice), wish_(wish), out_(out), cast_(out.cast), plot_(*out.plot), state_(out.cast) {}

  void run() {
    const int first = dice_.between(1, std::min(2, wish_.people));
    for (int i = 0; i < first; ++i) know_person(i, dice_.below(2) == 0 ? 0 : -1);
    if (wish_.counted > 0) start_counts();
    for (int tries = 0; size() < wish_.events && tries < 8 * wish_.events; ++tries) step();
    everybody_appears();
  }

 private:
  struct Option {
    Event event;
    double weight;
  };

  int size() const { return static_cast<int>(out_.events.size()); }
  int people() const { return static_cast<int>(cast_.people.size()); }
  int things() const { return static_cast<int>(cast_.things.size()); }
  int places() const { return static_cast<int>(cast_.places.size()); }
  int any(int n) { return static_cast<int>(dice_.below(static_cast<std::size_t>(n))); }

  void happen(const Event& event) {
    state_.apply(event);
    out_.events.push_back(event);
  }

  void know_person(int person, int place) {
    if (state_.known_person(person)) return;
    if (place < 0) place = any(places());
    happen({.what = What::person_at, .actor = person, .place = place});
  }

  int first_colour(int thing) {
    const bool wanted = wish_.paint && thing == out_.focus;
    return wanted || dice_.chance(wish_.paint ? 0.5 : 0.3)
               ? any(static_cast<int>(cast_.colours.size()))
               : -1;
  }

  // Two or three people have some of each counted thing, in the same place at first.
  void start_counts() {
    const int who = std::min(people(), dice_.between(2, 3));
    const int place = any(places());
    for (int i = 0; i < who; ++i) {
      know_person(i, place);
      for (int c = 0; c < static_cast<int>(cast_.counted.size()); ++c) {
        happen(
            {.what = What::start_count, .actor = i, .counted = c, .number = dice_.between(2, 9)});
      }
    }
  }

  // Somebody to act: whoever holds the main thing, the last one again, or anybody.
  int choose_actor() {
    const int holder = state_.known_thing(out_.focus) ? state_.holder_of(out_.focus) : -1;
    if (holder >= 0 && dice_.chance(wish_.sub_plot ? 0.4 : 0.7)) return holder;
    if (last_ >= 0 && dice_.chance(0.35)) return last_;
    return any(people());
  }

  double focused(int thing) const { return thing == out_.focus ? 3.0 : 1.0; }

  void step() {
    const int actor = choose_actor();
    const int before = size();
    know_person(actor, -1);
    if (size() != before && size() >= wish_.events) return;
    options_.clear();
    add_moves(actor);
    add_takes(actor);
    add_gifts(actor);
    add_counts(actor);
    add_speech(actor);
    std::vector<double> weights;
    for (const Option& option : options_) weights.push_back(option.weight);
    const Event chosen = options_[dice_.weighted(weights)].event;
    const Event event = prepared(chosen);
    happen(event);
    if (event.reason >= 0) ++used_reasons_;
    if (event.saying >= 0) ++used_sayings_;
    last_ = actor;
    last_what_ = chosen.what;
    last_thing_ = chosen.thing;
  }

  // Tells what must be known before the event can be told; the event as it then happens.
  Event prepared(const Event& event) {
    if (event.other >= 0) know_person(event.other, state_.place_of_person(event.actor));
    if (event.thing < 0 || state_.known_thing(event.thing)) return event;
    const int colour = first_colour(event.thing);
    if (dice_.chance(0.2)) {
      return {
          .what = What::person_has, .actor = event.actor, .thing = event.thing, .colour = colour};
    }
    const int container = near_container(event);
    if (container >= 0 && dice_.chance(0.5)) {
      happen(
          {.what = What::thing_in, .thing = event.thing, .container = container, .colour = colour});
      return {.what = What::take_out,
              .actor = event.actor,
              .thing = event.thing,
              .container = container};
    }
    happen({.what = What::thing_at,
            .thing = event.thing,
            .place = state_.place_of_person(event.actor),
            .colour = colour});
    return event;
  }

  // A container in reach that the thing of the event may have been in all along; -1: none.
  int near_container(const Event& event) const {
    if (is_container(event.thing)) return -1;
    for (int thing = 0; thing < things(); ++thing) {
      if (is_container(thing) && state_.known_thing(thing) && reachable(thing, event.actor)) {
        return thing;
      }
    }
    return -1;
  }

  bool is_container(int thing) const {
    return cast_.things[static_cast<std::size_t>(thing)].container;
  }

  void add_moves(int actor) {
    const bool again = last_ == actor && last_what_ == What::go;
    const double base = plot_.weights.go * (again ? 0.25 : 1.0) / std::max(1, places() - 1) * 2;
    const int here = state_.place_of_person(actor);
    for (int place = 0; place < places(); ++place) {
      if (place == here) continue;
      double weight = base;
      for (int p = 0; p < people(); ++p) {
        if (p != actor && state_.place_of_person(p) == place) weight *= 1.3;
      }
      if (state_.known_thing(out_.focus) && state_.place_of(out_.focus) == place) weight *= 1.8;
      options_.push_back({{.what = What::go, .actor = actor, .place = place}, weight});
      if (!wish_.reasons || used_reasons_ >= static_cast<int>(cast_.reasons.size())) continue;
      const int reason = used_reasons_;
      options_.push_back({{.what = What::go, .actor = actor, .place = place, .reason = reason},
                          weight * plot_.weights.why});
    }
  }

  // Things that the actor can lay hands on, those in containers too.
  void add_takes(int actor) {
    const int here = state_.place_of_person(actor);
    const bool full = state_.held_by(actor).size() >= 2;
    for (int thing = 0; thing < things(); ++thing) {
      const Spot spot = state_.spot(thing);
      const bool undo = thing == last_thing_ && actor == last_;
      if (!state_.known_thing(thing)) {
        if (!full) {
          options_.push_back({{.what = What::take, .actor = actor, .thing = thing},
                              plot_.weights.find * focused(thing)});
        }
      } else if (spot == Spot{Spot::Kind::place, here} && !full && !undo) {
        options_.push_back({{.what = What::take, .actor = actor, .thing = thing},
                            plot_.weights.take * focused(thing)});
      } else if (spot.kind == Spot::Kind::inside && !full && !undo &&
                 reachable(spot.index, actor)) {
        options_.push_back(
            {{.what = What::take_out, .actor = actor, .thing = thing, .container = spot.index},
             plot_.weights.take_out * focused(thing)});
      }
    }
    if (wish_.paint) add_paint(actor);
  }

  void add_paint(int actor) {
    for (int thing = 0; thing < things(); ++thing) {
      if (!state_.known_thing(thing) || is_container(thing) || !reachable(thing, actor)) continue;
      if (thing == last_thing_ && last_what_ == What::paint) continue;
      const int colour = any(static_cast<int>(cast_.colours.size()));
      if (colour == state_.colour(thing)) continue;
      options_.push_back({{.what = What::paint, .actor = actor, .thing = thing, .colour = colour},
                          2.5 * focused(thing)});
    }
  }

  bool reachable(int thing, int actor) const {
    const Spot spot = state_.spot(thing);
    return spot == Spot{Spot::Kind::person, actor} ||
           spot == Spot{Spot::Kind::place, state_.place_of_person(actor)};
  }

  void add_gifts(int actor) {
    const int here = state_.place_of_person(actor);
    for (const int thing : state_.held_by(actor)) {
      const bool undo = thing == last_thing_ && actor == last_;
      const double weight = focused(thing) * (undo ? 0.3 : 1.0);
      options_.push_back(
          {{.what = What::drop, .actor = actor, .thing = thing}, plot_.weights.drop * weight});
      for (int other = 0; other < people(); ++other) {
        if (other == actor) continue;
        const bool new_here = !state_.known_person(other);
        if (!new_here && state_.place_of_person(other) != here) continue;
        if (state_.held_by(other).size() >= 2) continue;
        options_.push_back({{.what = What::give, .actor = actor, .other = other, .thing = thing},
                            plot_.weights.give * weight * (new_here ? 0.4 : 1.0)});
      }
      if (is_container(thing)) continue;
      for (int container = 0; container < things(); ++container) {
        if (!is_container(container)) continue;
        if (!state_.known_thing(container) || !reachable(container, actor)) continue;
        options_.push_back(
            {{.what = What::put_in, .actor = actor, .thing = thing, .container = container},
             plot_.weights.put_in * weight * 2});
      }
    }
  }

  void add_counts(int actor) {
    for (int c = 0; c < static_cast<int>(cast_.counted.size()); ++c) {
      const int have = state_.count(actor, c);
      if (have < 0) continue;
      const int more = dice_.between(1, 5);
      if (have + more <= 15) {
        options_.push_back(
            {{.what = What::gain, .actor = actor, .counted = c, .number = more}, 3.0});
      }
      if (have < 2) continue;
      const int less = dice_.between(1, std::min(4, have - 1));
      options_.push_back({{.what = What::lose, .actor = actor, .counted = c, .number = less}, 2.0});
      for (int other = 0; other < people(); ++other) {
        if (other == actor || state_.place_of_person(other) != state_.place_of_person(actor))
          continue;
        if (state_.count(other, c) < 0 || state_.count(other, c) + less > 15) continue;
        options_.push_back(
            {{.what = What::hand, .actor = actor, .other = other, .counted = c, .number = less},
             2.0});
      }
    }
  }

  void add_speech(int actor) {
    if (!wish_.speech || used_sayings_ >= static_cast<int>(cast_.sayings.size())) return;
    if (last_what_ == What::say) return;
    options_.push_back(
        {{.what = What::say, .actor = actor, .saying = used_sayings_}, plot_.weights.say * 4});
  }

  void everybody_appears() {
    for (int i = 0; i < people(); ++i) know_person(i, -1);
  }

  Dice& dice_;
  const PlotWish& wish_;
  Happening& out_;
  const Cast& cast_;
  const Plot& plot_;
  State state_;
  std::vector<Option> options_;
  int used_reasons_ = 0, used_sayings_ = 0;
  int last_ = -1, last_thing_ = -1;
  What last_what_ = What::person_at;
};

const Plot& choose_plot(Dice& dice, const PlotWish& wish) {
  std::vector<double> weights;
  for (const Plot& plot : plots()) {
    double weight = plot.held ? (wish.unseen.templates ? 4 : 0) : 1;
    if (plot.name == "market") weight = wish.counted > 0 ? 12 : 0;
    if (plot.name == "workshop") weight = wish.paint ? 8 : 0;
    weights.push_back(weight);
  }
  return plots()[dice.weighted(weights)];
}

}  // namespace

Happening make_up(Dice& dice, const PlotWish& wish) {
  Happening out;
  out.plot = &choose_plot(dice, wish);
  out.cast = make_cast(dice, wish);
  out.focus = 0;
  Maker(dice, wish, out).run();
  return out;
}

}  // namespace triax::world
