// A second way to the answers: reads the list of events backwards, without the state that the plot
// was made with. What both agree on is taken as true.
#pragma once

#include <string>

#include "triax/world/question.h"

namespace triax::world {

// The word that answers the query, lower case or a name; empty when the events do not say.
std::string replay_answer(const Cast& cast, const std::vector<Event>& events, const Query& query);

}  // namespace triax::world
