// Any text as model.safetensors.index.json: an index or an Error, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "triax/checkpoint/index.h"
#include "triax/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto index = triax::ShardIndex::parse(
        std::string_view(reinterpret_cast<const char*>(data), size), "index.json");
    std::size_t pairs = 0;
    index.for_each([&](std::string_view, std::size_t file) {
      if (index.files().at(file).find('/') != std::string::npos) std::abort();
      ++pairs;
    });
    if (pairs != index.tensors()) std::abort();
  } catch (const triax::Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
