// Traces: the events that changed something about a thing, a person or a number.
#include "triax/world/explain.h"

#include <algorithm>
#include <tuple>

#include "triax/core/error.h"

namespace triax::world {
namespace {

constexpr std::size_t kLongest = 9;  // steps that thinking lists at most: the last ones

class Explainer {
 public:
  Explainer(const Cast& cast, const std::vector<Event>& events, const Query& q)
      : cast_(cast), events_(events), q_(q), end_(cast) {
    for (const Event& event : events_) end_.apply(event);
  }

  Explanation run() {
    switch (q_.ask) {
      case Ask::where_thing:
        where_thing();
        break;
      case Ask::where_person:
        where_person();
        break;
      case Ask::where_before:
        where_before();
        break;
      case Ask::who_has:
        who_has();
        break;
      case Ask::who_gave:
      case Ask::to_whom:
        gift();
        break;
      case Ask::what_colour:
        colour();
        break;
      case Ask::how_many:
        number();
        break;
      case Ask::who_said:
        saying();
        break;
      case Ask::why:
        reason();
        break;
      case Ask::what_inside:
        inside();
        break;
      case Ask::is_it_in:
        is_it_in();
        break;
    }
    return std::move(out_);
  }

 private:
  const std::string& name(int person) const {
    return cast_.people[static_cast<std::size_t>(person)].name;
  }
  std::string the(int thing) const {
    return "the " + cast_.things[static_cast<std::size_t>(thing)].noun;
  }
  std::string The(int thing) const { return capitalised(the(thing)); }
  std::string it(int thing) const { return thing == q_.thing ? "it" : the(thing); }
  const Place& place(int i) const { return cast_.places[static_cast<std::size_t>(i)]; }
  const std::string& colour_name(int i) const { return cast_.colours[static_cast<std::size_t>(i)]; }

  // One event as a short sentence; `here` is the actor's place.
  std::string step(const Event& e, int here) const {
    switch (e.what) {
      case What::person_at:
        return name(e.actor) + " was " + place(e.place).where() + ".";
      case What::thing_at:
        return The(e.thing) + " was " + place(e.place).where() + ".";
      case What::thing_in:
        return The(e.thing) + " was in " + the(e.container) + ".";
      case What::person_has:
        return name(e.actor) + " had " + the(e.thing) + ".";
      case What::go:
        return name(e.actor) + " went to the " + place(e.place).noun + ".";
      case What::take:
        return name(e.actor) + " took " + it(e.thing) + ".";
      case What::take_out:
        return name(e.actor) + " took " + it(e.thing) + " out of " + it(e.container) + ".";
      case What::drop:
        return name(e.actor) + " left " + it(e.thing) + " " + place(here).where() + ".";
      case What::put_in:
        return name(e.actor) + " put " + it(e.thing) + " in " + it(e.container) + ".";
      case What::give:
        return name(e.actor) + " gave " + it(e.thing) + " to " + name(e.other) + ".";
      case What::paint:
        return name(e.actor) + " painted " + it(e.thing) + " " + colour_name(e.colour) + ".";
      default:
        return {};
    }
  }

  // The events after which `what(state)` is another value, with the first that makes it known;
  // as sentences. Counts the changes.
  template <class Watch>
  std::vector<std::string> trace(Watch watch) {
    State state(cast_);
    auto before = watch(state);
    std::vector<std::string> steps;
    for (const Event& e : events_) {
      state.apply(e);
      const auto after = watch(state);
      if (after == before) continue;
      before = after;
      steps.push_back(step(e, e.actor >= 0 ? state.place_of_person(e.actor) : -1));
    }
    out_.changes = static_cast<int>(steps.size()) - 1;
    return steps;
  }

  std::vector<std::string> trace_thing() {
    return trace([&](const State& s) {
      return std::tuple(s.spot(q_.thing).kind, s.spot(q_.thing).index, s.holder_of(q_.thing),
                        s.place_of(q_.thing));
    });
  }

  static std::string joined(const std::vector<std::string>& steps) {
    std::string text;
    const std::size_t from = steps.size() > kLongest ? steps.size() - kLongest : 0;
    for (std::size_t i = from; i < steps.size(); ++i) text += (text.empty() ? "" : " ") + steps[i];
    return text;
  }

  // "The key is in the box. Tom has the box. Tom is in the barn."
  std::string chain() const {
    std::string text;
    int thing = q_.thing;
    for (;;) {
      const Spot spot = end_.spot(thing);
      if (spot.kind == Spot::Kind::inside) {
        text += The(thing) + " is in " + the(spot.index) + ". ";
        thing = spot.index;
      } else if (spot.kind == Spot::Kind::person) {
        return text + name(spot.index) + " has " + the(thing) + ". " + name(spot.index) + " is " +
               place(end_.place_of_person(spot.index)).where() + ".";
      } else {
        return text + The(thing) + " is " + place(spot.index).where() + ".";
      }
    }
  }

  // "box, Tom, barn."
  std::string notes() const {
    std::vector<std::string> words;
    int thing = q_.thing;
    while (end_.spot(thing).kind == Spot::Kind::inside) {
      thing = end_.spot(thing).index;
      words.push_back(cast_.things[static_cast<std::size_t>(thing)].noun);
    }
    if (end_.spot(thing).kind == Spot::Kind::person) words.push_back(name(end_.spot(thing).index));
    words.push_back(place(end_.place_of(thing)).noun);
    return listed(words);
  }

  static std::string listed(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text + ".";
  }

  void where_thing() {
    const int where = end_.place_of(q_.thing);
    out_.truth = place(where).noun;
    out_.low = notes();
    out_.high = chain();
    out_.max = joined(trace_thing()) + " So " + the(q_.thing) + " is " + place(where).where() + ".";
  }

  void where_person() {
    const int where = end_.place_of_person(q_.person);
    out_.truth = place(where).noun;
    const auto steps = trace([&](const State& s) { return s.place_of_person(q_.person); });
    out_.high = steps.back();
    out_.max = joined(steps) + " So " + name(q_.person) + " is " + place(where).where() + ".";
  }

  void where_before() {
    const std::vector<int> places = places_of(cast_, events_, q_.thing);
    const int before = places[places.size() - 2];
    out_.truth = place(before).noun;
    const std::size_t from = places.size() > 4 ? places.size() - 4 : 0;
    std::vector<std::string> nouns;
    for (std::size_t i = from; i < places.size(); ++i) {
      nouns.push_back(place(places[i]).noun);
      out_.high += (i == from ? The(q_.thing) + " was " : ", then ") + place(places[i]).where();
    }
    out_.low = listed(nouns);
    out_.high += ".";
    out_.max = joined(trace_thing()) + " Before the " + place(places.back()).noun + ", it was " +
               place(before).where() + ".";
  }

  void who_has() {
    const int who = end_.spot(q_.thing).index;
    out_.truth = name(who);
    const auto steps = trace_thing();
    const auto hands = trace(
        [&](const State& s) { return std::tuple(s.spot(q_.thing).kind, s.spot(q_.thing).index); });
    out_.changes = static_cast<int>(steps.size()) - 1;
    out_.high = hands.back();
    out_.max = joined(hands) + " So " + name(who) + " has " + the(q_.thing) + ".";
  }

  void gift() {
    out_.changes = static_cast<int>(trace_thing().size()) - 1;
    std::vector<std::string> steps;
    for (const Event& e : events_) {
      if (e.what != What::give || e.thing != q_.thing) continue;
      steps.push_back(step(e, -1));
      const bool asked = q_.ask == Ask::who_gave ? e.other == q_.other : e.actor == q_.person;
      if (!asked) continue;
      out_.high = step(e, -1);
      out_.truth = name(q_.ask == Ask::who_gave ? e.actor : e.other);
    }
    out_.max = joined(steps) + " So it was " + out_.truth + ".";
  }

  void colour() {
    const int moved = static_cast<int>(trace_thing().size()) - 1;
    State state(cast_);
    std::vector<std::string> steps, colours;
    for (const Event& e : events_) {
      state.apply(e);
      if (e.thing != q_.thing || e.colour < 0) continue;
      colours.push_back(colour_name(e.colour));
      steps.push_back(e.what == What::paint ? step(e, -1)
                                            : The(e.thing) + " was " + colour_name(e.colour) + ".");
    }
    out_.changes = moved + static_cast<int>(colours.size()) - 1;
    out_.truth = colours.back();
    for (std::size_t i = 0; i < colours.size(); ++i) {
      out_.high += (i == 0 ? The(q_.thing) + " was " : ", then ") + colours[i];
    }
    out_.low = listed(colours);
    out_.high += ".";
    out_.max = joined(steps) + " So " + the(q_.thing) + " is " + out_.truth + ".";
  }

  void number() {
    const Counted& what = cast_.counted[static_cast<std::size_t>(q_.counted)];
    int sum = 0;
    std::vector<std::string> steps, sums, totals;
    for (const Event& e : events_) {
      if (e.counted != q_.counted) continue;
      const bool receives = e.what == What::hand && e.other == q_.person;
      if (e.actor != q_.person && !receives) continue;
      const std::string n = number_word(e.number);
      if (e.what == What::start_count) {
        sum = e.number;
        totals.push_back(n);
        steps.push_back(name(q_.person) + " had " + n + " " + (sum == 1 ? what.one : what.many) +
                        ".");
        continue;
      }
      const bool more = receives || e.what == What::gain;
      const std::string before = number_word(sum);
      sum += more ? e.number : -e.number;
      const std::string term =
          before + (more ? " plus " : " minus ") + n + " is " + number_word(sum);
      sums.push_back(term);
      totals.push_back(number_word(sum));
      steps.push_back(more ? "Then " + n + " more: " + term + "."
                           : "Then " + n + " fewer: " + term + ".");
    }
    out_.truth = number_word(sum);
    out_.changes = static_cast<int>(sums.size());
    out_.low = listed(totals);
    out_.high = number_word(first_number()) + ".";
    for (const std::string& term : sums) out_.high += " " + capitalised(term) + ".";
    out_.high = capitalised(out_.high);
    out_.max = joined_all(steps) + " So " + name(q_.person) + " has " + out_.truth + ".";
  }

  int first_number() const {
    for (const Event& e : events_) {
      if (e.what == What::start_count && e.actor == q_.person && e.counted == q_.counted) {
        return e.number;
      }
    }
    return 0;
  }

  static std::string joined_all(const std::vector<std::string>& steps) {
    std::string text;
    for (const std::string& step : steps) text += (text.empty() ? "" : " ") + step;
    return text;
  }

  // Events that change something after the first for which `from` holds.
  template <class Match>
  int changes_after(Match from) const {
    int changes = -1;
    for (const Event& e : events_) {
      if (changes >= 0 && e.what >= What::go && e.what != What::say) ++changes;
      if (changes < 0 && from(e)) changes = 0;
    }
    return std::max(changes, 0);
  }

  std::string said(const Event& e) const {
    const Person& who = cast_.people[static_cast<std::size_t>(e.actor)];
    return who.name + " said that " +
           filled(cast_.sayings[static_cast<std::size_t>(e.saying)].reported,
                  {{"he", who.he()}, {"his", who.his()}, {"him", who.him()}}) +
           ".";
  }

  void saying() {
    std::vector<std::string> steps;
    for (const Event& e : events_) {
      if (e.what != What::say) continue;
      steps.push_back(said(e));
      if (e.saying != q_.saying) continue;
      out_.truth = name(e.actor);
      out_.high = said(e);
    }
    out_.max = joined(steps) + " So it was " + out_.truth + ".";
    out_.changes = changes_after([&](const Event& e) { return e.saying == q_.saying; });
  }

  void reason() {
    std::vector<std::string> steps;
    for (const Event& e : events_) {
      if (e.what != What::go || e.reason < 0) continue;
      const Person& who = cast_.people[static_cast<std::size_t>(e.actor)];
      const std::string why = filled(cast_.reasons[static_cast<std::size_t>(e.reason)],
                                     {{"he", who.he()}, {"his", who.his()}, {"him", who.him()}});
      const std::string text =
          who.name + " went to the " + place(e.place).noun + " because " + why + ".";
      if (e.actor == q_.person && e.place == q_.place) {
        out_.truth = why;
        out_.high = text;
        steps.push_back(text);
      } else {
        steps.push_back(text);
      }
    }
    out_.max = joined(steps) + " So it was because " + out_.truth + ".";
    out_.changes = changes_after([&](const Event& e) {
      return e.reason >= 0 && e.actor == q_.person && e.place == q_.place;
    });
  }

  void inside() {
    const int content = end_.inside(q_.thing).at(0);
    out_.truth = cast_.things[static_cast<std::size_t>(content)].noun;
    std::vector<std::string> steps;
    State state(cast_);
    for (const Event& e : events_) {
      state.apply(e);
      if (e.container == q_.thing) steps.push_back(step(e, -1));
      if (e.container == q_.thing && e.thing == content && e.what != What::take_out) {
        out_.high = step(e, -1);
      }
    }
    out_.max = joined(steps) + " So " + the(content) + " is in " + the(q_.thing) + ".";
    const int moved = static_cast<int>(trace_thing().size()) - 1;
    out_.changes = moved + static_cast<int>(steps.size());
  }

  void is_it_in() {
    const int where = end_.place_of(q_.thing);
    const bool yes = where == q_.place;
    out_.truth = yes ? "yes" : "no";
    const std::string verdict = yes ? " So yes." : " That is not " + place(q_.place).where() + ".";
    out_.low = notes();
    out_.high = chain() + verdict;
    out_.max = joined(trace_thing()) + " So " + the(q_.thing) + " is " + place(where).where() +
               "." + (yes ? "" : verdict);
  }

  const Cast& cast_;
  const std::vector<Event>& events_;
  const Query& q_;
  State end_;
  Explanation out_;
};

}  // namespace

Explanation explain(const Cast& cast, const std::vector<Event>& events, const Query& query) {
  return Explainer(cast, events, query).run();
}

std::vector<int> places_of(const Cast& cast, const std::vector<Event>& events, int thing) {
  State state(cast);
  std::vector<int> places;
  for (const Event& e : events) {
    state.apply(e);
    const int place = state.place_of(thing);
    if (place >= 0 && (places.empty() || places.back() != place)) places.push_back(place);
  }
  return places;
}

}  // namespace triax::world
