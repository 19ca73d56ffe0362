// Byte-pair merge by rank.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "triax/tokenizer/rank_file.h"

namespace triax {

// Encodes one piece: the token of just these bytes where there is one; else, from single bytes,
// merges again and again the neighbouring pair whose bytes are the token of lowest rank (the
// leftmost of equals) until no pair is a token. Keeps its working memory between pieces, so one
// object serves one thread. O(n log n) for long pieces; no recursion.
class BpeMerger {
 public:
  explicit BpeMerger(const RankTable& ranks) : ranks_(ranks) {}

  // Appends the ids of `piece`; nothing for an empty one.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids);

 private:
  void merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void merge_long(std::string_view piece, std::vector<std::int32_t>& ids);
  std::uint32_t rank_of(std::string_view piece, std::uint32_t begin, std::uint32_t end) const;

  // A part of a long piece, kept at the position of its first byte.
  struct Part {
    std::uint32_t prev;  // first byte of the part before (unused in the first)
    std::uint32_t next;  // first byte of the part after, or the piece's size
    std::uint32_t id;
    std::uint32_t merged;  // rank of this part joined with the next; kNone: no token, or gone
  };

  const RankTable& ranks_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> heap_;  // rank << 32 | position; stale entries are skipped
};

}  // namespace triax
