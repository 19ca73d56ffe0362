// One instruction set's table of training loops. Included last by isa/<set>.cc, which defines
// TRIAX_SET (the name) and has included its simd_*.h.

// Of the kernels' rows only some are used here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "triax/kernels/isa/elementwise.inl"
#include "triax/kernels/isa/math.inl"
#include "triax/kernels/isa/reduce.inl"
#pragma GCC diagnostic pop
#include "triax/ops/backward/isa/kda.inl"
#include "triax/ops/backward/isa/rounded.inl"
#include "triax/ops/backward/isa/rows.inl"
#include "triax/ops/backward/kernels.h"

#define TRIAX_JOIN_(a, b) a##b
#define TRIAX_JOIN(a, b) TRIAX_JOIN_(a, b)

namespace triax {

const TrainingKernels* TRIAX_JOIN(training_, TRIAX_SET)() {
  static constexpr RoundedKernels rounded{.left_of_rows = left_of_rows,
                                          .right_of_rows = right_of_rows,
                                          .left_of_cols = left_of_cols,
                                          .right_of_cols = right_of_cols,
                                          .product = rounded_product};
  static constexpr TrainingKernels table{
      .kda_recompute = kda_recompute,
      .kda_back = kda_back,
      .rms_norm_back = rms_norm_back,
      .rms_norm_gated_back = rms_norm_gated_back,
      .l2_norm_back = l2_norm_back,
      .mul_sigmoid_back = mul_sigmoid_back,
      .situ_back = situ_back,
      .swiglu_back = swiglu_back,
      .kda_gate_back = kda_gate_back,
      .situ = situ_fast,
      .mix_sums = mix_sums,
      .mix_back = mix_back,
      .conv_back = conv_back,
      .rounded = &rounded,
  };
  return &table;
}

}  // namespace triax
