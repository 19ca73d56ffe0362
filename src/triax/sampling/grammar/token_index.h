// The vocabulary as grammars see it: a tree of the tokens' bytes, and the ids of the markers.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "triax/sampling/grammar/byte_dfa.h"
#include "triax/tokenizer/tokenizer.h"

namespace triax::grammar {

// All ordinary tokens, as a tree in preorder. Node 0 is the root (no bytes).
class TokenTree {
 public:
  explicit TokenTree(const RankTable& ranks);

  std::size_t size() const { return byte_.size(); }
  std::uint8_t byte(std::uint32_t node) const { return byte_[node]; }
  std::uint16_t depth(std::uint32_t node) const { return depth_[node]; }  // bytes so far
  std::uint32_t end(std::uint32_t node) const { return end_[node]; }      // past all below
  std::uint32_t parent(std::uint32_t node) const { return parent_[node]; }
  std::int32_t token(std::uint32_t node) const { return token_[node]; }  // -1: none ends here
  std::size_t longest() const { return longest_; }

 private:
  std::vector<std::uint8_t> byte_;
  std::vector<std::uint16_t> depth_;
  std::vector<std::uint32_t> end_, parent_;
  std::vector<std::int32_t> token_;
  std::size_t longest_ = 0;
};

// Which tokens a lexeme takes whole in one of its states, and where a token may leave it.
struct LexMask {
  struct Exit {
    std::uint32_t node;    // of the tree
    std::uint16_t starts;  // characters begun on the way
  };
  bool dense = false;
  std::vector<std::uint64_t> bits;    // dense: [words of the mask]
  std::vector<std::int32_t> tokens;   // else
  std::vector<std::uint16_t> starts;  // characters begun: [vocabulary] or as `tokens`; may be empty
  std::vector<Exit> ends;   // tokens that end in a last state of the lexeme; not among the above
  std::vector<Exit> exits;  // the lexeme accepts, and tokens go on below; none before a marker
  std::size_t memory() const;
};

// An automaton with the masks of its states, found when they are first asked for and kept up to a
// limit. Any number of threads may ask.
class Lexeme {
 public:
  // `marker_follows`: what comes after is a marker token, never more bytes.
  Lexeme(ByteDfa dfa, bool marker_follows) : dfa_(std::move(dfa)), marker_(marker_follows) {}

  const ByteDfa& dfa() const { return dfa_; }
  bool marker_follows() const { return marker_; }
  // With `counted`, the characters that each token begins too.
  std::shared_ptr<const LexMask> mask(std::uint16_t state, bool counted, const TokenTree& tree,
                                      std::size_t words) const;

 private:
  ByteDfa dfa_;
  bool marker_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const LexMask>> masks_;  // [state * 2 + counted]
  mutable std::size_t kept_ = 0;                               // bytes
};

// Built once for a tokenizer, which must outlive it; then shared by all grammars and threads.
class TokenIndex {
 public:
  explicit TokenIndex(const Tokenizer& tokenizer);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const TokenTree& tree() const { return tree_; }
  std::size_t vocab() const { return vocab_; }
  std::size_t words() const { return (vocab_ + 63) / 64; }

  // Lexemes that grammars have in common.
  enum Common : std::uint8_t {
    kString,     // a JSON string
    kKey,        // a JSON string in its one spelling
    kNumber,     // a JSON number
    kInteger,    // without point and exponent
    kRaw,        // UTF-8 up to a marker
    kAttribute,  // the value of an attribute, up to a marker
    kText,       // any bytes up to a marker
    kCommons,
  };
  const std::shared_ptr<const Lexeme>& common(Common which) const { return commons_[which]; }

 private:
  const Tokenizer& tokenizer_;
  TokenTree tree_;
  std::size_t vocab_;
  std::vector<std::shared_ptr<const Lexeme>> commons_;
};

}  // namespace triax::grammar
