// The avx512 loops of training.
#include "triax/kernels/isa/simd_avx512.h"

#define TRIAX_SET avx512
#include "triax/ops/backward/isa/set.inl"
