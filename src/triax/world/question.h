// Questions about a story, with their answers and the thinking that leads there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "triax/world/dice.h"
#include "triax/world/plot.h"

namespace triax::world {

enum class Ask : std::uint8_t {
  where_thing,
  where_person,
  where_before,
  who_has,
  who_gave,
  to_whom,
  what_colour,
  how_many,
  who_said,
  why,
  what_inside,
  is_it_in,
};
inline constexpr std::size_t kAsks = 12;
const char* ask_name(Ask ask);

// What a question is about, as indices into the cast; enough to answer it from the events.
struct Query {
  Ask ask = Ask::where_thing;
  int thing = -1, person = -1, other = -1, place = -1, counted = -1, saying = -1;
};

struct Question {
  Query query;
  std::string text;
  std::string answer;      // as the assistant says it: "In the barn."
  std::string truth;       // the word or words that count: "barn"
  std::string think_low;   // notes, or nothing
  std::string think_high;  // one or two steps
  std::string think_max;   // everything that happened to what is asked about
  // What could be answered: the same sort of word as the truth, all that the story has of it.
  std::vector<std::string> candidates;
  int changes = 0;  // of what is asked about, after it was first told of
  bool unseen_entity = false;
};

// Every question that has exactly one right answer after all events, `ask` by `ask`, in random
// order.
std::vector<Query> possible_queries(Dice& dice, const Happening& happening);

// Words the question, its answer and the thinking.
Question make_question(Dice& dice, const Happening& happening, const Query& query,
                       const Unseen& unseen);

}  // namespace triax::world
