// Element types of tensors and of the checkpoint.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace triax {

// A BF16 number as stored: the upper half of a float32. No arithmetic; widen first.
struct bf16 {
  std::uint16_t bits = 0;
  friend bool operator==(bf16, bf16) = default;
};
static_assert(sizeof(bf16) == 2);

inline float to_float(bf16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}
inline float to_float(float x) {
  return x;
}

// Round to nearest, ties to even; NaN stays NaN.
inline bf16 to_bf16(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) return bf16{static_cast<std::uint16_t>((u >> 16) | 0x40u)};
  return bf16{static_cast<std::uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16)};
}

inline float round_to_bf16(float x) {
  return to_float(to_bf16(x));
}

// The dtypes that safetensors headers of K3-shaped checkpoints and golden files use.
enum class DType : std::uint8_t { F64, F32, BF16, F16, I64, I32, U8, F8_E8M0, I8 };

std::size_t dtype_size(DType type);       // bytes of one element
std::string_view dtype_name(DType type);  // as in a safetensors header
bool dtype_from_name(std::string_view name, DType& out);

}  // namespace triax
