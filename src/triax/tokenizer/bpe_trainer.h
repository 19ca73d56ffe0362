// Trains a byte-level vocabulary: the merges that save the most tokens on given texts.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triax {

struct BpeTrainOptions {
  // Numbers stay single digits: pieces of digits are left out of the counts. A small model then
  // sees each digit of a sum; where true, up to three digits may become one token as in K3.
  bool merge_digits = false;
  // A pair that occurs less often is not merged.
  std::size_t least_count = 2;
  // Told after every few merges (tokens so far, tokens wanted); false stops the training early.
  std::function<bool(std::size_t done, std::size_t total)> progress = {};
};

// Tokens in the order of their ranks, for write_tokenizer_folder(): the 256 single bytes in K3's
// order, then one token a step: of all pairs of neighbouring tokens in the texts, as BpeMerger
// encodes them with the tokens so far, the joined bytes that occur most often (of equals those
// that come first in byte order). Texts are cut into pieces as Tokenizer cuts them; ill-formed
// UTF-8 is repaired first. Fewer than `vocabulary` tokens when no pair is left that occurs
// `least_count` times, or progress() said stop. The result does not depend on the order of the
// texts. Throws Error when `vocabulary` is below 256 or beyond 2^20.
// Algorithm: byte-pair encoding, Gage 1994; for vocabularies Sennrich, Haddow, Birch 2016.
std::vector<std::string> train_bpe(std::span<const std::string_view> texts, std::size_t vocabulary,
                                   const BpeTrainOptions& options = {});

}  // namespace triax
