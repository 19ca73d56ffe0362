// Vectors of eight floats: AVX2 and FMA. See simd_scalar.h for what each function means.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "triax/core/dtype.h"
#include "triax/kernels/isa/inline.h"
#include "triax/kernels/isa/mxfp4_tables.h"

namespace triax {
namespace {

constexpr std::size_t kWidth = 8;
constexpr int kMaxRows = 6;
constexpr int kAccumulators = 12;
constexpr std::size_t kPanelVectors = 768;  // 24 KiB: beside the weights in the first cache
constexpr int kGemmRows = 4, kGemmVectors = 2;
constexpr int kStateVectors = 4;  // of a row of the KDA state at a time

using F = __m256;
using F4 = __m128;

TRIAX_INLINE F set1(float x) {
  return _mm256_set1_ps(x);
}
TRIAX_INLINE F zero() {
  return _mm256_setzero_ps();
}

constexpr std::int32_t kMaskWindow[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
// The first n lanes, n <= 8.
TRIAX_INLINE __m256i first(std::size_t n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMaskWindow + 8 - n));
}

TRIAX_INLINE F load(const float* p) {
  return _mm256_loadu_ps(p);
}
TRIAX_MASKED F load_n(const float* p, std::size_t n) {
  return _mm256_maskload_ps(p, first(n));
}
TRIAX_INLINE void store(float* p, F v) {
  _mm256_storeu_ps(p, v);
}
TRIAX_MASKED void store_n(float* p, F v, std::size_t n) {
  _mm256_maskstore_ps(p, first(n), v);
}

// Eight BF16 in one 128-bit register to float32: one shuffle of a broadcast load.
TRIAX_INLINE F widen(__m128i h) {
  const __m256i to_high_half =
      _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7, -1, -1, 8, 9, -1, -1,
                       10, 11, -1, -1, 12, 13, -1, -1, 14, 15);
  return _mm256_castsi256_ps(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(h), to_high_half));
}
TRIAX_INLINE F load(const bf16* p) {
  return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
TRIAX_MASKED F load_n(const bf16* p, std::size_t n) {
  alignas(16) std::uint16_t h[8] = {};
  for (std::size_t i = 0; i < n; ++i) h[i] = p[i].bits;
  return widen(_mm_load_si128(reinterpret_cast<const __m128i*>(h)));
}
TRIAX_INLINE __m128i narrow(F x) {
  const __m256i u = _mm256_castps_si256(x);
  const __m256i high = _mm256_srli_epi32(u, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i up =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7FFF)), odd), 16);
  const __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i bits = _mm256_blendv_epi8(up, nan, is_nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}
TRIAX_INLINE void store(bf16* p, F v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(v));
}
TRIAX_MASKED void store_n(bf16* p, F v, std::size_t n) {
  alignas(16) std::uint16_t h[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(h), narrow(v));
  for (std::size_t i = 0; i < n; ++i) p[i].bits = h[i];
}

TRIAX_INLINE F load_codes(const std::int8_t* p) {
  const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight));
}

TRIAX_INLINE F add(F a, F b) {
  return _mm256_add_ps(a, b);
}
TRIAX_INLINE F sub(F a, F b) {
  return _mm256_sub_ps(a, b);
}
TRIAX_INLINE F mul(F a, F b) {
  return _mm256_mul_ps(a, b);
}
TRIAX_INLINE F div(F a, F b) {
  return _mm256_div_ps(a, b);
}
TRIAX_INLINE F fma(F a, F b, F c) {
  return _mm256_fmadd_ps(a, b, c);
}
TRIAX_INLINE F fnma(F a, F b, F c) {
  return _mm256_fnmadd_ps(a, b, c);
}
TRIAX_INLINE F max(F a, F b) {
  return _mm256_max_ps(a, b);
}
TRIAX_INLINE F min(F a, F b) {
  return _mm256_min_ps(a, b);
}
TRIAX_INLINE F abs(F x) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}
TRIAX_INLINE F copy_sign(F magnitude, F sign) {
  return _mm256_or_ps(abs(magnitude), _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}
TRIAX_INLINE F round(F x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TRIAX_INLINE F power_of_two(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
TRIAX_INLINE F scale_by_power(F x, F n) {
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  return mul(mul(x, power_of_two(half)), power_of_two(_mm256_sub_epi32(whole, half)));
}

TRIAX_INLINE __m128 halves(F v) {
  return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
TRIAX_INLINE float sum(F v) {
  __m128 a = halves(v);
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps(a, a, 1)));
}
TRIAX_INLINE F4 sum4(F a, F b, F c, F d) {
  // (a, b) and (c, d): their lanes i and i + 4 added; a and c in the low half
  const F ab = add(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  const F cd = add(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
  // lanes i and i + 2: low half a0 a1 c0 c1, high half b0 b1 d0 d1
  const F two = add(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xEE));
  const F one = add(two, _mm256_permute_ps(two, 0xB1));  // a a c c | b b d d
  const __m128 ac = _mm256_castps256_ps128(one), bd = _mm256_extractf128_ps(one, 1);
  return _mm_blend_ps(ac, bd, 0xA);  // a b c d
}
TRIAX_INLINE float hmax(F v) {
  __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_max_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps(a, a, 1)));
}
TRIAX_INLINE void store4(float* p, F4 v) {
  _mm_storeu_ps(p, v);
}

constexpr Mxfp4Bytes kMxfp4 = make_mxfp4_bytes();

// The 32 codes of `bytes` looked up: BF16 values, low and high bytes apart. `order` says which byte
// each pair of codes comes from.
struct CodeBytes {
  __m256i low, high;
};
TRIAX_INLINE CodeBytes look_up(const std::uint8_t* packed, std::uint8_t e, __m256i order) {
  const auto both = [](const std::uint8_t* p) TRIAX_LAMBDA {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  };
  const __m256i twice = _mm256_shuffle_epi8(both(packed), order);
  const __m256i even = _mm256_and_si256(twice, _mm256_set1_epi16(0x000F));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(twice, 4), _mm256_set1_epi16(0x0F00));
  const __m256i codes = _mm256_or_si256(even, odd);
  return {_mm256_shuffle_epi8(both(kMxfp4.at[e][0]), codes),
          _mm256_shuffle_epi8(both(kMxfp4.at[e][1]), codes)};
}
TRIAX_INLINE void decode_group(const std::uint8_t* packed, std::uint8_t e, F (&out)[4]) {
  // Columns 8j..8j+3 in the low half and 8j+4..8j+7 in the high half, as the unpacking below needs.
  const CodeBytes c =
      look_up(packed, e,
              _mm256_setr_epi8(0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13, 2, 2, 3, 3, 6, 6,
                               7, 7, 10, 10, 11, 11, 14, 14, 15, 15));
  const __m256i none = _mm256_setzero_si256();
  const __m256i a = _mm256_unpacklo_epi8(c.low, c.high), b = _mm256_unpackhi_epi8(c.low, c.high);
  out[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(none, a));
  out[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(none, a));
  out[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(none, b));
  out[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(none, b));
}
TRIAX_INLINE void decode_group(const std::uint8_t* packed, std::uint8_t e, bf16* out) {
  const CodeBytes c =
      look_up(packed, e,
              _mm256_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10,
                               11, 11, 12, 12, 13, 13, 14, 14, 15, 15));
  const __m256i a = _mm256_unpacklo_epi8(c.low, c.high), b = _mm256_unpackhi_epi8(c.low, c.high);
  __m256i* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(a, b, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(a, b, 0x31));
}

}  // namespace
}  // namespace triax
