// AVX-512 BF16: two products of BF16 numbers added to each float32 sum.
#include <immintrin.h>

#include "spin.inl"
#include "triax/machine/isa/loops.h"

namespace triax {
namespace {

TRIAX_SPIN(spin, __m512, 16, 64, acc[i] = _mm512_dpbf16_ps(acc[i], __m512bh{}, __m512bh{}))

}  // namespace

const LimitLoops* limits_avx512bf16() {
  static constexpr LimitLoops loops{"avx512bf16", "vdpbf16ps, 512-bit", spin, nullptr};
  return &loops;
}

}  // namespace triax
