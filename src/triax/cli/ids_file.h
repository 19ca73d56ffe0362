// Token ids and texts from files and standard input.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triax::cli {

// A JSON array of whole numbers, or ids separated by white space. `where` names it in messages.
// Throws Error naming the item that is no id.
std::vector<std::int32_t> parse_ids(std::string_view text, std::string_view where);

// Throws Error for an id that is not in 0..vocab-1.
void check_ids(std::span<const std::int32_t> ids, std::size_t vocab, std::string_view where);

// A whole file, or standard input for "-".
std::string read_input(const std::string& path);
std::vector<std::int32_t> read_ids(const std::string& path);
// "standard input" for "-".
std::string input_name(const std::string& path);

}  // namespace triax::cli
