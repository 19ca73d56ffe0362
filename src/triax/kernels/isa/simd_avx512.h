// Vectors of sixteen floats: AVX-512 F, BW, DQ and VL. See simd_scalar.h for what each function
// means.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "triax/core/dtype.h"
#include "triax/kernels/isa/inline.h"
#include "triax/kernels/isa/mxfp4_tables.h"

namespace triax {
namespace {

constexpr std::size_t kWidth = 16;
constexpr int kMaxRows = 12;
constexpr int kAccumulators = 24;
constexpr std::size_t kPanelVectors = 384;  // 24 KiB: beside the weights in the first cache
constexpr int kGemmRows = 4, kGemmVectors = 4;
constexpr int kStateVectors = 8;  // of a row of the KDA state at a time

using F = __m512;
using F4 = __m128;

TRIAX_INLINE F set1(float x) {
  return _mm512_set1_ps(x);
}
TRIAX_INLINE F zero() {
  return _mm512_setzero_ps();
}
TRIAX_INLINE __mmask16 first(std::size_t n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}

TRIAX_INLINE F load(const float* p) {
  return _mm512_loadu_ps(p);
}
TRIAX_MASKED F load_n(const float* p, std::size_t n) {
  return _mm512_maskz_loadu_ps(first(n), p);
}
TRIAX_INLINE void store(float* p, F v) {
  _mm512_storeu_ps(p, v);
}
TRIAX_MASKED void store_n(float* p, F v, std::size_t n) {
  _mm512_mask_storeu_ps(p, first(n), v);
}

// Sixteen BF16 to float32: each word to the upper half of its lane, zero below.
TRIAX_INLINE F widen(__m256i h) {
  const __m512i from =
      _mm512_setr_epi32(0x00000000, 0x00010000, 0x00020000, 0x00030000, 0x00040000, 0x00050000,
                        0x00060000, 0x00070000, 0x00080000, 0x00090000, 0x000A0000, 0x000B0000,
                        0x000C0000, 0x000D0000, 0x000E0000, 0x000F0000);
  return _mm512_castsi512_ps(
      _mm512_maskz_permutexvar_epi16(0xAAAAAAAAu, from, _mm512_castsi256_si512(h)));
}
TRIAX_INLINE F load(const bf16* p) {
  return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
TRIAX_MASKED F load_n(const bf16* p, std::size_t n) {
  return widen(_mm256_maskz_loadu_epi16(first(n), p));
}
TRIAX_INLINE __m256i narrow(F x) {
  const __m512i u = _mm512_castps_si512(x);
  const __m512i high = _mm512_srli_epi32(u, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i up =
      _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7FFF)), odd), 16);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(up, is_nan, high, _mm512_set1_epi32(0x40)));
}
TRIAX_INLINE void store(bf16* p, F v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(v));
}
TRIAX_MASKED void store_n(bf16* p, F v, std::size_t n) {
  _mm256_mask_storeu_epi16(p, first(n), narrow(v));
}

TRIAX_INLINE F load_codes(const std::int8_t* p) {
  const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(sixteen));
}

TRIAX_INLINE F add(F a, F b) {
  return _mm512_add_ps(a, b);
}
TRIAX_INLINE F sub(F a, F b) {
  return _mm512_sub_ps(a, b);
}
TRIAX_INLINE F mul(F a, F b) {
  return _mm512_mul_ps(a, b);
}
TRIAX_INLINE F div(F a, F b) {
  return _mm512_div_ps(a, b);
}
TRIAX_INLINE F fma(F a, F b, F c) {
  return _mm512_fmadd_ps(a, b, c);
}
TRIAX_INLINE F fnma(F a, F b, F c) {
  return _mm512_fnmadd_ps(a, b, c);
}
TRIAX_INLINE F max(F a, F b) {
  return _mm512_max_ps(a, b);
}
TRIAX_INLINE F min(F a, F b) {
  return _mm512_min_ps(a, b);
}
TRIAX_INLINE F abs(F x) {
  return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x);
}
TRIAX_INLINE F copy_sign(F magnitude, F sign) {
  return _mm512_or_ps(abs(magnitude), _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
}
TRIAX_INLINE F round(F x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TRIAX_INLINE F scale_by_power(F x, F n) {
  return _mm512_scalef_ps(x, n);
}

// Lanes i and i + 8 of a (low half) and of b (high half) added.
TRIAX_INLINE F halves(F a, F b) {
  return add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
}
TRIAX_INLINE F4 sum4(F a, F b, F c, F d) {
  const F ab = halves(a, b), cd = halves(c, d);
  // lanes i and i + 4: one block of four lanes for each of a, b, c, d
  const F four = add(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
  const F two = add(four, _mm512_permute_ps(four, 0x4E));  // lanes i and i + 2
  const F one = add(two, _mm512_permute_ps(two, 0xB1));    // lanes i and i + 1
  return _mm512_castps512_ps128(_mm512_permutexvar_ps(
      _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12), one));
}
TRIAX_INLINE float sum(F v) {
  return _mm_cvtss_f32(sum4(v, v, v, v));
}
TRIAX_INLINE float hmax(F v) {
  F m = max(v, _mm512_shuffle_f32x4(v, v, 0x4E));
  m = max(m, _mm512_shuffle_f32x4(m, m, 0xB1));
  m = max(m, _mm512_permute_ps(m, 0x4E));
  return _mm512_cvtss_f32(max(m, _mm512_permute_ps(m, 0xB1)));
}
TRIAX_INLINE void store4(float* p, F4 v) {
  _mm_storeu_ps(p, v);
}

alignas(64) constexpr Mxfp4Float kMxfp4 = make_mxfp4_float();
alignas(64) constexpr Mxfp4Pairs kMxfp4Pairs = make_mxfp4_pairs();

TRIAX_INLINE void decode_group(const std::uint8_t* packed, std::uint8_t e, F (&out)[2]) {
  // Each byte to two lanes of four bytes; the upper nibble shifted down in the odd ones. The lookup
  // reads four bits of an index.
  const __m512i order = _mm512_setr_epi32(-256, -256, -255, -255, -254, -254, -253, -253, -252,
                                          -252, -251, -251, -250, -250, -249, -249);
  const __m512i down = _mm512_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4);
  const __m512i values = _mm512_load_si512(kMxfp4.at[e]);
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    long long eight;
    __builtin_memcpy(&eight, packed + 8 * j, sizeof eight);
    const __m512i codes =
        _mm512_srlv_epi32(_mm512_shuffle_epi8(_mm512_set1_epi64(eight), order), down);
    out[j] = _mm512_castsi512_ps(_mm512_permutexvar_epi32(codes, values));
  }
}

// 32 columns as BF16, in order: each byte to two words, looked up by five bits, of which four
// count.
TRIAX_INLINE __m512i decode_pairs(const std::uint8_t* packed, std::uint8_t e) {
  const __m512i order = _mm512_setr_epi64(
      static_cast<long long>(0x8001800180008000ull), static_cast<long long>(0x8003800380028002ull),
      static_cast<long long>(0x8005800580048004ull), static_cast<long long>(0x8007800780068006ull),
      static_cast<long long>(0x8009800980088008ull), static_cast<long long>(0x800B800B800A800Aull),
      static_cast<long long>(0x800D800D800C800Cull), static_cast<long long>(0x800F800F800E800Eull));
  const __m512i down = _mm512_set1_epi32(0x00040000);
  const __m512i bytes =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(packed)));
  const __m512i codes = _mm512_srlv_epi16(_mm512_shuffle_epi8(bytes, order), down);
  return _mm512_permutexvar_epi16(codes, _mm512_load_si512(kMxfp4Pairs.at[e]));
}
TRIAX_INLINE void decode_group(const std::uint8_t* packed, std::uint8_t e, bf16* out) {
  _mm512_storeu_si512(out, decode_pairs(packed, e));
}

}  // namespace
}  // namespace triax
