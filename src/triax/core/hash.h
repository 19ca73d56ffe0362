// SHA-256 (OpenSSL): stream keys of synthetic tensors, identities of files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace triax {

std::array<std::uint8_t, 32> sha256(std::string_view bytes);
std::string hex(std::span<const std::uint8_t> bytes);

}  // namespace triax
