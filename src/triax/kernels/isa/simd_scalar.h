// Vectors of four floats in portable code: the baseline, and the model of what a new set must
// offer.
//
// The three simd_*.h offer the same functions; the .inl files are written once against them. All of
// it has internal linkage: each set is compiled with its own flags, and the linker must never take
// one set's copy of a function for another's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "triax/core/dtype.h"
#include "triax/kernels/isa/inline.h"
#include "triax/kernels/isa/mxfp4_tables.h"

namespace triax {
namespace {

constexpr std::size_t kWidth = 4;            // floats in a vector
constexpr int kMaxRows = 4;                  // rows of the largest product tile
constexpr int kAccumulators = 8;             // sums that a product tile keeps in registers
constexpr std::size_t kPanelVectors = 1536;  // vectors of x that a product keeps on its stack
constexpr int kGemmRows = 2, kGemmVectors = 4;
constexpr int kStateVectors = 4;  // of a row of the KDA state at a time

typedef float F __attribute__((vector_size(16)));
typedef std::int32_t I __attribute__((vector_size(16)));
typedef std::uint32_t U __attribute__((vector_size(16)));
typedef std::uint16_t Half __attribute__((vector_size(8)));
using F4 = F;  // four floats

TRIAX_INLINE F set1(float x) {
  return F{x, x, x, x};
}
TRIAX_INLINE F zero() {
  return F{0.0f, 0.0f, 0.0f, 0.0f};
}
TRIAX_INLINE U as_bits(F x) {
  return __builtin_bit_cast(U, x);
}
TRIAX_INLINE F from_bits(U x) {
  return __builtin_bit_cast(F, x);
}

// The `_n` forms read or write the first n < kWidth elements; the others read as zero.
TRIAX_INLINE F load(const float* p) {
  F v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
TRIAX_MASKED F load_n(const float* p, std::size_t n) {
  F v = zero();
  for (std::size_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
TRIAX_INLINE void store(float* p, F v) {
  __builtin_memcpy(p, &v, sizeof v);
}
TRIAX_MASKED void store_n(float* p, F v, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) p[i] = v[i];
}
TRIAX_INLINE F widen(Half h) {
  return from_bits(__builtin_convertvector(h, U) << 16);
}
TRIAX_INLINE F load(const bf16* p) {
  Half h;
  __builtin_memcpy(&h, p, sizeof h);
  return widen(h);
}
TRIAX_MASKED F load_n(const bf16* p, std::size_t n) {
  Half h{0, 0, 0, 0};
  for (std::size_t i = 0; i < n; ++i) h[i] = p[i].bits;
  return widen(h);
}
// Nearest even; NaN stays NaN.
TRIAX_INLINE Half narrow(F x) {
  const U u = as_bits(x);
  const U up = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
  const U nan = (u >> 16) | 0x40u;
  const U is_nan = __builtin_bit_cast(U, (u & 0x7FFFFFFFu) > 0x7F800000u);
  return __builtin_convertvector((nan & is_nan) | (up & ~is_nan), Half);
}
TRIAX_INLINE void store(bf16* p, F v) {
  const Half h = narrow(v);
  __builtin_memcpy(static_cast<void*>(p), &h, sizeof h);
}
TRIAX_MASKED void store_n(bf16* p, F v, std::size_t n) {
  const Half h = narrow(v);
  for (std::size_t i = 0; i < n; ++i) p[i].bits = h[i];
}

// Eight-bit integers, exact.
TRIAX_INLINE F load_codes(const std::int8_t* p) {
  return F{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
           static_cast<float>(p[3])};
}

TRIAX_INLINE F add(F a, F b) {
  return a + b;
}
TRIAX_INLINE F sub(F a, F b) {
  return a - b;
}
TRIAX_INLINE F mul(F a, F b) {
  return a * b;
}
TRIAX_INLINE F div(F a, F b) {
  return a / b;
}
TRIAX_INLINE F fma(F a, F b, F c) {
  return a * b + c;
}  // a b + c; fused where the set can
TRIAX_INLINE F fnma(F a, F b, F c) {
  return c - a * b;
}  // c - a b
// b where either is NaN, as the x86 instructions do.
TRIAX_INLINE F max(F a, F b) {
  const I m = a > b;
  return from_bits((as_bits(a) & __builtin_bit_cast(U, m)) |
                   (as_bits(b) & ~__builtin_bit_cast(U, m)));
}
TRIAX_INLINE F min(F a, F b) {
  const I m = a < b;
  return from_bits((as_bits(a) & __builtin_bit_cast(U, m)) |
                   (as_bits(b) & ~__builtin_bit_cast(U, m)));
}
TRIAX_INLINE F abs(F x) {
  return from_bits(as_bits(x) & 0x7FFFFFFFu);
}
TRIAX_INLINE F copy_sign(F magnitude, F sign) {
  return from_bits((as_bits(magnitude) & 0x7FFFFFFFu) | (as_bits(sign) & 0x80000000u));
}
// Nearest integer, for |x| < 2^21.
TRIAX_INLINE F round(F x) {
  return (x + 12582912.0f) - 12582912.0f;
}
// x 2^n for integers n in [-252, 254]; in two steps, so that the ends of the range come out right.
TRIAX_INLINE F scale_by_power(F x, F n) {
  const I whole = __builtin_convertvector(n, I);
  const I half = whole >> 1;
  return x * __builtin_bit_cast(F, (half + 127) << 23) *
         __builtin_bit_cast(F, (whole - half + 127) << 23);
}

// Sum over the lanes: lane i to lane i + half, halving, the same in sum and sum4.
TRIAX_INLINE float sum(F v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}
TRIAX_INLINE F4 sum4(F a, F b, F c, F d) {
  return F{sum(a), sum(b), sum(c), sum(d)};
}
TRIAX_INLINE float hmax(F v) {
  float m = v[0];
  for (int i = 1; i < 4; ++i) m = v[i] > m ? v[i] : m;
  return m;
}
TRIAX_INLINE void store4(float* p, F4 v) {
  store(p, v);
}

constexpr Mxfp4Float kMxfp4 = make_mxfp4_float();

// 32 columns of an MXFP4 row (16 bytes, one scale byte), in order, as vectors or as BF16.
TRIAX_INLINE void decode_group(const std::uint8_t* packed, std::uint8_t e, F (&out)[32 / kWidth]) {
  const std::uint32_t* value = kMxfp4.at[e];
#pragma GCC unroll 8
  for (std::size_t j = 0; j < 32 / kWidth; ++j) {
    const unsigned a = packed[2 * j], b = packed[2 * j + 1];
    out[j] = from_bits(U{value[a & 15u], value[a >> 4], value[b & 15u], value[b >> 4]});
  }
}
TRIAX_INLINE void decode_group(const std::uint8_t* packed, std::uint8_t e, bf16* out) {
  for (std::size_t j = 0; j < 16; ++j) {
    out[2 * j].bits = static_cast<std::uint16_t>(kMxfp4.at[e][packed[j] & 15u] >> 16);
    out[2 * j + 1].bits = static_cast<std::uint16_t>(kMxfp4.at[e][packed[j] >> 4] >> 16);
  }
}

}  // namespace
}  // namespace triax
