// Stories with questions, and stories alone.
#pragma once

#include <string>
#include <vector>

#include "triax/world/baseline.h"
#include "triax/world/dice.h"
#include "triax/world/document.h"
#include "triax/world/question.h"
#include "triax/world/tell.h"

namespace triax::world {

enum class Length : std::uint8_t { small, medium, suite };

struct StoryItem {
  Happening happening;
  std::string story;
  std::size_t sentences = 0;
  std::size_t unseen_phrases = 0;
  std::size_t people = 0, things = 0;  // that are mentioned
  std::vector<Question> questions;
  std::vector<Baselines> baselines;  // of each question
};

// A story with up to `questions` different questions; the first is of kind `first` where that can
// be. Questions that a baseline answers are kept with probability `easy`. For Length::suite the
// story has 8 to 20 sentences and at least 4 people and 4 things, and what is asked about changed
// at least three times after it was first told of.
StoryItem make_story(Dice& dice, Length length, Ask first, std::size_t questions,
                     const Unseen& unseen, double easy);

// "story, question" of the first user message.
std::string story_prompt(Dice& dice, const StoryItem& item, const Unseen& unseen);

// The thinking of a question at an effort.
const std::string& thinking_of(const Question& question, Effort effort);

// A conversation: the story with the first question, then the others.
Json story_document(Dice& dice, const StoryItem& item, Effort effort, const Unseen& unseen);

}  // namespace triax::world
