#include "triax/weights/quantize.h"

#include <bit>

#include "triax/core/checked.h"

namespace triax {
namespace {

constexpr float kMaxCode = 127.0f;
constexpr std::uint32_t kMagnitude = 0x7FFFFFFFu;
constexpr std::uint32_t kSmallestNormal = 0x00800000u;  // 2^-126
constexpr std::uint32_t kInfinity = 0x7F800000u;
// Adding and taking away 1.5 * 2^23 rounds |x| < 2^22 to nearest, ties to even.
constexpr float kRound = 12582912.0f;

// Subnormal numbers become zero whether or not this thread's arithmetic does that by itself.
float flushed(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & kMagnitude) < kSmallestNormal ? 0.0f : x;
}

// The largest magnitude of a group, as the bits of a float: for magnitudes their order is that of
// the numbers, with infinities and NaN on top.
template <class T>
std::uint32_t largest_bits(const T* weights) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < kQuantGroup; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(to_float(weights[i])) & kMagnitude;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

template <class T>
bool quantize(const T* weights, std::size_t rows, std::size_t cols, std::int8_t* codes,
              bf16* scales) {
  TRIAX_CHECK(cols % kQuantGroup == 0);
  const std::size_t groups = rows * (cols / kQuantGroup);
  for (std::size_t g = 0; g < groups; ++g) {
    const T* w = weights + g * kQuantGroup;
    const std::uint32_t largest = largest_bits(w);
    if (largest >= kInfinity) return false;
    scales[g] = quant_scale(std::bit_cast<float>(largest));
    const float scale = to_float(scales[g]);
    std::int8_t* out = codes + g * kQuantGroup;
    for (std::size_t i = 0; i < kQuantGroup; ++i) {
      const float code = flushed(to_float(w[i])) / scale;  // |code| <= 127: the scale is rounded up
      out[i] = static_cast<std::int8_t>(static_cast<std::int32_t>((code + kRound) - kRound));
    }
  }
  return true;
}

}  // namespace

bf16 quant_scale(float largest) {
  largest = flushed(largest);
  if (largest == 0.0f) return to_bf16(1.0f);
  const auto quotient = std::bit_cast<std::uint32_t>(largest / kMaxCode);
  if (quotient < kSmallestNormal) return bf16{kSmallestNormal >> 16};
  bf16 scale{static_cast<std::uint16_t>(quotient >> 16)};
  // Exact in double: 8 bits times 7.
  if (static_cast<double>(to_float(scale)) * 127.0 < static_cast<double>(largest)) ++scale.bits;
  return scale;
}

bool quantize_rows(const bf16* weights, std::size_t rows, std::size_t cols, std::int8_t* codes,
                   bf16* scales) {
  return quantize(weights, rows, cols, codes, scales);
}

bool quantize_rows(const float* weights, std::size_t rows, std::size_t cols, std::int8_t* codes,
                   bf16* scales) {
  return quantize(weights, rows, cols, codes, scales);
}

void quantize_stored(const Checkpoint& checkpoint, const TensorEntry& matrix, std::size_t begin,
                     std::size_t end, std::vector<std::byte>& scratch, std::int8_t* codes,
                     bf16* scales) {
  const std::size_t cols = matrix.shape[1];
  const std::size_t row_bytes = checked_mul(cols, dtype_size(matrix.dtype));
  const std::size_t bytes = checked_mul(end - begin, row_bytes);
  if (scratch.size() < bytes) scratch.resize(bytes);
  checkpoint.read(matrix, begin * row_bytes, {scratch.data(), bytes});
  const void* rows = scratch.data();
  const bool finite =
      matrix.dtype == DType::F32
          ? quantize_rows(static_cast<const float*>(rows), end - begin, cols, codes, scales)
          : quantize_rows(static_cast<const bf16*>(rows), end - begin, cols, codes, scales);
  if (finite) return;
  fail(
      "tensor {}: rows {} to {} hold a number that is not finite, which has no 8-bit code; "
      "download "
      "its shard again or leave the trunk as it is stored",
      matrix.name, begin, end - 1);
}

}  // namespace triax
