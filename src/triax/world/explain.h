// From the state to the truth, step by step, in words.
#pragma once

#include <string>
#include <vector>

#include "triax/world/question.h"

namespace triax::world {

struct Explanation {
  std::string truth;
  std::string low, high, max;  // thinking; low: notes, empty where the answer is one step away
  int changes = 0;             // of what is asked about, after it was first told of
};

Explanation explain(const Cast& cast, const std::vector<Event>& events, const Query& query);

// The places of a thing in order, neighbours different; at least one for a thing that is known.
std::vector<int> places_of(const Cast& cast, const std::vector<Event>& events, int thing);

}  // namespace triax::world
