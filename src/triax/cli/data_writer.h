// Writes the training and held-out data of the small world, and what is known about it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "triax/world/document.h"

namespace triax::cli {

struct DataPlan {
  std::string out;
  std::uint64_t seed = 1;
  std::size_t documents = 0;       // of training; 0: as many as `tokens` takes
  std::uint64_t tokens = 0;        // of training, about
  std::size_t heldout = 0;         // documents
  std::vector<std::string> kinds;  // empty: all
  std::string wordnet;             // a folder with data.noun, ...; empty: none
  std::vector<std::string> prose;  // plain texts
};

// Tokens that a document will be, about: its pieces, and what the chat form adds.
std::size_t about_tokens(const world::Json& document);

// Told how many tokens are written, about, and how many there will be.
using DataProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Writes OUT/train/KIND.jsonl, OUT/heldout/KIND.jsonl and OUT/manifest.json; returns the manifest.
// Throws Error for a file that cannot be read or written.
world::Json write_data(const DataPlan& plan, const DataProgress& progress);

// Documents of text from outside: glosses of a WordNet folder, paragraphs of a plain text.
std::vector<world::Json> wordnet_documents(const std::string& folder);
std::vector<world::Json> prose_documents(const std::string& file);
// The licence that heads WordNet's files.
std::string wordnet_licence(const std::string& folder);

}  // namespace triax::cli
