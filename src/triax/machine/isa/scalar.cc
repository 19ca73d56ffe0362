// The baseline, x86-64-v2: 128-bit registers, multiplication and addition apart.
#include <emmintrin.h>

#include "spin.inl"
#include "triax/machine/isa/loops.h"

namespace triax {
namespace {

// Only the sum is in the chain; the factor is hidden so that the product stays.
TRIAX_SPIN(spin, __m128, 12, 8, __m128 x = _mm_set1_ps(0.5f); asm volatile("" : "+x"(x));
           acc[i] = _mm_add_ps(acc[i], _mm_mul_ps(x, x)))

std::uint64_t read(const void* p, std::size_t n) {
  const __m128i* at = static_cast<const __m128i*>(p);
  const __m128i* end = at + n / sizeof(__m128i);
  __m128i sum[8] = {};
  for (; at != end; at += 8) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sum[i] = _mm_xor_si128(sum[i], _mm_loadu_si128(at + i));
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm_xor_si128(sum[0], sum[i]);
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(sum[0]));
}

}  // namespace

const LimitLoops* limits_scalar() {
  static constexpr LimitLoops loops{"scalar", "mulps and addps, 128-bit", spin, read};
  return &loops;
}

}  // namespace triax
