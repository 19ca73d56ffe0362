// The baseline kernels: portable code, four lanes.
#include "triax/kernels/isa/simd_scalar.h"

#define TRIAX_SET scalar
#include "triax/kernels/isa/set.inl"
