// The avx512bf16 kernels: AVX-512, with BF16 products by the instruction made for them.
#include "triax/kernels/isa/pairs_avx512bf16.h"
#include "triax/kernels/isa/simd_avx512.h"

#define TRIAX_BF16_PAIRS
#define TRIAX_SET avx512bf16
#include "triax/kernels/isa/set.inl"
