// Any bytes as the start of a safetensors file: a header whose tensors lie in the file, or an
// Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "triax/checkpoint/safetensors.h"
#include "triax/core/error.h"

namespace {

void parse(std::span<const std::byte> file, std::size_t size) {
  try {
    const auto header = triax::parse_safetensors_header(file, size, "fuzz.safetensors");
    std::size_t at = header.data_start;
    for (const triax::TensorEntry& entry : header.entries) {
      if (entry.offset != at) std::abort();
      at += entry.bytes;
    }
    if (at != size) std::abort();
  } catch (const triax::Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
}

}  // namespace

// The input is two bytes that say how much data follows the header, then the JSON; the length
// before it is made to fit. Also read as it is, for the length itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto whole = std::as_bytes(std::span(data, size));
  std::uint64_t length = 0;
  if (size >= sizeof length) std::memcpy(&length, data, sizeof length);
  // A length beyond the bytes at hand is for safetensors_header_length to refuse.
  if (size < sizeof length || length > size - sizeof length || length < 2) {
    parse(whole, size);
  }
  if (size < 2) return 0;
  const std::size_t tail = data[0] + std::size_t{256} * data[1];
  std::vector<std::byte> file(sizeof length + size - 2);
  length = size - 2;
  std::memcpy(file.data(), &length, sizeof length);
  if (length > 0) std::memcpy(file.data() + sizeof length, data + 2, length);
  parse(file, file.size() + tail);
  return 0;
}
