// Token ids and texts from files and standard input.
#include "triax/cli/ids_file.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "triax/checkpoint/file.h"
#include "triax/core/error.h"

namespace triax::cli {
namespace {

constexpr std::size_t kMaxInput = std::size_t{4} << 30;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::int32_t parse_id(std::string_view item, std::size_t index, std::string_view where) {
  std::int32_t id = 0;
  const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), id);
  if (error != std::errc() || end != item.data() + item.size() || id < 0) {
    fail("{}: item {} is {}, expected a token id (a whole number from 0)", where, index,
         in_quotes(item));
  }
  return id;
}

std::vector<std::int32_t> parse_array(std::string_view text, std::string_view where) {
  if (text.size() < 2 || text.back() != ']') fail("{}: the array has no closing ]", where);
  text = trimmed(text.substr(1, text.size() - 2));
  std::vector<std::int32_t> out;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    out.push_back(parse_id(trimmed(text.substr(0, comma)), out.size(), where));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (trimmed(text).empty()) fail("{}: the array ends with a comma", where);
  }
  return out;
}

}  // namespace

std::vector<std::int32_t> parse_ids(std::string_view text, std::string_view where) {
  text = trimmed(text);
  if (!text.empty() && text.front() == '[') return parse_array(text, where);
  std::vector<std::int32_t> out;
  while (!text.empty()) {
    std::size_t end = 0;
    while (end < text.size() && !is_blank(text[end])) ++end;
    out.push_back(parse_id(text.substr(0, end), out.size(), where));
    text = trimmed(text.substr(end));
  }
  return out;
}

void check_ids(std::span<const std::int32_t> ids, std::size_t vocab, std::string_view where) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<std::size_t>(ids[i]) >= vocab) {
      fail("{}: item {} is {}, but the model's vocabulary is 0..{}", where, i, ids[i], vocab - 1);
    }
  }
}

std::string read_input(const std::string& path) {
  if (path != "-") return read_whole(path, kMaxInput);
  std::string out;
  std::array<char, 65536> buffer;
  for (;;) {
    const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), stdin);
    out.append(buffer.data(), n);
    if (n < buffer.size()) break;
    if (out.size() > kMaxInput) fail("standard input: over {} bytes; use a file", kMaxInput);
  }
  if (std::ferror(stdin) != 0) fail("standard input: cannot be read");
  return out;
}

std::string input_name(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

std::vector<std::int32_t> read_ids(const std::string& path) {
  return parse_ids(read_input(path), input_name(path));
}

}  // namespace triax::cli
