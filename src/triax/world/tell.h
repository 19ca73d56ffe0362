// From events to sentences.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "triax/world/dice.h"
#include "triax/world/plot.h"

namespace triax::world {

struct Sentence {
  std::string text;
  std::size_t events_end = 0;  // events [0, events_end) have been told with this sentence
};

struct Told {
  std::vector<Sentence> sentences;
  std::size_t unseen_phrases = 0;  // phrasings that training never sees
  std::size_t coined_verbs = 0;

  std::string text() const;
};

// Tells all events in their order: several may share a sentence, pronouns stand only for the
// subject of the sentence before where nobody else could be meant, and sentences that change
// nothing stand between.
Told tell(Dice& dice, const Happening& happening, const Unseen& unseen);

}  // namespace triax::world
