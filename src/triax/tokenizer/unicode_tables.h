// Character classes that the split and the slicing ask about (Unicode 16.0.0).
#pragma once

#include <array>
#include <cstdint>

namespace triax {

// Flags of a code point. Both letter groups leave out Han, as the split pattern does.
enum CharFlag : std::uint8_t {
  kCharHan = 1,          // Script = Han
  kCharUpperGroup = 2,   // Lu, Lt, Lm, Lo, M; not Han
  kCharLowerGroup = 4,   // Ll, Lm, Lo, M; not Han
  kCharLetter = 8,       // category L
  kCharNumber = 16,      // category N
  kCharWhiteSpace = 32,  // White_Space
  kCharNewline = 64,     // CR, LF
  kCharSliceSpace = 128  // White_Space and U+001C..U+001F: "space" of the slicing
};

// From the generated table: O(1), any 32-bit value (0 beyond U+10FFFF).
std::uint8_t char_flags_table(char32_t code_point);

namespace detail {

constexpr std::array<std::uint8_t, 128> make_ascii_flags() {
  std::array<std::uint8_t, 128> flags{};
  for (unsigned c = 'A'; c <= 'Z'; ++c) flags[c] = kCharLetter | kCharUpperGroup;
  for (unsigned c = 'a'; c <= 'z'; ++c) flags[c] = kCharLetter | kCharLowerGroup;
  for (unsigned c = '0'; c <= '9'; ++c) flags[c] = kCharNumber;
  for (unsigned c = 0x09; c <= 0x0D; ++c) flags[c] = kCharWhiteSpace | kCharSliceSpace;
  for (unsigned c = 0x1C; c <= 0x1F; ++c) flags[c] = kCharSliceSpace;
  flags[' '] = kCharWhiteSpace | kCharSliceSpace;
  flags['\n'] |= kCharNewline;
  flags['\r'] |= kCharNewline;
  return flags;
}

inline constexpr std::array<std::uint8_t, 128> kAsciiFlags = make_ascii_flags();

}  // namespace detail

inline std::uint8_t char_flags(char32_t code_point) {
  return code_point < 128 ? detail::kAsciiFlags[code_point] : char_flags_table(code_point);
}

}  // namespace triax
