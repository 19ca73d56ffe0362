// The data as a whole: which kinds, how much of each, which part. Any document can be made alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "triax/world/document.h"
#include "triax/world/lexicon.h"

namespace triax::world {

// Held-out documents use names, things, places, tools, phrasings and operand pairs that training
// documents never use.
enum class Part : std::uint8_t { train, heldout };

struct Kind {
  std::string name;  // "story_long"; also the file's name and the documents' source
  std::string what;  // one line for the manifest
  double share = 0;  // of the documents
};
const std::vector<Kind>& kinds();

// What a document needs beyond its text: kept out of the document in training.
struct Made {
  Json document;
  Json meta;  // "operands", "questions", "unseen": for checks and manifests
};

// Number `index` of a kind. Deterministic in all arguments. Throws Error for an unknown kind.
Made make_document(const std::string& kind, std::uint64_t seed, Part part, std::uint64_t index);

// A key of the random stream for these words and numbers.
std::uint64_t stream_key(std::string_view what, std::uint64_t seed, std::uint64_t index);

// Which unseen things the held-out item number `index` is to have: templates in 40 of 100, entities
// in 30, both in 30.
Unseen unseen_of(Dice& dice);

// Sentences of a text (what stands between marks of the end of a sentence), for overlap.
std::vector<std::string> sentences_of(const std::string& text);

}  // namespace triax::world
