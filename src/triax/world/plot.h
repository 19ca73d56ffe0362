// Makes up what happens: a cast and a list of events that could all be true.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "triax/world/dice.h"
#include "triax/world/model.h"

namespace triax::world {

// What a story is to be like.
struct PlotWish {
  int people = 4, things = 4, containers = 1, places = 5;
  int counted = 0;  // kinds of counted things
  int events = 14;  // about so many, introductions included
  bool speech = false, reasons = false, paint = false;
  bool sub_plot = true;  // people who have nothing to do with the main thing act too
  Unseen unseen;
};

// How much of what happens.
struct PlotWeights {
  double go, take, drop, put_in, take_out, give, find, say, why;
};

struct Plot {
  std::string name;
  bool held = false;  // of the plot grammars that training never sees
  std::vector<std::string> openings;
  PlotWeights weights;
};

const std::vector<Plot>& plots();

struct Happening {
  const Plot* plot = nullptr;
  Cast cast;
  std::vector<Event> events;
  int focus = 0;  // the thing that most of it is about
};

Happening make_up(Dice& dice, const PlotWish& wish);

}  // namespace triax::world
