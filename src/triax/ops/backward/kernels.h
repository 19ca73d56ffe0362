// The inner loops that only training has, once for each instruction set, behind a table beside the
// one of kernels/kernels.h, under the same rules: on the calling thread, without allocation, throw
// or check; an output depends on its own inputs and their length alone.
#pragma once

#include <cstddef>

#include "triax/core/dtype.h"

namespace triax {

// Products of BF16 numbers with sums in float32: C [M, N] (+)= A B, over k in one chain for each
// output. Operands are rounded and laid out as tiles of 512 values first; rows and columns that are
// not there are zeros. A left tile holds 16 rows of A by 32 of k, a right tile 32 of k by 16
// columns of B, in an order within that is the set's own. Tiles lie [16 rows or columns][32 of k].
inline constexpr std::size_t kRoundedTile = 512;  // values
inline constexpr std::size_t kRoundedRows = 16;   // of a left tile, or columns of a right one
inline constexpr std::size_t kRoundedDepth = 32;  // of k
struct RoundedKernels {
  // Up to 16 rows of K columns, k along the columns: ceil(K / 32) left tiles, or right ones (the
  // rows are then columns of B), one behind the other.
  void (*left_of_rows)(const float* const* rows, std::size_t count, std::size_t K, bf16* tiles);
  void (*right_of_rows)(const float* const* rows, std::size_t count, std::size_t K, bf16* tiles);
  // Up to 32 rows of N columns, k down the rows: ceil(N / 16) tiles, `stride` values apart.
  void (*left_of_cols)(const float* const* rows, std::size_t count, std::size_t N, bf16* tiles,
                       std::size_t stride);
  void (*right_of_cols)(const float* const* rows, std::size_t count, std::size_t N, bf16* tiles,
                        std::size_t stride);
  // `depth` tiles of k. Strides: values from one 16 rows (columns) to the next.
  void (*product)(const bf16* left, std::size_t left_stride, const bf16* right,
                  std::size_t right_stride, std::size_t M, std::size_t N, std::size_t depth,
                  float* C, std::size_t ldc, bool accumulate);
};

struct TrainingKernels {
  // One row of KDA, one head, forward again: alpha [K] = exp(g), error = v - S'^T k (S' the decayed
  // state), after = S' + k (beta error)^T. States [K, V].
  void (*kda_recompute)(const float* before, const float* alpha, const float* k, const float* v,
                        float beta, std::size_t K, std::size_t V, float* error, float* after);
  // The same row backwards (ops/backward/kda.h). q is scaled; dS becomes the gradient of the state
  // before. dq is for the scaled q. Returns dbeta. scratch: V values.
  float (*kda_back)(const float* before, const float* after, const float* alpha, const float* q,
                    const float* k, const float* error, const float* d_o, float beta, std::size_t K,
                    std::size_t V, float* dS, float* dq, float* dk, float* dv, float* dg,
                    float* scratch);

  // Gradients of rows of n elements, as ops/backward/pointwise.h has them.
  // dx (+)= ..., dw += dy x r
  void (*rms_norm_back)(const float* x, const float* w, float eps, const float* dy, std::size_t n,
                        bool accumulate, float* dx, float* dw);
  void (*rms_norm_gated_back)(const float* x, const float* w, const float* gate, float eps,
                              const float* dy, std::size_t n, float* dx, float* dgate, float* dw);
  void (*l2_norm_back)(const float* x, float eps, const float* dy, std::size_t n, float* dx);
  void (*mul_sigmoid_back)(const float* x, const float* gate, const float* dy, std::size_t n,
                           float* dx, float* dgate);
  // SiTU and SwiGLU, y = act(gate, up): with dy times `factor`. Returns sum y dy (without the
  // factor); y, when given, receives factor * y. linear_beta <= 0: up is not capped.
  float (*situ_back)(const float* gate, const float* up, float beta, float linear_beta,
                     const float* dy, float factor, std::size_t n, float* dgate, float* dup,
                     float* y);
  float (*swiglu_back)(const float* gate, const float* up, const float* dy, float factor,
                       std::size_t n, float* dgate, float* dup, float* y);
  // Bounded KDA gate of one head: draw, ddt += draw; returns the sum of draw (raw + dt_bias).
  float (*kda_gate_back)(const float* raw, const float* dt_bias, float a, float lower_bound,
                         const float* dg, std::size_t n, float* draw, float* ddt);
  // SiTU itself, to 2e-7 of its largest value: for training with rounded products.
  void (*situ)(const float* gate, const float* up, float beta, float linear_beta, std::size_t n,
               float* y);
  // v . v, w . v and dy . v
  void (*mix_sums)(const float* v, const float* w, const float* dy, std::size_t n, float* sums);
  // Depth mix: dsources[i] += p dy + up w - back source_i;  dw += up source_i.
  void (*mix_back)(const float* source, const float* w, const float* dy, float p, float up,
                   float back, std::size_t n, float* dsource, float* dw);
  // Short convolution with SiLU, n channels of `rows` rows that follow each other; the first begins
  // a document. dx may be dy. dw [taps, n] += (ldw apart). At most 8 taps.
  void (*conv_back)(const float* x, std::size_t ldx, const float* w, std::size_t ldw,
                    std::size_t taps, std::size_t rows, const float* dy, std::size_t lddy,
                    std::size_t n, float* dx, std::size_t lddx, float* dw, std::size_t lddw);

  const RoundedKernels* rounded = nullptr;
};

// The table that goes with kernels().
const TrainingKernels& training_kernels();

// Each getter is the only symbol that its object file exports.
const TrainingKernels* training_scalar();
const TrainingKernels* training_avx2();
const TrainingKernels* training_avx512();
// The other two sets are avx512 with these.
const RoundedKernels* training_avx512bf16();
const RoundedKernels* training_amx();

}  // namespace triax
