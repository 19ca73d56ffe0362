// Stories for their own sake: somebody wants something, something is in the way, and it ends.
#pragma once

#include <string>

#include "triax/world/dice.h"
#include "triax/world/document.h"
#include "triax/world/lexicon.h"

namespace triax::world {

struct Tale {
  std::string text;
  std::string hero, thing;  // whom and what it is about
};

Tale make_tale(Dice& dice, const Unseen& unseen);

// "Tell me a story about a kite." and the story.
Json tale_document(Dice& dice, Effort effort, const Unseen& unseen);
// The story alone.
Json tale_text(Dice& dice, const Unseen& unseen);

}  // namespace triax::world
