// Any text as config.json: a configuration or an Error, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "triax/config/config.h"
#include "triax/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto config = triax::K3Config::parse(
        std::string_view(reinterpret_cast<const char*>(data), size), "config.json");
    // What is accepted is consistent.
    if (config.layer_kinds.size() != config.num_hidden_layers) std::abort();
    if (config.moe_layers() > 0 && config.num_experts_per_token == 0) std::abort();
  } catch (const triax::Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
