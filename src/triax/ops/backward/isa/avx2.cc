// The avx2 loops of training.
#include "triax/kernels/isa/simd_avx2.h"

#define TRIAX_SET avx2
#include "triax/ops/backward/isa/set.inl"
