// Reading, indexing and writing rank files.
#include "triax/tokenizer/rank_file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>

#include "triax/core/error.h"
#include "triax/tokenizer/base64.h"

namespace triax {
namespace {

constexpr std::size_t kLargestFile = std::numeric_limits<std::uint32_t>::max();

std::uint64_t load_le(const char* bytes, std::size_t count) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, count);
  return word;
}

// Hash of three bytes or more: multiply and fold over words of eight bytes, the last overlapping.
std::uint64_t hash_bytes(std::string_view s) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
  const auto fold = [](std::uint64_t h, std::uint64_t word) {
    h = (h ^ word) * kMultiplier;
    return h ^ (h >> 32);
  };
  const std::size_t n = s.size();
  std::uint64_t h = n * kMultiplier;
  if (n >= 8) {
    for (std::size_t i = 0; i + 8 < n; i += 8) h = fold(h, load_le(s.data() + i, 8));
    return fold(h, load_le(s.data() + n - 8, 8));
  }
  if (n >= 4) return fold(h, load_le(s.data(), 4) | load_le(s.data() + n - 4, 4) << 32);
  return fold(h, load_le(s.data(), 2) | load_le(s.data() + n - 1, 1) << 16);
}

std::size_t count_lines(std::string_view text) {
  const auto newlines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  return text.empty() || text.back() == '\n' ? newlines : newlines + 1;
}

}  // namespace

// Reads the lines into blob_ and spans_.
class RankTable::Reader {
 public:
  Reader(RankTable& table, std::string_view name) : table_(table), name_(name) {}

  void read(std::string_view text) {
    if (text.size() > kLargestFile) {
      fail("{}: {} bytes, more than the {} a rank file may have", name_, text.size(), kLargestFile);
    }
    const std::size_t most = count_lines(text);  // upper bound: empty lines are skipped
    table_.blob_.reserve(text.size() / 4 * 3);
    table_.spans_.resize(most);
    lines_.resize(most);
    std::uint32_t line = 0;
    for (std::size_t at = 0; at < text.size();) {
      ++line;
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view content = text.substr(at, end - at);
      if (!content.empty() && content.back() == '\r') content.remove_suffix(1);
      if (!content.empty()) read_line(content, line);
      at = end + 1;
    }
    check_ranks();
  }

  std::span<const std::uint32_t> lines() const { return lines_; }

 private:
  void read_line(std::string_view content, std::uint32_t line) {
    const std::size_t space = content.find(' ');
    if (space == std::string_view::npos) {
      fail("{}: line {}: no space; expected `BASE64 RANK`", name_, line);
    }
    const std::string_view digits = content.substr(space + 1);
    std::uint32_t rank = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (digits.empty() || parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size()) {
      fail("{}: line {}: the rank is not a decimal number of 32 bits", name_, line);
    }
    if (rank >= table_.spans_.size()) {
      fail("{}: line {}: rank {}, but the file has only {} lines; ranks must be 0..n-1, each once",
           name_, line, rank, table_.spans_.size());
    }
    if (lines_[rank] != 0) {
      fail("{}: line {}: rank {} stands already in line {}; each rank may stand once", name_, line,
           rank, lines_[rank]);
    }
    const std::size_t offset = table_.blob_.size();
    if (!base64_decode(content.substr(0, space), table_.blob_)) {
      fail("{}: line {}: the token is not base64", name_, line);
    }
    const std::size_t size = table_.blob_.size() - offset;
    if (size == 0) fail("{}: line {}: empty token", name_, line);
    table_.spans_[rank] = {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)};
    lines_[rank] = line;
    ++count_;
  }

  void check_ranks() {
    const auto missing = std::find(lines_.begin(), lines_.end(), 0u) - lines_.begin();
    const auto first_missing = static_cast<std::size_t>(missing);
    if (first_missing < count_) {
      fail("{}: rank {} is missing among {} tokens; ranks must be 0..n-1, each once", name_,
           first_missing, count_);
    }
    lines_.resize(count_);
    table_.spans_.resize(count_);
  }

  RankTable& table_;
  std::string_view name_;
  std::vector<std::uint32_t> lines_;  // [rank] its line from 1; 0 = not seen
  std::size_t count_ = 0;
};

RankTable RankTable::parse(std::string_view text, std::string_view name) {
  RankTable table;
  Reader reader(table, name);
  reader.read(text);
  table.index(reader.lines(), name);
  return table;
}

RankTable RankTable::load(const std::filesystem::path& file) {
  return parse(read_text_file(file), file.string());
}

void RankTable::index(std::span<const std::uint32_t> lines, std::string_view name) {
  bytes_.assign(256, -1);
  pairs_.assign(std::size_t{256} * 256, -1);
  slots_.assign(std::bit_ceil(2 * size() + 2), Slot{0, -1});
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(size()); ++rank) {
    const std::string_view token = bytes(rank);
    longest_ = std::max(longest_, token.size());
    const std::int32_t known = find(token);
    if (known >= 0) {
      fail("{}: line {}: the token has the same bytes as that of line {}", name,
           lines[static_cast<std::size_t>(rank)], lines[static_cast<std::size_t>(known)]);
    }
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(token[i]); };
    if (token.size() == 1) {
      bytes_[byte(0)] = rank;
    } else if (token.size() == 2) {
      pairs_[std::size_t{byte(0)} << 8 | byte(1)] = rank;
    } else {
      const std::uint64_t h = hash_bytes(token);
      std::size_t at = h & (slots_.size() - 1);
      while (slots_[at].rank >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {static_cast<std::uint32_t>(h >> 32), rank};
    }
  }
  for (std::size_t b = 0; b < 256; ++b) {
    if (bytes_[b] < 0) {
      fail("{}: no token for the single byte 0x{:02x}; all 256 single bytes must be tokens", name,
           b);
    }
  }
}

std::int32_t RankTable::find_long(std::string_view s) const {
  if (s.size() > longest_) return -1;
  const std::uint64_t h = hash_bytes(s);
  const auto tag = static_cast<std::uint32_t>(h >> 32);
  for (std::size_t at = h & (slots_.size() - 1); slots_[at].rank >= 0;
       at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].tag == tag && bytes(slots_[at].rank) == s) return slots_[at].rank;
  }
  return -1;
}

std::string rank_file_text(std::span<const std::string> tokens) {
  std::string text;
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    text += base64_encode(tokens[rank]);
    text += ' ';
    text += std::to_string(rank);
    text += '\n';
  }
  return text;
}

void write_rank_file(const std::filesystem::path& file, std::span<const std::string> tokens) {
  const std::string text = rank_file_text(tokens);
  RankTable::parse(text, file.string());  // refuses what could not be read back
  write_text_file(file, text);
}

std::string read_text_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) fail("{}: cannot be opened for reading; check the path", file.string());
  const std::streamoff size = in.tellg();
  std::string text(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
  in.seekg(0);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in) fail("{}: reading {} bytes failed", file.string(), text.size());
  return text;
}

void write_text_file(const std::filesystem::path& file, std::string_view text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out)
    fail("{}: writing {} bytes failed; check the path and the space", file.string(), text.size());
}

}  // namespace triax
