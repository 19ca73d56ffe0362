// The header of one safetensors file: eight bytes of length (little-endian), then JSON that names
// each tensor's dtype, shape and place, then the data without a gap.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triax/checkpoint/name_pool.h"
#include "triax/checkpoint/tensor_entry.h"

namespace triax {

inline constexpr std::size_t kSafetensorsLengthBytes = 8;
inline constexpr std::size_t kSafetensorsMaxHeader = 100'000'000;  // bytes: the format's own limit

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;                           // by offset; `shard` is 0
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__"
  std::size_t data_start = 0;                                 // 8 + length of the JSON
  NamePool names;                                             // what the entries' names point into
};

// The length of the JSON in bytes, from the start of a file of `file_size` bytes. `prefix` holds at
// least min(8, file_size) bytes. Throws when the length cannot be right.
std::size_t safetensors_header_length(std::span<const std::byte> prefix, std::size_t file_size,
                                      std::string_view where);

// Checks and reads a header: `prefix` is the file's start up to the end of the JSON at least. Every
// tensor has a known dtype, a shape whose bytes (computed without wrapping) are those of its place,
// a name of its own; the places cover the rest of the file exactly. `where` names the file in
// messages.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> prefix, std::size_t file_size,
                                           std::string_view where);

}  // namespace triax
