// Base64 of rank files.
#include "triax/tokenizer/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace triax {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  for (std::uint8_t& d : digits) d = kNoDigit;
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return digits;
}
constexpr std::array<std::uint8_t, 256> kDigits = make_digits();

}  // namespace

bool base64_decode(std::string_view text, std::string& out) {
  if (text.size() % 4 != 0) return false;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    unsigned padding = 0;
    if (i + 4 == text.size() && text[i + 3] == '=') padding = text[i + 2] == '=' ? 2 : 1;
    std::uint32_t bits = 0;
    for (unsigned k = 0; k < 4; ++k) {
      std::uint8_t digit = 0;
      if (k < 4 - padding) digit = kDigits[static_cast<unsigned char>(text[i + k])];
      if (digit == kNoDigit) return false;
      bits = bits << 6 | digit;
    }
    if (bits & ((1u << 8 * padding) - 1)) return false;
    out.push_back(static_cast<char>(bits >> 16));
    if (padding < 2) out.push_back(static_cast<char>(bits >> 8 & 0xFF));
    if (padding < 1) out.push_back(static_cast<char>(bits & 0xFF));
  }
  return true;
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t have = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out.push_back(k <= have ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=');
    }
  }
  return out;
}

}  // namespace triax
