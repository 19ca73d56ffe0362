// The state of a story.
#include "triax/world/model.h"

#include "triax/core/error.h"

namespace triax::world {

State::State(const Cast& cast)
    : person_places_(cast.people.size(), -1),
      spots_(cast.things.size()),
      colours_(cast.things.size(), -1),
      counts_(cast.people.size(), std::vector<int>(cast.counted.size(), -1)) {}

int State::place_of(int thing) const {
  Spot spot = spots_[at(thing)];
  while (spot.kind == Spot::Kind::inside) spot = spots_[at(spot.index)];
  if (spot.kind == Spot::Kind::person) return place_of_person(spot.index);
  return spot.kind == Spot::Kind::place ? spot.index : -1;
}

int State::holder_of(int thing) const {
  Spot spot = spots_[at(thing)];
  while (spot.kind == Spot::Kind::inside) spot = spots_[at(spot.index)];
  return spot.kind == Spot::Kind::person ? spot.index : -1;
}

int State::count(int person, int counted) const {
  return counts_[at(person)][at(counted)];
}

std::vector<int> State::held_by(int person) const {
  std::vector<int> out;
  for (std::size_t i = 0; i < spots_.size(); ++i) {
    if (spots_[i] == Spot{Spot::Kind::person, person}) out.push_back(static_cast<int>(i));
  }
  return out;
}

std::vector<int> State::inside(int container) const {
  std::vector<int> out;
  for (std::size_t i = 0; i < spots_.size(); ++i) {
    if (spots_[i] == Spot{Spot::Kind::inside, container}) out.push_back(static_cast<int>(i));
  }
  return out;
}

void State::apply(const Event& e) {
  switch (e.what) {
    case What::person_at:
    case What::go:
      TRIAX_CHECK((e.what == What::person_at) == !known_person(e.actor));
      TRIAX_CHECK(e.place >= 0 && place_of_person(e.actor) != e.place);
      person_places_[at(e.actor)] = e.place;
      break;
    case What::start_count:
    case What::gain:
    case What::lose:
    case What::hand:
      apply_count(e);
      break;
    case What::say:
      TRIAX_CHECK(e.saying >= 0 && known_person(e.actor));
      break;
    default:
      apply_thing(e);
  }
}

void State::apply_thing(const Event& e) {
  Spot& spot = spots_[at(e.thing)];
  const Spot held{Spot::Kind::person, e.actor};
  const int here = e.actor >= 0 ? place_of_person(e.actor) : -1;
  const auto in_reach = [&](int thing) {  // where it can be touched by the actor
    return spots_[at(thing)] == held || spots_[at(thing)] == Spot{Spot::Kind::place, here};
  };
  switch (e.what) {
    case What::thing_at:
      spot = {Spot::Kind::place, e.place};
      colours_[at(e.thing)] = e.colour;
      break;
    case What::thing_in:
      TRIAX_CHECK(known_thing(e.container));
      spot = {Spot::Kind::inside, e.container};
      colours_[at(e.thing)] = e.colour;
      break;
    case What::person_has:
      TRIAX_CHECK(here >= 0);
      spot = held;
      colours_[at(e.thing)] = e.colour;
      break;
    case What::take:
      TRIAX_CHECK((spot == Spot{Spot::Kind::place, here}));
      spot = held;
      break;
    case What::take_out:
      TRIAX_CHECK((spot == Spot{Spot::Kind::inside, e.container}) && in_reach(e.container));
      spot = held;
      break;
    case What::drop:
      TRIAX_CHECK(spot == held);
      spot = {Spot::Kind::place, here};
      break;
    case What::put_in:
      TRIAX_CHECK(spot == held && e.thing != e.container && in_reach(e.container));
      spot = {Spot::Kind::inside, e.container};
      break;
    case What::give:
      TRIAX_CHECK(spot == held && e.other != e.actor && place_of_person(e.other) == here);
      spot = {Spot::Kind::person, e.other};
      break;
    case What::paint:
      TRIAX_CHECK(in_reach(e.thing) && e.colour >= 0);
      colours_[at(e.thing)] = e.colour;
      break;
    default:
      TRIAX_CHECK(false, "an event that is none of a thing");
  }
}

void State::apply_count(const Event& e) {
  int& count = counts_[at(e.actor)][at(e.counted)];
  if (e.what == What::start_count) {
    TRIAX_CHECK(count < 0);
    count = e.number;
    return;
  }
  TRIAX_CHECK(count >= 0 && e.number > 0);
  count += e.what == What::gain ? e.number : -e.number;
  TRIAX_CHECK(count >= 0);
  if (e.what == What::hand) {
    int& other = counts_[at(e.other)][at(e.counted)];
    TRIAX_CHECK(other >= 0 && e.other != e.actor);
    other += e.number;
  }
}

}  // namespace triax::world
