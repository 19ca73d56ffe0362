// K3's tokenizer: text to token ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/tokenizer/rank_file.h"
#include "triax/tokenizer/special_tokens.h"

namespace triax {

// Ids 0..ranks-1 are the tokens of the rank file, the next 256 the special tokens. Immutable after
// loading: any number of threads may use one object. Text that is not UTF-8 is read with one U+FFFD
// for each maximal ill-formed part.
class Tokenizer {
 public:
  // Reads `tiktoken.model` and, where it is there, `tokenizer_config.json` of a model folder.
  // Throws Error for files that are broken or do not fit each other.
  static Tokenizer load(const std::filesystem::path& folder);
  Tokenizer(RankTable ranks, SpecialTokens specials);

  std::int32_t rank_count() const { return specials_.first_id(); }
  std::int32_t vocab_size() const {
    return rank_count() + static_cast<std::int32_t>(kSpecialTokens);
  }

  // Text from callers and users: names of special tokens in it are ordinary text.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // Text of the program's own templates: names of special tokens become their ids.
  std::vector<std::int32_t> encode_control(std::string_view text) const;
  // The pre-token pieces of `text` that encode() merges (views into `text`, which must be UTF-8).
  std::vector<std::string_view> pieces(std::string_view text) const;

  // Bytes of an id; a special token's are its name. Throws Error for an id outside the vocabulary.
  std::string_view token_bytes(std::int32_t id) const;
  // Bytes of all ids, joined.
  std::string decode_bytes(std::span<const std::int32_t> ids) const;
  // The same as text: each maximal ill-formed part becomes U+FFFD.
  std::string decode(std::span<const std::int32_t> ids) const;

  std::optional<std::int32_t> id_of(Role role) const { return specials_.id_of(role); }
  // Throws Error when the vocabulary has no such token.
  std::int32_t required_id(Role role) const;
  // Ids that end a turn: [EOS], <|end_of_msg|>, [EOT], those that exist, in this order.
  std::vector<std::int32_t> stop_ids() const;

  const SpecialTokens& specials() const { return specials_; }
  const RankTable& ranks() const { return ranks_; }

 private:
  std::vector<std::int32_t> encode_text(std::string_view text, bool names) const;

  RankTable ranks_;
  SpecialTokens specials_;
};

// Decodes a stream of ids: releases whole code points only, U+FFFD for what can no longer become
// one. All that is released, with finish(), is decode() of the same ids. The tokenizer must outlive
// the decoder.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // Text that the next id completes; may be empty.
  std::string push(std::int32_t id);
  // Bytes still held (at most 3) become one U+FFFD; the decoder is then as new.
  std::string finish();

  std::string_view held() const { return held_; }

 private:
  const Tokenizer* tokenizer_;
  std::string held_;  // the start of a code point
};

}  // namespace triax
