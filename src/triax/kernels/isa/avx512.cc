// The avx512 kernels.
#include "triax/kernels/isa/simd_avx512.h"

#define TRIAX_SET avx512
#include "triax/kernels/isa/set.inl"
