// The avx2 kernels.
#include "triax/kernels/isa/simd_avx2.h"

#define TRIAX_SET avx2
#include "triax/kernels/isa/set.inl"
