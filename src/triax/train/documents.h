// Training data as documents: files are read, cut, made into token ids.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/core/thread_pool.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/train/train_config.h"

namespace triax::train {

// A document before it has ids. `where` names it in messages: "stories.jsonl:12".
struct RawDocument {
  std::string text;          // plain text, or
  std::string conversation;  // the JSON object with "messages"
  std::string where;
};

// Reads the source's files. Plain text: a file, or the parts between blank lines, each a document,
// without white space at both ends. JSON lines: {"text": ...} or {"messages": [...]}, other keys as
// the chat format knows them; empty lines are passed over. `digest` receives a SHA-256 over the
// bytes of all files. Throws Error naming file and line.
std::vector<RawDocument> read_documents(const DataSource& source, std::string& digest);

// The text that a tokenizer is made from: the document's own, or the contents of its messages.
std::string plain_text(const RawDocument& document);

// All documents of a source as ids, one after the other.
struct DocumentSet {
  std::string name, digest;
  double weight = 1;
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> learn;    // [ids]: may this token be a target?
  std::vector<std::size_t> begin{0};  // [documents + 1]
  std::vector<std::uint8_t> whole;    // [documents]: never cut, skipped where it is too long
  std::size_t dropped = 0;            // documents without anything to learn
  std::size_t substituted = 0;        // documents with words replaced (substitute.h)

  std::size_t documents() const { return begin.size() - 1; }
  std::size_t rows() const { return ids.size() - documents(); }  // a document's last id is no input
  std::size_t rows(std::size_t document) const { return begin[document + 1] - begin[document] - 1; }
  std::uint64_t targets() const;
  // Documents of which a stage of that context can draw something.
  std::size_t drawable(std::size_t context) const;
};

// Called from the calling thread with documents done and in all.
using DocumentProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Text: the ids of encode(), then [EOS]; every token but the first is a target. Conversations: as
// the chat format renders them, learning what `learn` says; in a share `substitute` of them, drawn
// from the seed, words are replaced first. A document of which nothing can be
// learned is dropped and counted; a source of which nothing is left is an Error.
DocumentSet tokenize_documents(const DataSource& source, std::span<const RawDocument> documents,
                               const std::string& digest, const Tokenizer& tokenizer,
                               ThreadPool& pool, std::uint64_t seed,
                               const DocumentProgress& progress = {});

}  // namespace triax::train
