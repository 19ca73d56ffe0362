// The words of the small world: people, places, things, and the phrasings of what happens.
//
// Every list has a part that training never sees (`held`): the held-out data and the suite draw
// from it where an item is to have unseen entities or unseen phrasings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triax/world/dice.h"

namespace triax::world {

// What a document may use beyond the training lists.
struct Unseen {
  bool entities = false;
  bool templates = false;

  // A document of the training part: it may coin words, held-out ones draw from lists.
  bool none() const { return !entities && !templates; }
};

// A list in two parts.
template <class T>
struct Split {
  std::vector<T> train, held;

  // With `unseen`, from the held part with probability `share`.
  const T& pick(Dice& dice, bool unseen, double share = 0.6) const {
    if (unseen && !held.empty() && dice.chance(share)) return dice.pick(held);
    return dice.pick(train);
  }
};

using Words = Split<std::string>;

struct Place {
  std::string preposition;  // "in", "on", "at", "by", "under"
  std::string noun;         // "kitchen"

  std::string where() const { return preposition + " the " + noun; }
};

// Things that are counted: "apple", "apples".
struct Counted {
  std::string one, many;
};

// A corner of the world with a small vocabulary of its own; a story stays in one.
struct Theme {
  std::string name;
  Split<Place> places;
  Words things, containers;
  Split<Counted> counted;
  std::vector<std::string> openings, remarks, closings;  // sentences that change nothing
};

// What someone says: directly ("It will rain soon") and reported ("it would rain soon").
struct Saying {
  std::string direct, reported;
};

// Why someone goes somewhere: "he was thirsty", with {he} for the pronoun.
using Reason = std::string;

struct Lexicon {
  Words women, men;
  std::vector<Theme> themes;
  Words colours;
  Words sizes;  // adjectives of things that are not colours
  Split<Saying> sayings;
  Split<Reason> reasons;

  static const Lexicon& get();

  // Number of words in all lists, for the manifest.
  std::size_t nouns() const;
};

// Predicates and sentences by what happens. Placeholders: {o} the thing, {c} the container, {p} the
// place with "the", {P} with its preposition, {B} the other person, {A} the subject (whole
// sentences only), {n} a number with its noun, {k} a colour, {his} {him} {he} {himself}, {v} {V} a
// verb that nobody knows ("plonded", "plonding").
struct Phrases {
  Words go, carry;             // subject goes to {p}; goes to {p} with {o} in hand
  Words take, find, take_out;  // {o} from where it lies; first seen there; out of {c}
  Words drop, put_in;          // {o} here; {o} into {c}
  Words give, obtain;          // subject gives {o} to {B}; subject gets {o} from {B}
  Words paint;                 // {o} becomes {k}
  Words gain, lose, hand;      // {n} more; {n} fewer; {n} to {B}
  Words start_count;           // {n} at the start
  Words go_why;                // whole sentences: {A} goes to {p} because {w}
  Words say, say_reported;     // whole sentences with {s}
  Words told_go;               // {B} reports that {A} has gone to {p}
  Words person_at, thing_at;   // introductions
  Words thing_in, person_has;
  std::vector<std::string> then, meanwhile;  // connectives

  static const Phrases& get();

  // Number of different verbs-with-frame in all lists.
  std::size_t size() const;
};

// "a key", "an apple".
std::string with_article(std::string_view noun);
std::string capitalised(std::string text);
// Small numbers as words: 0..99.
std::string number_word(int n);

// Is this, in any case, a word that training documents never use?
bool is_held_word(const std::string& word);

// Replaces every "{key}" by its value.
std::string filled(std::string text,
                   const std::vector<std::pair<std::string_view, std::string>>& values);

}  // namespace triax::world
