// What is true in a story: who and what there is, what happens, and what follows from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "triax/world/lexicon.h"

namespace triax::world {

struct Person {
  std::string name;
  bool woman = false;
  bool unseen = false;  // from a list that training never sees

  std::string he() const { return woman ? "she" : "he"; }
  std::string him() const { return woman ? "her" : "him"; }
  std::string his() const { return woman ? "her" : "his"; }
};

struct Thing {
  std::string noun;
  std::string adjective;  // of the first mention; empty, or not a colour
  bool container = false;
  bool unseen = false;
};

// All a story may speak of; events name them by index.
struct Cast {
  const Theme* theme = nullptr;
  std::vector<Person> people;
  std::vector<Thing> things;  // containers among them
  std::vector<Place> places;
  std::vector<bool> unseen_places;
  std::vector<Counted> counted;
  std::vector<std::string> colours;
  std::vector<Saying> sayings;
  std::vector<Reason> reasons;
};

enum class What : std::uint8_t {
  person_at,    // actor is at place (known from here on)
  thing_at,     // thing lies at place, of colour or none
  thing_in,     // thing is in container
  person_has,   // actor holds thing
  start_count,  // actor has number of counted
  go,           // actor to place, maybe with reason
  take,         // actor takes thing that lies at the actor's place
  take_out,     // actor takes thing out of container
  drop,         // actor leaves thing at the actor's place
  put_in,       // actor puts thing into container
  give,         // actor gives thing to other
  paint,        // thing gets colour
  gain,         // actor gets number more
  lose,         // actor has number fewer
  hand,         // actor gives number to other
  say,          // actor says saying
};

struct Event {
  What what;
  int actor = -1, other = -1;      // people
  int thing = -1, container = -1;  // things
  int place = -1, colour = -1;
  int counted = -1, number = 0;
  int saying = -1, reason = -1;
};

// Where a thing is.
struct Spot {
  enum class Kind : std::uint8_t { unknown, place, person, inside };
  Kind kind = Kind::unknown;
  int index = -1;
  bool operator==(const Spot&) const = default;
};

// The state after some events. Everything is unknown before it is told.
class State {
 public:
  explicit State(const Cast& cast);

  // Throws LogicError when the event cannot happen (a fault of the plot).
  void apply(const Event& event);

  int place_of_person(int person) const { return person_places_[at(person)]; }
  Spot spot(int thing) const { return spots_[at(thing)]; }
  int place_of(int thing) const;   // through whoever or whatever holds it; -1: unknown
  int holder_of(int thing) const;  // directly, or of the container around it; -1: nobody
  int colour(int thing) const { return colours_[at(thing)]; }
  int count(int person, int counted) const;  // -1: not told
  bool known_person(int person) const { return place_of_person(person) >= 0; }
  bool known_thing(int thing) const { return spot(thing).kind != Spot::Kind::unknown; }
  std::vector<int> held_by(int person) const;
  std::vector<int> inside(int container) const;

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  void apply_thing(const Event& event);
  void apply_count(const Event& event);

  std::vector<int> person_places_;
  std::vector<Spot> spots_;
  std::vector<int> colours_;
  std::vector<std::vector<int>> counts_;  // [person][counted]
};

}  // namespace triax::world
