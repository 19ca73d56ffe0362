// Answers by looking back from the end of the events.
#include "triax/world/replay.h"

#include <algorithm>

namespace triax::world {
namespace {

class Replay {
 public:
  Replay(const Cast& cast, const std::vector<Event>& events) : cast_(cast), events_(events) {}

  std::string answer(const Query& q) const {
    const std::size_t end = events_.size();
    switch (q.ask) {
      case Ask::where_thing:
        return place_name(thing_place(q.thing, end));
      case Ask::where_person:
        return place_name(person_place(q.person, end));
      case Ask::where_before:
        return place_name(place_before(q.thing));
      case Ask::who_has:
        return person_name(hands(q.thing, end));
      case Ask::who_gave:
      case Ask::to_whom:
        return gift(q);
      case Ask::what_colour:
        return colour(q.thing);
      case Ask::how_many:
        return number(q);
      case Ask::who_said:
        return speaker(q.saying);
      case Ask::why:
        return reason(q);
      case Ask::what_inside:
        return content(q.thing);
      case Ask::is_it_in:
        return thing_place(q.thing, end) == q.place ? "yes" : "no";
    }
    return {};
  }

 private:
  std::string place_name(int i) const {
    return i < 0 ? "" : cast_.places[static_cast<std::size_t>(i)].noun;
  }
  std::string person_name(int i) const {
    return i < 0 ? "" : cast_.people[static_cast<std::size_t>(i)].name;
  }

  // The last event before `end` for which `match` holds; null when there is none.
  template <class Match>
  const Event* last(std::size_t end, Match match, std::size_t* at = nullptr) const {
    for (std::size_t i = end; i > 0; --i) {
      if (!match(events_[i - 1])) continue;
      if (at != nullptr) *at = i - 1;
      return &events_[i - 1];
    }
    return nullptr;
  }

  int person_place(int person, std::size_t end) const {
    const Event* e = last(end, [&](const Event& x) {
      return x.actor == person && (x.what == What::go || x.what == What::person_at);
    });
    return e == nullptr ? -1 : e->place;
  }

  // The last event that says who or what has the thing.
  const Event* moved(int thing, std::size_t end, std::size_t* at = nullptr) const {
    return last(end, [&](const Event& x) { return x.thing == thing && x.what != What::paint; }, at);
  }

  int thing_place(int thing, std::size_t end) const {
    std::size_t at = 0;
    const Event* e = moved(thing, end, &at);
    if (e == nullptr) return -1;
    switch (e->what) {
      case What::thing_at:
        return e->place;
      case What::thing_in:
      case What::put_in:
        return thing_place(e->container, end);
      case What::give:
        return person_place(e->other, end);
      case What::drop:
        return person_place(e->actor, at);
      default:
        return person_place(e->actor, end);
    }
  }

  // Who holds it in the hand.
  int hands(int thing, std::size_t end) const {
    const Event* e = moved(thing, end);
    if (e == nullptr) return -1;
    if (e->what == What::give) return e->other;
    const bool held =
        e->what == What::take || e->what == What::take_out || e->what == What::person_has;
    return held ? e->actor : -1;
  }

  int place_before(int thing) const {
    const int now = thing_place(thing, events_.size());
    for (std::size_t end = events_.size(); end > 0; --end) {
      const int then = thing_place(thing, end);
      if (then != now) return then;
    }
    return -1;
  }

  std::string gift(const Query& q) const {
    const Event* e = last(events_.size(), [&](const Event& x) {
      if (x.what != What::give || x.thing != q.thing) return false;
      return q.ask == Ask::who_gave ? x.other == q.other : x.actor == q.person;
    });
    if (e == nullptr) return {};
    return person_name(q.ask == Ask::who_gave ? e->actor : e->other);
  }

  std::string colour(int thing) const {
    const Event* e =
        last(events_.size(), [&](const Event& x) { return x.thing == thing && x.colour >= 0; });
    return e == nullptr ? "" : cast_.colours[static_cast<std::size_t>(e->colour)];
  }

  std::string number(const Query& q) const {
    int sum = 0;
    bool told = false;
    for (const Event& e : events_) {
      if (e.counted != q.counted) continue;
      if (e.actor == q.person) {
        told = told || e.what == What::start_count;
        sum += e.what == What::start_count || e.what == What::gain ? e.number : -e.number;
      } else if (e.what == What::hand && e.other == q.person) {
        sum += e.number;
      }
    }
    return told ? number_word(sum) : "";
  }

  std::string speaker(int saying) const {
    const Event* e = last(events_.size(), [&](const Event& x) { return x.saying == saying; });
    return e == nullptr ? "" : person_name(e->actor);
  }

  std::string reason(const Query& q) const {
    const Event* e = last(events_.size(), [&](const Event& x) {
      return x.what == What::go && x.reason >= 0 && x.actor == q.person && x.place == q.place;
    });
    if (e == nullptr) return {};
    const Person& who = cast_.people[static_cast<std::size_t>(q.person)];
    return filled(cast_.reasons[static_cast<std::size_t>(e->reason)],
                  {{"he", who.he()}, {"his", who.his()}, {"him", who.him()}});
  }

  std::string content(int container) const {
    std::string found;
    for (int thing = 0; thing < static_cast<int>(cast_.things.size()); ++thing) {
      const Event* e = moved(thing, events_.size());
      if (e == nullptr || e->container != container) continue;
      if (e->what != What::put_in && e->what != What::thing_in) continue;
      if (!found.empty()) return {};
      found = cast_.things[static_cast<std::size_t>(thing)].noun;
    }
    return found;
  }

  const Cast& cast_;
  const std::vector<Event>& events_;
};

}  // namespace

std::string replay_answer(const Cast& cast, const std::vector<Event>& events, const Query& query) {
  return Replay(cast, events).answer(query);
}

}  // namespace triax::world
