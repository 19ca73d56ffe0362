// UTF-8, strictly: one step of decoding, and replacement of what is ill-formed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace triax {

inline constexpr char32_t kReplacement = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

enum class Utf8Kind : std::uint8_t {
  kCodePoint,   // a whole code point of `length` bytes
  kIllFormed,   // a maximal ill-formed part of `length` bytes: stands for one U+FFFD
  kIncomplete,  // the text ends within what may still become a code point: all `length` bytes left
};

struct Utf8Step {
  char32_t code_point;  // U+FFFD unless kCodePoint
  std::uint8_t length;  // 1..4
  Utf8Kind kind;
};

// What stands at text[at]; at < text.size(). Well-formed sequences are those of table 3-7 of the
// Unicode standard, the maximal parts those of its section 3.9.
Utf8Step utf8_step(std::string_view text, std::size_t at);

// The code point at text[at] of well-formed text, and its length.
inline Utf8Step utf8_decode_valid(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> char32_t {
    return static_cast<unsigned char>(text[at + i]);
  };
  const char32_t b0 = byte(0);
  if (b0 < 0x80) return {b0, 1, Utf8Kind::kCodePoint};
  if (b0 < 0xE0) return {((b0 & 0x1F) << 6) | (byte(1) & 0x3F), 2, Utf8Kind::kCodePoint};
  if (b0 < 0xF0) {
    return {((b0 & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F), 3,
            Utf8Kind::kCodePoint};
  }
  return {
      ((b0 & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F),
      4, Utf8Kind::kCodePoint};
}

bool utf8_valid(std::string_view text);

// The text with each maximal ill-formed part replaced by U+FFFD (an incomplete end as well).
std::string utf8_repair(std::string_view text);

// Appends the UTF-8 of a code point (a Unicode scalar value).
void utf8_append(std::string& out, char32_t code_point);

}  // namespace triax
