// BF16 products by VDPBF16PS: lane l of a vector of sums takes columns 32 s + 2 l and 32 s + 2 l
// + 1. The instruction counts subnormal numbers as zero and rounds to nearest even.
#pragma once

#include "triax/kernels/isa/simd_avx512.h"

namespace triax {
namespace {

TRIAX_INLINE void load_x(const bf16* p, __m512bh& to) {
  to = __builtin_bit_cast(__m512bh, _mm512_loadu_si512(p));
}
TRIAX_MASKED void load_x_n(const bf16* p, std::size_t n, __m512bh& to) {
  to = __builtin_bit_cast(__m512bh, _mm512_maskz_loadu_epi16((1u << n) - 1u, p));
}

struct PairKind {
  using W = bf16;
  using V = __m512bh;
  static constexpr std::size_t kStep = 32;
  TRIAX_INLINE static V load_w(const W* p) {
    V v;
    load_x(p, v);
    return v;
  }
  TRIAX_INLINE static V load_w_n(const W* p, std::size_t n) {
    V v;
    load_x_n(p, n, v);
    return v;
  }
  TRIAX_INLINE static F mul_acc(F acc, V x, V w) { return _mm512_dpbf16_ps(acc, x, w); }
};

TRIAX_INLINE void decode_group(const std::uint8_t* packed, std::uint8_t e, __m512bh (&out)[1]) {
  out[0] = __builtin_bit_cast(__m512bh, decode_pairs(packed, e));
}

// Code times scale, rounded to BF16.
TRIAX_INLINE void decode_group(const std::int8_t* codes, bf16 scale, __m512bh (&out)[1]) {
  const F by = set1(to_float(scale));
  out[0] = _mm512_cvtne2ps_pbh(mul(load_codes(codes + 16), by), mul(load_codes(codes), by));
}

}  // namespace
}  // namespace triax
