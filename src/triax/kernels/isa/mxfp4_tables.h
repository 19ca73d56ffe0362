// Every value that an MXFP4 code takes under every scale byte, made by the compiler.
#pragma once

#include <cstdint>

namespace triax {
namespace {

// BF16 bits of code 0..15 (sign bit; magnitudes 0, .5, 1, 1.5, 2, 3, 4, 6) times 2^(e - 127). All
// are exact: two significant bits, subnormal where small. Beyond the range of float32: infinity.
constexpr std::uint16_t mxfp4_bits(unsigned code, unsigned e) {
  const unsigned sign = (code & 8u) << 12;
  const unsigned magnitude = code & 7u;
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  const bool has_half = magnitude >= 2 && (magnitude & 1u) != 0;
  const int exponent =
      (magnitude >= 2 ? 126 + static_cast<int>(magnitude / 2) : 126) + static_cast<int>(e) - 127;
  if (exponent >= 255) return static_cast<std::uint16_t>(sign | 0x7F80u);
  const unsigned fraction = has_half ? 0x40u : 0u;
  const unsigned bits = exponent >= 1 ? (static_cast<unsigned>(exponent) << 7) | fraction
                                      : (0x80u | fraction) >> (1 - exponent);
  return static_cast<std::uint16_t>(sign | bits);
}

// float32 bits, [scale byte][code].
struct Mxfp4Float {
  std::uint32_t at[256][16];
};
constexpr Mxfp4Float make_mxfp4_float() {
  Mxfp4Float t{};
  for (unsigned e = 0; e < 256; ++e) {
    for (unsigned c = 0; c < 16; ++c) t.at[e][c] = std::uint32_t{mxfp4_bits(c, e)} << 16;
  }
  return t;
}

// BF16 bits, [scale byte][code], twice over: a lookup by five bits may ignore the fifth.
struct Mxfp4Pairs {
  std::uint16_t at[256][32];
};
constexpr Mxfp4Pairs make_mxfp4_pairs() {
  Mxfp4Pairs t{};
  for (unsigned e = 0; e < 256; ++e) {
    for (unsigned c = 0; c < 32; ++c) t.at[e][c] = mxfp4_bits(c & 15u, e);
  }
  return t;
}

// The low and the high byte of the BF16 bits apart, [scale byte][low or high][code].
struct Mxfp4Bytes {
  std::uint8_t at[256][2][16];
};
constexpr Mxfp4Bytes make_mxfp4_bytes() {
  Mxfp4Bytes t{};
  for (unsigned e = 0; e < 256; ++e) {
    for (unsigned c = 0; c < 16; ++c) {
      t.at[e][0][c] = static_cast<std::uint8_t>(mxfp4_bits(c, e) & 0xFFu);
      t.at[e][1][c] = static_cast<std::uint8_t>(mxfp4_bits(c, e) >> 8);
    }
  }
  return t;
}

}  // namespace
}  // namespace triax
