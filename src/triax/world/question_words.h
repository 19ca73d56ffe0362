// How questions are worded.
#pragma once

#include "triax/world/lexicon.h"
#include "triax/world/question.h"

namespace triax::world {

// Placeholders: {o} the thing, {A} the person, {B} the other, {p} the place with "the", {P} with
// its preposition, {c} the counted things, {s} what was said.
const Words& question_words(Ask ask);
// Put before a question now and then.
const Words& question_openers();

}  // namespace triax::world
