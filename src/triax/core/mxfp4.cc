#include "triax/core/mxfp4.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "triax/core/error.h"

namespace triax {
namespace {

constexpr std::array<float, 8> kMagnitude{0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
// Midpoints between neighbours; a tie goes to the even code.
constexpr std::array<float, 7> kMidpoint{0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
constexpr int kBias = 127;
// 6 * 2^125 is the largest value that every code keeps within float32: with 2^126, code 6 (4.0) is
// 2^128.
constexpr int kLargestScale = 252;

std::uint8_t nearest_code(float scaled) {
  const float a = std::fabs(scaled);
  std::uint8_t code = 0;
  while (code < 7) {
    const float mid = kMidpoint[code];
    const bool up = a > mid || (a == mid && (code & 1) != 0);
    if (!up) break;
    ++code;
  }
  return static_cast<std::uint8_t>(code | (std::signbit(scaled) ? 8 : 0));
}

// E8M0 byte of a group whose largest magnitude is `amax`.
std::uint8_t even_rule_scale(float amax) {
  if (amax == 0.0f) return 0;
  int exponent = 0;
  const float mantissa = std::frexp(amax, &exponent) * 2.0f;  // amax = mantissa * 2^(exponent-1)
  const int e = (exponent - 1) - 2 + (mantissa >= 1.75f ? 1 : 0) + kBias;
  return static_cast<std::uint8_t>(std::clamp(e, 0, kLargestScale));
}

}  // namespace

float mxfp4_code_value(std::uint8_t code) {
  const float m = kMagnitude[code & 7];
  return (code & 8) != 0 ? -m : m;
}

float mxfp4_at(const Mxfp4View& m, std::size_t row, std::size_t col) {
  const std::uint8_t byte = m.packed[row * (m.cols / 2) + col / 2];
  const std::uint8_t code = (col % 2) == 0 ? byte & 15 : byte >> 4;
  const std::uint8_t e = m.scale[row * (m.cols / kMxfp4Group) + col / kMxfp4Group];
  return std::ldexp(mxfp4_code_value(code), e - kBias);
}

void mxfp4_decode_row(const Mxfp4View& m, std::size_t row, std::span<float> out) {
  TRIAX_CHECK(out.size() == m.cols && row < m.rows);
  const std::uint8_t* packed = m.packed + row * (m.cols / 2);
  const std::uint8_t* scale = m.scale + row * (m.cols / kMxfp4Group);
  for (std::size_t g = 0; g < m.cols / kMxfp4Group; ++g) {
    const float s = std::ldexp(1.0f, scale[g] - kBias);
    for (std::size_t j = 0; j < kMxfp4Group / 2; ++j) {
      const std::uint8_t byte = packed[g * (kMxfp4Group / 2) + j];
      out[g * kMxfp4Group + 2 * j] = mxfp4_code_value(byte & 15) * s;
      out[g * kMxfp4Group + 2 * j + 1] = mxfp4_code_value(byte >> 4) * s;
    }
  }
}

void mxfp4_encode(Mat<const float> values, std::uint8_t* packed, std::uint8_t* scale) {
  const std::size_t rows = values.shape[0], cols = values.shape[1];
  TRIAX_CHECK(cols % kMxfp4Group == 0, "MXFP4 rows are multiples of 32 columns");
  for (std::size_t r = 0; r < rows; ++r) {
    const float* row = values.data + r * values.stride;
    for (std::size_t g = 0; g < cols / kMxfp4Group; ++g) {
      const float* group = row + g * kMxfp4Group;
      float amax = 0.0f;
      for (std::size_t i = 0; i < kMxfp4Group; ++i) {
        TRIAX_CHECK(std::isfinite(group[i]), "MXFP4 encodes finite values only");
        amax = std::max(amax, std::fabs(group[i]));
      }
      const std::uint8_t e = even_rule_scale(amax);
      scale[r * (cols / kMxfp4Group) + g] = e;
      std::uint8_t* out = packed + r * (cols / 2) + g * (kMxfp4Group / 2);
      for (std::size_t j = 0; j < kMxfp4Group / 2; ++j) {
        // ldexp, not a multiplication by the inverse: 2^127 / 2^-127 has no float32 inverse
        const std::uint8_t lo = nearest_code(std::ldexp(group[2 * j], kBias - e));
        const std::uint8_t hi = nearest_code(std::ldexp(group[2 * j + 1], kBias - e));
        out[j] = static_cast<std::uint8_t>(lo | (hi << 4));
      }
    }
  }
}

bool mxfp4_find_nan_scale(const Mxfp4View& m, std::size_t& row) {
  const std::size_t groups = m.cols / kMxfp4Group;
  const void* hit = std::memchr(m.scale, kMxfp4ScaleNan, m.rows * groups);
  if (hit == nullptr) return false;
  row = static_cast<std::size_t>(static_cast<const std::uint8_t*>(hit) - m.scale) / groups;
  return true;
}

}  // namespace triax
