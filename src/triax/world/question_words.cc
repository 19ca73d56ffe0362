// The wordings; the second list of each is never seen in training.
#include "triax/world/question_words.h"

#include <array>

namespace triax::world {
namespace {

std::array<Words, kAsks> make_words() {
  std::array<Words, kAsks> w;
  const auto at = [&](Ask ask) -> Words& { return w[static_cast<std::size_t>(ask)]; };
  at(Ask::where_thing) = {
      {"Where is {o}?", "Where is {o} now?", "Where is {o} at the end?", "In which place is {o}?",
       "Where can {o} be found?", "Tell me where {o} is.", "Do you know where {o} is?",
       "Where did {o} end up?"},
      {"Where would you look for {o}?", "Please tell me where {o} is now.",
       "At the end, where is {o}?"}};
  at(Ask::where_person) = {
      {"Where is {A}?", "Where is {A} now?", "Where is {A} at the end?", "Where can {A} be found?",
       "Tell me where {A} is.", "In which place is {A}?", "Do you know where {A} is?"},
      {"Where would you look for {A}?", "Please tell me where {A} is now.",
       "At the end, where is {A}?"}};
  at(Ask::where_before) = {
      {"Where was {o} before it was {P}?", "Where was {o} before it came to {p}?",
       "In what place was {o} before {p}?", "In which place was {o} before {p}?"},
      {"Before it was {P}, where was {o}?", "Where had {o} been before it came to {p}?"}};
  at(Ask::who_has) = {
      {"Who has {o}?", "Who has {o} now?", "Who has {o} at the end?", "Who is holding {o}?",
       "Tell me who has {o}.", "With whom is {o}?", "Who is carrying {o}?"},
      {"Please tell me who has {o} now.", "At the end, who has {o}?",
       "Do you know who is holding {o}?"}};
  at(Ask::who_gave) = {{"Who gave {o} to {B}?", "Who gave {B} {o}?", "From whom did {B} get {o}?",
                        "Tell me who gave {o} to {B}."},
                       {"Do you know who gave {o} to {B}?", "By whom was {o} given to {B}?"}};
  at(Ask::to_whom) = {{"Who did {A} give {o} to?", "To whom did {A} give {o}?",
                       "Who got {o} from {A}?", "Tell me who {A} gave {o} to."},
                      {"Do you know who {A} gave {o} to?", "Who was given {o} by {A}?"}};
  at(Ask::what_colour) = {
      {"What colour is {o}?", "What colour is {o} now?", "What colour is {o} at the end?",
       "Which colour does {o} have?", "Tell me the colour of {o}."},
      {"Please tell me what colour {o} is now.", "What is the colour of {o}?"}};
  at(Ask::how_many) = {
      {"How many {c} does {A} have?", "How many {c} does {A} have now?",
       "How many {c} does {A} have at the end?", "How many {c} are left to {A}?",
       "Tell me how many {c} {A} has."},
      {"Please tell me how many {c} {A} has now.", "At the end, how many {c} does {A} have?"}};
  at(Ask::who_said) = {{"Who said that {s}?", "Who told the others that {s}?",
                        "Tell me who said that {s}.", "Which of them said that {s}?"},
                       {"Do you know who said that {s}?", "Who was it that said that {s}?"}};
  at(Ask::why) = {{"Why did {A} go to {p}?", "Why was it that {A} went to {p}?",
                   "Tell me why {A} went to {p}.", "For what reason did {A} go to {p}?"},
                  {"Do you know why {A} went to {p}?", "What made {A} go to {p}?"}};
  at(Ask::what_inside) = {{"What is in {o}?", "What is inside {o}?", "What is in {o} now?",
                           "Which thing is in {o}?", "Tell me what is in {o}."},
                          {"Please tell me what is inside {o}.", "What would you find in {o}?"}};
  at(Ask::is_it_in) = {{"Is {o} {P}?", "Is {o} {P} now?", "Is {o} {P} at the end?",
                        "Is it true that {o} is {P}?", "Can {o} be found {P}?"},
                       {"Would you find {o} {P}?", "At the end, is {o} {P}?"}};
  return w;
}

}  // namespace

const Words& question_words(Ask ask) {
  static const std::array<Words, kAsks> words = make_words();
  return words[static_cast<std::size_t>(ask)];
}

const Words& question_openers() {
  static const Words words = {
      {"Read the story and answer.", "Here is a story.", "Listen to this story.",
       "I will tell you a story.", "Answer the question about the story."},
      {"Please read this carefully.", "Let me tell you what happened."}};
  return words;
}

}  // namespace triax::world
