// Register-only multiply-add loops and a plain read, one for each instruction set.
#include "limits.h"

#include <immintrin.h>

namespace triax::bench {

// The empty asm keeps each sum alive and in a register, and the loop from being folded.
#define SPIN(NAME, TARGET, TYPE, SUMS, OPS, STEP)                   \
  __attribute__((target(TARGET))) double NAME(std::size_t rounds) { \
    TYPE acc[SUMS] = {};                                            \
    for (std::size_t r = 0; r < rounds; ++r) {                      \
      _Pragma("GCC unroll 16") for (int i = 0; i < SUMS; ++i) {     \
        STEP;                                                       \
        asm volatile("" : "+x"(acc[i]));                            \
      }                                                             \
    }                                                               \
    return static_cast<double>(rounds) * SUMS * OPS;                \
  }

// Two instructions, and only the sum in the chain; the factor is hidden so that the product stays.
SPIN(spin_sse, "sse2", __m128, 12, 8, __m128 x = _mm_set1_ps(0.5f); asm volatile("" : "+x"(x));
     acc[i] = _mm_add_ps(acc[i], _mm_mul_ps(x, x)))
SPIN(spin_avx2, "avx2,fma", __m256, 12, 16,
     acc[i] = _mm256_fmadd_ps(acc[i], _mm256_set1_ps(0.5f), _mm256_set1_ps(1.0f)))
SPIN(spin_avx512, "avx512f", __m512, 16, 32,
     acc[i] = _mm512_fmadd_ps(acc[i], _mm512_set1_ps(0.5f), _mm512_set1_ps(1.0f)))
SPIN(spin_avx512bf16, "avx512f,avx512bw,avx512bf16", __m512, 16, 64,
     acc[i] = _mm512_dpbf16_ps(acc[i], __m512bh{}, __m512bh{}))
#undef SPIN

// Four tiles of sums from two tiles of each operand, all of them zero.
__attribute__((target("amx-tile,amx-bf16"))) double spin_amx(std::size_t rounds) {
  struct alignas(64) Config {
    unsigned char palette, start_row, reserved[14];
    unsigned short bytes[16];
    unsigned char rows[16];
  };
  static constexpr Config full{
      1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&full);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::size_t r = 0; r < rounds; ++r) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return static_cast<double>(rounds) * 4 * 16 * 16 * 32 * 2;
}

__attribute__((target("avx2"))) unsigned read_all(const void* p, std::size_t n) {
  const char* bytes = static_cast<const char*>(p);
  __m256i a[8] = {};
  for (std::size_t i = 0; i + 256 <= n; i += 256) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      a[j] = _mm256_xor_si256(
          a[j], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + i + 32 * j)));
    }
  }
  for (int j = 1; j < 8; ++j) a[0] = _mm256_xor_si256(a[0], a[j]);
  return static_cast<unsigned>(_mm256_extract_epi32(a[0], 0));
}

}  // namespace triax::bench
