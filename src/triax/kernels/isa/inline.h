// Attributes of the per-set code: small functions must vanish into their kernels.
#pragma once

#define TRIAX_INLINE inline __attribute__((always_inline))
#define TRIAX_LAMBDA __attribute__((always_inline))

// Keeps a vector that was loaded once in its register, where the compiler would rather load it
// again as the operand of each use: two loads a cycle are fewer than the multiply-adds need.
#if defined(__AVX512F__)
#define TRIAX_KEEP(x) asm("" : "+v"(x))
#else
#define TRIAX_KEEP(x) asm("" : "+x"(x))
#endif

// Masked loads and stores. The address sanitizer checks them lane by lane: once, not at every use.
#if defined(__SANITIZE_ADDRESS__)
#define TRIAX_MASKED inline __attribute__((noinline))
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRIAX_MASKED inline __attribute__((noinline))
#endif
#endif
#ifndef TRIAX_MASKED
#define TRIAX_MASKED TRIAX_INLINE
#endif
