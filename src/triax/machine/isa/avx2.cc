// AVX2 and FMA: 256-bit registers.
#include <immintrin.h>

#include "spin.inl"
#include "triax/machine/isa/loops.h"

namespace triax {
namespace {

TRIAX_SPIN(spin, __m256, 12, 16,
           acc[i] = _mm256_fmadd_ps(acc[i], _mm256_set1_ps(0.5f), _mm256_set1_ps(1.0f)))

std::uint64_t read(const void* p, std::size_t n) {
  const __m256i* at = static_cast<const __m256i*>(p);
  const __m256i* end = at + n / sizeof(__m256i);
  __m256i sum[8] = {};
  for (; at != end; at += 8) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sum[i] = _mm256_xor_si256(sum[i], _mm256_loadu_si256(at + i));
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm256_xor_si256(sum[0], sum[i]);
  return static_cast<std::uint64_t>(_mm256_extract_epi64(sum[0], 0));
}

}  // namespace

const LimitLoops* limits_avx2() {
  static constexpr LimitLoops loops{"avx2", "vfmadd, 256-bit", spin, read};
  return &loops;
}

}  // namespace triax
