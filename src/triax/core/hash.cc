#include "triax/core/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "triax/core/error.h"

namespace triax {

std::array<std::uint8_t, 32> sha256(std::string_view bytes) {
  std::array<std::uint8_t, 32> out{};
  unsigned int length = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), out.data(), &length, EVP_sha256(), nullptr);
  TRIAX_CHECK(ok == 1 && length == out.size(), "SHA-256 is not available");
  return out;
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (const std::uint8_t b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

}  // namespace triax
