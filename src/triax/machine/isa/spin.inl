// A loop of independent chains: SUMS accumulators of TYPE, OPS operations in each STEP.
// The empty asm keeps each sum alive and in a register, and the loop from being folded.
#define TRIAX_SPIN(NAME, TYPE, SUMS, OPS, STEP)                 \
  double NAME(std::size_t rounds) {                             \
    TYPE acc[SUMS] = {};                                        \
    for (std::size_t r = 0; r < rounds; ++r) {                  \
      _Pragma("GCC unroll 16") for (int i = 0; i < SUMS; ++i) { \
        STEP;                                                   \
        asm volatile("" : "+x"(acc[i]));                        \
      }                                                         \
    }                                                           \
    return static_cast<double>(rounds) * SUMS * OPS;            \
  }
