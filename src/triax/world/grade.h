// Is an answer right?
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "triax/world/document.h"

namespace triax::world {

// Lower case, without marks at the end, articles and prepositions at the start, double spaces; a
// number word below 100 becomes digits. "In the kitchen." and "kitchen" are the same.
std::string normalised(std::string_view answer);

// Normalised equality; where both are whole numbers, equal numbers.
bool same_answer(std::string_view answer, std::string_view truth);

// The same tool with equal arguments as JSON values: order of keys and spelling of numbers (1.0, 1)
// do not count.
bool same_call(const Json& call, const Json& truth);

}  // namespace triax::world
