// Words that nobody has seen. Training is full of them, so that a model learns to read what a word
// does from where it stands, and to copy it, instead of knowing the lists by heart: the held-out
// part has other lists.
#pragma once

#include <string>

#include "triax/world/dice.h"
#include "triax/world/lexicon.h"

namespace triax::world {

// Letters that mean nothing, so that every piece of the vocabulary is met as something to be found
// again: "stuvol", "Kra", "obe". Never a held word.
std::string any_letters(Dice& dice);

// A name made of syllables, never the same as one of the lists. Ends with a, e, i for women.
std::string made_up_name(Dice& dice, bool woman);
// A thing nobody has seen: "wiffle", "dorbit".
std::string made_up_thing(Dice& dice);

// A noun out of everyday pieces or none: "lampyard", "copper gate", "marble", "stuvol". Never a
// held word.
std::string coined_noun(Dice& dice);
Place coined_place(Dice& dice);

// The stem of a verb: "plond", for "plonded" and "plonding".
std::string coined_verb(Dice& dice);

// Now and then a question with a word before it or after it: "What is 2 + 2, please?", "Hello! Who
// has the key?".
std::string in_company(Dice& dice, std::string question);

}  // namespace triax::world
