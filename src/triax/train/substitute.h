// Words of conversations replaced by random ones, so that an answer can only be copied.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "triax/core/rng.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/train/documents.h"

namespace triax::train {

// A model that has learned the words of its training data by heart answers with them, also where
// the text says others. Here rare words (runs of ASCII letters in at most a tenth of the source's
// documents, whatever their capitals) become one to three random pieces of the vocabulary, each
// word the same throughout its document, with a capital where it had one, in names of tools and
// parameters too. What is asked stays the same; the answer is a word that no list holds. Most words
// of the assistant that were said before are replaced, and a quarter of the others, that the
// replaced ones are no hint. Never replaced: keys and kinds of the JSON form, words that the
// assistant says first, their relatives (a word with the same three first letters), and
// `source.substitute_keep`.
class WordSubstitution {
 public:
  WordSubstitution(const DataSource& source, std::span<const RawDocument> documents,
                   const Tokenizer& tokenizer);

  // The conversation (JSON) with words replaced. Any number of threads may call it.
  std::string apply(std::string_view conversation, Rng& rng) const;

 private:
  bool rare(const std::string& word) const;
  std::string any_word(Rng& rng) const;

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, std::uint32_t> documents_;  // that hold the word
  std::unordered_set<std::string> keep_;
  std::size_t most_;  // documents that hold a rare word
};

}  // namespace triax::train
