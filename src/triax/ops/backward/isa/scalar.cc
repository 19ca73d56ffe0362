// The scalar loops of training.
#include "triax/kernels/isa/simd_scalar.h"

#define TRIAX_SET scalar
#include "triax/ops/backward/isa/set.inl"
