// One instruction set's table. Included last by isa/<set>.cc, which defines TRIAX_SET (the name)
// and has included its simd_*.h. Everything but the getter has internal linkage.

#include "triax/kernels/isa/tables.h"

#include "triax/kernels/isa/elementwise.inl"
#include "triax/kernels/isa/gemm.inl"
#include "triax/kernels/isa/kda.inl"
#include "triax/kernels/isa/linear.inl"
#include "triax/kernels/isa/math.inl"
#include "triax/kernels/isa/reduce.inl"

#define TRIAX_TEXT_(x) #x
#define TRIAX_TEXT(x) TRIAX_TEXT_(x)
#define TRIAX_JOIN_(a, b) a##b
#define TRIAX_JOIN(a, b) TRIAX_JOIN_(a, b)

namespace triax {

const KernelTable* TRIAX_JOIN(table_, TRIAX_SET)() {
  static constexpr KernelTable table{
      .isa = Isa::TRIAX_SET,
      .name = TRIAX_TEXT(TRIAX_SET),
      .linear_f32_bf16 = linear_f32_bf16,
      .linear_bf16_bf16 = linear_bf16_bf16,
      .linear_f32_f32 = linear_f32_f32,
      .linear_f32_mxfp4 = linear_f32_mxfp4,
      .linear_bf16_mxfp4 = linear_bf16_mxfp4,
      .linear_f32_int8 = linear_f32_int8,
      .linear_bf16_int8 = linear_bf16_int8,
      .gemm_nt = gemm_nt,
      .gemm_nt_bf16 = gemm_nt_bf16,
      .gemm_nn = gemm_nn,
      .gemm_nn_bf16 = gemm_nn_bf16,
      .gemm_tn = gemm_tn,
      .to_bf16 = to_bf16_row,
      .from_bf16 = from_bf16_row,
      .add = add_rows,
      .axpy = axpy_row,
      .scale = scale_row,
      .mul = mul_rows,
      .exp = exp_row,
      .sigmoid = sigmoid_row,
      .dot = dot_row,
      .sum_squares = sum_squares_row,
      .max = max_row,
      .exp_sum = exp_sum_row,
      .rms_norm = rms_norm_row,
      .rms_norm_gated = rms_norm_gated_row,
      .l2_norm = l2_norm_row,
      .mul_sigmoid = mul_sigmoid_row,
      .situ = situ_row,
      .swiglu = swiglu_row,
      .conv_silu = conv_silu_row,
      .kda_gate = kda_gate_row,
      .kda_gate_softplus = kda_gate_softplus_row,
      .mix_score = mix_score_row,
      .weighted_sum = weighted_sum_rows,
      .kda_step = kda_step,
  };
  return &table;
}

}  // namespace triax
