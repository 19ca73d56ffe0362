// Exercises in finding again what was said: lists repeated, pairs, and values that change. What a
// small model has to be able to do before it can follow a story.
#pragma once

#include "triax/world/dice.h"
#include "triax/world/document.h"
#include "triax/world/lexicon.h"

namespace triax::world {

// A text of 20 to 120 words whose second half follows from its first.
Json recall_text(Dice& dice, const Unseen& unseen);

}  // namespace triax::world
