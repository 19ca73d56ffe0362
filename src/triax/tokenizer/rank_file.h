// The rank file (tiktoken.model): one line `BASE64 RANK` a token, and the table made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triax {

// The tokens of a rank file, by rank and by bytes. A rank is the token's id and its merge priority.
class RankTable {
 public:
  // Parses the text of a rank file. Ranks are 0..n-1, each once, in any order; no token is empty or
  // there twice; each single byte is a token; empty lines are skipped. Throws Error, naming `name`
  // and the line.
  static RankTable parse(std::string_view text, std::string_view name);
  static RankTable load(const std::filesystem::path& file);

  std::size_t size() const { return spans_.size(); }

  // Bytes of a token; 0 <= rank < size().
  std::string_view bytes(std::int32_t rank) const {
    const Span& span = spans_[static_cast<std::size_t>(rank)];
    return {blob_.data() + span.offset, span.size};
  }

  // Rank of these bytes, or -1 where they are no token.
  std::int32_t find(std::string_view bytes) const {
    if (bytes.size() > 2) return find_long(bytes);
    if (bytes.size() == 2) return find_pair(bytes[0], bytes[1]);
    return bytes.empty() ? -1 : find_byte(bytes[0]);
  }
  std::int32_t find_byte(char byte) const { return bytes_[static_cast<unsigned char>(byte)]; }
  std::int32_t find_pair(char first, char second) const {
    return pairs_[std::size_t{static_cast<unsigned char>(first)} << 8 |
                  static_cast<unsigned char>(second)];
  }

  // Length in bytes of the longest token.
  std::size_t longest() const { return longest_; }

 private:
  struct Span {
    std::uint32_t offset;
    std::uint32_t size;
  };
  // A place of the open-addressing table: upper half of the hash, and the rank (-1: free).
  struct Slot {
    std::uint32_t tag;
    std::int32_t rank;
  };
  class Reader;

  std::int32_t find_long(std::string_view bytes) const;
  void index(std::span<const std::uint32_t> lines, std::string_view name);

  std::string blob_;                 // bytes of all tokens
  std::vector<Span> spans_;          // [rank]
  std::vector<Slot> slots_;          // tokens of three bytes and more; a power of two, half empty
  std::vector<std::int32_t> bytes_;  // [256]
  std::vector<std::int32_t> pairs_;  // [256 * 256]
  std::size_t longest_ = 0;
};

// Text of the rank file of `tokens` (rank = position).
std::string rank_file_text(std::span<const std::string> tokens);

// Writes it. Throws Error when the tokens are no valid rank file, or the file cannot be written.
void write_rank_file(const std::filesystem::path& file, std::span<const std::string> tokens);

// The whole of a file as bytes. Throws Error when it cannot be read.
std::string read_text_file(const std::filesystem::path& file);
void write_text_file(const std::filesystem::path& file, std::string_view text);

}  // namespace triax
