// Short conversations: greetings, small facts, remembering what was said, comparing and counting.
#pragma once

#include <string>

#include "triax/world/dice.h"
#include "triax/world/document.h"
#include "triax/world/lexicon.h"

namespace triax::world {

struct TalkItem {
  std::string text, answer, truth;
  std::string think_high, think_max;
  std::string kind;  // "fact", "compare", "count", "repeat"

  std::string thinking(Effort effort) const;
};

// One question of small knowledge or a small task.
TalkItem make_talk(Dice& dice, const Unseen& unseen);

// A few turns: greeting, telling something about oneself, small questions, a question about what
// was told, goodbye.
Json talk_document(Dice& dice, Effort effort, const Unseen& unseen);

}  // namespace triax::world
