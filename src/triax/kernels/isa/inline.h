// Attributes of the per-set code: small functions must vanish into their kernels.
#pragma once

#define TRIAX_INLINE inline __attribute__((always_inline))
#define TRIAX_LAMBDA __attribute__((always_inline))
