// AVX-512: 512-bit registers.
#include <immintrin.h>

#include "spin.inl"
#include "triax/machine/isa/loops.h"

namespace triax {
namespace {

TRIAX_SPIN(spin, __m512, 16, 32,
           acc[i] = _mm512_fmadd_ps(acc[i], _mm512_set1_ps(0.5f), _mm512_set1_ps(1.0f)))

std::uint64_t read(const void* p, std::size_t n) {
  const char* at = static_cast<const char*>(p);
  const char* end = at + n;
  __m512i sum[8] = {};
  for (; at != end; at += 8 * sizeof(__m512i)) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      sum[i] = _mm512_xor_si512(sum[i], _mm512_loadu_si512(at + sizeof(__m512i) * i));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm512_xor_si512(sum[0], sum[i]);
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(sum[0])));
}

}  // namespace

const LimitLoops* limits_avx512() {
  static constexpr LimitLoops loops{"avx512", "vfmadd, 512-bit", spin, read};
  return &loops;
}

}  // namespace triax
