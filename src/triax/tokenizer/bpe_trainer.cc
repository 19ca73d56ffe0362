// Byte-pair training over distinct pieces with counts; a heap of candidates, brought up to date
// when one of them comes to the top.
#include "triax/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "triax/core/error.h"
#include "triax/tokenizer/split.h"
#include "triax/tokenizer/tokenizer_writer.h"
#include "triax/tokenizer/unicode_tables.h"
#include "triax/tokenizer/utf8.h"

namespace triax {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 20;
constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

// Joined bytes of neighbouring tokens. It becomes a token when it gets a rank.
struct Candidate {
  std::string bytes;
  std::int64_t count = 0;  // now, weighted by how often the pieces occur
  std::uint32_t rank = kNoRank;
  std::vector<std::uint32_t> pieces;  // where it occurred; some may have lost it since
};

struct Piece {
  std::vector<std::uint32_t> parts;  // candidates that are tokens
  std::int64_t count = 0;
};

class Trainer {
 public:
  explicit Trainer(const BpeTrainOptions& options) : options_(options) {
    tokens_ = single_byte_tokens();
    for (const std::string& token : tokens_) {
      const std::uint32_t id = intern(token);
      candidates_[id].rank = id;
      byte_ids_[static_cast<unsigned char>(token[0])] = id;
    }
  }

  void add(std::string_view text) {
    if (!utf8_valid(text)) {
      const std::string repaired = utf8_repair(text);
      add_valid(repaired);
    } else {
      add_valid(text);
    }
  }

  std::vector<std::string> train(std::size_t vocabulary) {
    open_pieces();
    while (tokens_.size() < vocabulary) {
      const std::uint32_t best = take_best();
      if (best == kNoRank) break;
      candidates_[best].rank = static_cast<std::uint32_t>(tokens_.size());
      tokens_.push_back(candidates_[best].bytes);
      merge_everywhere(best);
      if (options_.progress && tokens_.size() % 64 == 0 &&
          !options_.progress(tokens_.size(), vocabulary)) {
        break;
      }
    }
    return std::move(tokens_);
  }

 private:
  void add_valid(std::string_view text) {
    for (const std::string_view slice : slices(text)) {
      for (std::size_t at = 0; at < slice.size();) {
        const std::size_t end = next_piece(slice, at);
        const std::string_view piece = slice.substr(at, end - at);
        at = end;
        if (!options_.merge_digits &&
            (char_flags(utf8_decode_valid(piece, 0).code_point) & kCharNumber) != 0) {
          continue;
        }
        const auto found = counts_.find(piece);
        if (found != counts_.end()) {
          ++found->second;
        } else {
          counts_.emplace(piece, 1);
        }
      }
    }
  }

  std::uint32_t intern(const std::string& bytes) {
    const auto [place, fresh] =
        by_bytes_.try_emplace(bytes, static_cast<std::uint32_t>(candidates_.size()));
    if (fresh) candidates_.push_back({bytes, 0, kNoRank, {}});
    return place->second;
  }

  std::uint32_t joined(std::uint32_t left, std::uint32_t right) {
    const std::uint64_t key = std::uint64_t{left} << 32 | right;
    const auto found = pairs_.find(key);
    if (found != pairs_.end()) return found->second;
    const std::uint32_t id = intern(candidates_[left].bytes + candidates_[right].bytes);
    pairs_.emplace(key, id);
    return id;
  }

  void open_pieces() {
    for (const auto& [bytes, count] : counts_) {
      Piece piece;
      piece.count = count;
      for (const char c : bytes) piece.parts.push_back(byte_ids_[static_cast<unsigned char>(c)]);
      by_piece_.emplace(bytes, static_cast<std::uint32_t>(pieces_.size()));
      pieces_.push_back(std::move(piece));
    }
    for (std::uint32_t i = 0; i < pieces_.size(); ++i) count_pairs(i, +1);
    touched_.clear();
    for (std::uint32_t id = 0; id < candidates_.size(); ++id) push(id);
  }

  // Adds (or takes away) the pairs of a piece to the counts.
  void count_pairs(std::uint32_t index, std::int64_t sign) {
    const Piece& piece = pieces_[index];
    for (std::size_t i = 0; i + 1 < piece.parts.size(); ++i) {
      const std::uint32_t id = joined(piece.parts[i], piece.parts[i + 1]);
      Candidate& candidate = candidates_[id];
      candidate.count += sign * piece.count;
      if (sign < 0) continue;
      if (candidate.pieces.empty() || candidate.pieces.back() != index) {
        candidate.pieces.push_back(index);
      }
      touched_.push_back(id);
    }
  }

  struct Entry {
    std::int64_t count;
    std::uint32_t id;
  };

  // True when `a` comes out of the heap after `b`.
  struct After {
    const std::vector<Candidate>* candidates;
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.count != b.count) return a.count < b.count;
      return (*candidates)[a.id].bytes > (*candidates)[b.id].bytes;  // as unsigned bytes
    }
  };
  After after() const { return {&candidates_}; }

  void push(std::uint32_t id) {
    const Candidate& candidate = candidates_[id];
    if (candidate.rank == kNoRank && candidate.count > 0) {
      heap_.push_back({candidate.count, id});
      std::push_heap(heap_.begin(), heap_.end(), after());
    }
  }

  // Counts only shrink without a push, so an entry that is out of date goes back with its count.
  std::uint32_t take_best() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), after());
      const Entry top = heap_.back();
      heap_.pop_back();
      const Candidate& candidate = candidates_[top.id];
      if (candidate.rank != kNoRank || candidate.count < least()) continue;
      if (candidate.count == top.count) return top.id;
      if (candidate.count < top.count) push(top.id);
    }
    return kNoRank;
  }

  std::int64_t least() const {
    return static_cast<std::int64_t>(std::max<std::size_t>(1, options_.least_count));
  }

  void merge_everywhere(std::uint32_t token) {
    std::vector<std::uint32_t> where = std::move(candidates_[token].pieces);
    const auto whole = by_piece_.find(candidates_[token].bytes);
    if (whole != by_piece_.end()) where.push_back(whole->second);
    std::sort(where.begin(), where.end());
    where.erase(std::unique(where.begin(), where.end()), where.end());
    touched_.clear();
    for (const std::uint32_t index : where) {
      count_pairs(index, -1);
      if (whole != by_piece_.end() && whole->second == index) {
        pieces_[index].parts = {token};  // the encoder looks for the whole piece first
      } else {
        merge_piece(pieces_[index].parts);
      }
      count_pairs(index, +1);
    }
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint32_t id : touched_) push(id);
  }

  // BpeMerger's rule from the present parts on: the pair of lowest rank, the leftmost of equals.
  // All merges of earlier tokens have been made, since the new one has the highest rank.
  void merge_piece(std::vector<std::uint32_t>& parts) {
    for (;;) {
      std::uint32_t lowest = kNoRank;
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const std::uint32_t rank = candidates_[joined(parts[i], parts[i + 1])].rank;
        if (rank < lowest) {
          lowest = rank;
          at = i;
        }
      }
      if (lowest == kNoRank) return;
      parts[at] = joined(parts[at], parts[at + 1]);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  }

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view bytes) const {
      return std::hash<std::string_view>{}(bytes);
    }
  };
  template <class T>
  using ByBytes = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

  const BpeTrainOptions& options_;
  std::vector<std::string> tokens_;
  std::uint32_t byte_ids_[256] = {};
  ByBytes<std::int64_t> counts_;       // distinct pieces of the texts
  ByBytes<std::uint32_t> by_piece_;    // bytes -> pieces_
  ByBytes<std::uint32_t> by_bytes_;    // bytes -> candidates_
  std::vector<Candidate> candidates_;  // the single bytes first
  std::vector<Piece> pieces_;
  std::unordered_map<std::uint64_t, std::uint32_t> pairs_;  // left << 32 | right -> candidate
  std::vector<Entry> heap_;
  std::vector<std::uint32_t> touched_;  // candidates whose count may have grown
};

}  // namespace

std::vector<std::string> train_bpe(std::span<const std::string_view> texts, std::size_t vocabulary,
                                   const BpeTrainOptions& options) {
  if (vocabulary < 256 || vocabulary > kLargest) {
    fail("a vocabulary of {} tokens cannot be trained; give a number from 256 to {}", vocabulary,
         kLargest);
  }
  Trainer trainer(options);
  for (const std::string_view text : texts) trainer.add(text);
  return trainer.train(vocabulary);
}

}  // namespace triax
