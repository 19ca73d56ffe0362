// The wordings; the second list of each is never seen in training.
#include "triax/world/question_words.h"

#include <array>

namespace triax::world {
namespace {

// A question as one asks it, and as it follows "tell me": many wordings come of the two.
struct Core {
  Ask ask;
  const char *direct, *indirect;
};
constexpr Core kCores[] = {
    {Ask::where_thing, "where is {o}?", "where {o} is"},
    {Ask::where_thing, "where has {o} got to?", "where {o} has got to"},
    {Ask::where_thing, "what place is {o} in?", "what place {o} is in"},
    {Ask::where_person, "where is {A}?", "where {A} is"},
    {Ask::where_person, "where did {A} end up?", "where {A} ended up"},
    {Ask::where_person, "what place is {A} in?", "what place {A} is in"},
    {Ask::where_before, "where was {o} before it was {P}?", "where {o} was before it was {P}"},
    {Ask::where_before, "where was {o} before {p}?", "where {o} was before {p}"},
    {Ask::where_before, "where did {o} come from to {p}?", "where {o} came from to {p}"},
    {Ask::where_before, "in what place was {o} just before it was {P}?",
     "in what place {o} was just before it was {P}"},
    {Ask::who_has, "who has {o}?", "who has {o}"},
    {Ask::who_has, "who has got {o}?", "who has got {o}"},
    {Ask::who_has, "who holds {o}?", "who holds {o}"},
    {Ask::who_gave, "who gave {o} to {B}?", "who gave {o} to {B}"},
    {Ask::who_gave, "from whom did {o} come to {B}?", "from whom {o} came to {B}"},
    {Ask::who_gave, "who let {B} have {o}?", "who let {B} have {o}"},
    {Ask::to_whom, "to whom did {A} give {o}?", "to whom {A} gave {o}"},
    {Ask::to_whom, "who got {o} from {A}?", "who got {o} from {A}"},
    {Ask::to_whom, "who received {o} from {A}?", "who received {o} from {A}"},
    {Ask::what_colour, "what colour is {o}?", "what colour {o} has"},
    {Ask::what_colour, "what colour does {o} have?", "what colour {o} is now"},
    {Ask::what_colour, "which colour is {o}?", "the colour of {o}"},
    {Ask::how_many, "how many {c} does {A} have?", "how many {c} {A} has"},
    {Ask::how_many, "how many {c} has {A} got?", "how many {c} {A} has got"},
    {Ask::how_many, "what number of {c} does {A} have?", "the number of {c} that {A} has"},
    {Ask::who_said, "who said that {s}?", "who said that {s}"},
    {Ask::who_said, "who told the others that {s}?", "who told the others that {s}"},
    {Ask::who_said, "from whom did they hear that {s}?", "from whom they heard that {s}"},
    {Ask::why, "why did {A} go to {p}?", "why {A} went to {p}"},
    {Ask::why, "what was the reason that {A} went to {p}?", "the reason why {A} went to {p}"},
    {Ask::why, "what did {A} go to {p} for?", "what {A} went to {p} for"},
    {Ask::what_inside, "what is in {o}?", "what is in {o}"},
    {Ask::what_inside, "what does {o} hold?", "what {o} holds"},
    {Ask::what_inside, "what thing is inside {o}?", "what thing is inside {o}"},
    {Ask::is_it_in, "is {o} {P}?", "if {o} is {P}"},
    {Ask::is_it_in, "can one find {o} {P}?", "if one can find {o} {P}"},
    {Ask::is_it_in, "is {P} the place where {o} is?", "whether {o} is {P}"}};

void add_variants(std::array<Words, kAsks>& words) {
  for (const Core& core : kCores) {
    std::vector<std::string>& to = words[static_cast<std::size_t>(core.ask)].train;
    for (const char* before :
         {"In the end, ", "Now, ", "So ", "When the story is over, ", "After all that, ",
          "Just to be sure: ", "One question: ", "Answer me this: ", "Once everything is done, "}) {
      to.push_back(before + std::string(core.direct));
    }
    std::string alone = core.direct;
    if (alone[0] >= 'a' && alone[0] <= 'z') alone[0] = static_cast<char>(alone[0] - 32);
    to.push_back(alone);
    to.push_back(alone);
    for (const auto& [before, after] :
         {std::pair{"Can you tell me ", "?"}, std::pair{"I want to know ", "."},
          std::pair{"Could you say ", "?"}, std::pair{"I wonder ", "."}, std::pair{"Say ", "."},
          std::pair{"Let me know ", "."}, std::pair{"Would you tell me ", "?"},
          std::pair{"Did you notice ", "?"}}) {
      to.push_back(before + std::string(core.indirect) + after);
    }
  }
}

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
  add_variants(w);
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
       "I will tell you a story.", "Answer the question about the story.", "This is what happened.",
       "Here is what I heard.", "A short story for you.", "Think about this story.",
       "Look at what they did."},
      {"Please read this carefully.", "Let me tell you what happened."}};
  return words;
}

}  // namespace triax::world
