// The inner loops, once for each instruction set, behind one table of function pointers.
//
// Every kernel runs on the calling thread, allocates nothing, throws nothing, and checks nothing:
// ops/ does. All pointers may be unaligned. Strides (`ld*`) are in elements.
//
// Order of sums: an output depends on its own inputs and their length alone. How many rows or
// columns are computed in the same call, and in which tile an output lies, changes no bit of it.
// That is what makes a batch equal to its members. Between tables the order differs (and with it
// the last bits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "triax/core/dtype.h"

namespace triax {

enum class Isa : std::uint8_t { scalar, avx2, avx512, avx512bf16, amx };
inline constexpr int kIsaCount = 5;

// An MXFP4 product's scratch holds so many rows of K float32 values (twice as many rows of BF16).
inline constexpr std::size_t kMxfp4RowTile = 16;

// The order of the columns within each 32 of a packed matrix: as they are, or as MXFP4 weights come
// out of their decoding. A product takes rows packed in its own order.
enum class ColumnOrder : std::uint8_t { plain, mxfp4 };

// Rows of x as the matrix unit takes them: tiles of 16 rows by 32 columns, [rows / 16][K / 32]; or
// a single row [K].
struct PackedRows {
  const bf16* data;
  std::size_t rows;
  bool single;
};

// Products by a matrix unit, BF16 times BF16 with sums in float32. The order of an output's sum
// depends on K alone; it is another one than the vector kernels'.
struct MatrixKernels {
  // Rows of x [M, K] float32, given by pointers, rounded to BF16 and laid out as tiles. The
  // packed matrix has `packed_cols` columns (a multiple of 32) and ceil(M / 16) tiles of rows; K
  // columns (a multiple of 32) of it are written from `packed` on, which points at tile (0, first
  // column / 32): packed_tile() values from the start for each tile of columns.
  void (*pack)(const float* const* rows, std::size_t M, std::size_t K, bf16* packed,
               std::size_t packed_cols, ColumnOrder order);
  // One row, for PackedRows::single.
  void (*pack_row)(const float* x, std::size_t K, bf16* out, ColumnOrder order);
  // y = x W^T as linear_bf16_bf16. N at least 16, K a multiple of 32. `scratch` holds
  // matrix_scratch(K) values.
  void (*product_bf16)(const PackedRows& x, const bf16* w, std::size_t ldw, std::size_t N,
                       std::size_t K, float* y, std::size_t ldy, float* scratch);
  // Rows in ColumnOrder::mxfp4, the other products' in plain order.
  // `next`, `next_scale`: the weights of the product that the caller does after this one, of the
  // same shape, to be fetched meanwhile; null when there is none.
  void (*product_mxfp4)(const PackedRows& x, const std::uint8_t* w, const std::uint8_t* scale,
                        std::size_t N, std::size_t K, float* y, std::size_t ldy, float* scratch,
                        const std::uint8_t* next, const std::uint8_t* next_scale);
  // As linear_bf16_int8.
  void (*product_int8)(const PackedRows& x, const std::int8_t* w, const bf16* scale, std::size_t N,
                       std::size_t K, float* y, std::size_t ldy, float* scratch);
};
inline constexpr std::size_t kMatrixTile = 16;      // rows of a tile
inline constexpr std::size_t kMatrixTileCols = 32;  // columns of a tile
// BF16 values of a packed matrix, and of one of its tiles.
inline std::size_t packed_size(std::size_t M, std::size_t K) {
  return (M + kMatrixTile - 1) / kMatrixTile * kMatrixTile * K;
}
inline constexpr std::size_t packed_tile() {
  return kMatrixTile * kMatrixTileCols;
}
// float32 values: 32 rows of weights as BF16.
inline std::size_t matrix_scratch(std::size_t K) {
  return kMatrixTile * K;
}

struct KernelTable {
  Isa isa;
  const char* name;  // "scalar", "avx2", "avx512", "avx512bf16", "amx"

  // ---- Products with weights as stored, [N, K] ------------------------------------------------
  // y[m, n] = sum_k x[m, k] w[n, k] for m < M, n < N; the whole of y's M x N block is written.
  // "f32": x is float32 and every product is exact in float32 before the (fused) sum.
  // "bf16": x is BF16; products of two BF16 numbers, sums in float32.
  void (*linear_f32_bf16)(const float* x, std::size_t ldx, std::size_t M, const bf16* w,
                          std::size_t ldw, std::size_t N, std::size_t K, float* y, std::size_t ldy);
  void (*linear_bf16_bf16)(const bf16* x, std::size_t ldx, std::size_t M, const bf16* w,
                           std::size_t ldw, std::size_t N, std::size_t K, float* y,
                           std::size_t ldy);
  void (*linear_f32_f32)(const float* x, std::size_t ldx, std::size_t M, const float* w,
                         std::size_t ldw, std::size_t N, std::size_t K, float* y, std::size_t ldy);
  // MXFP4 weights: packed [N, K/2], scale [N, K/32], both dense; K a multiple of 32. `scratch`
  // holds kMxfp4RowTile * K float32 values. Scales 2^(e-127) are applied exactly; codes times
  // scales below the smallest normal float32 may count as zero.
  void (*linear_f32_mxfp4)(const float* x, std::size_t ldx, std::size_t M,
                           const std::uint8_t* packed, const std::uint8_t* scale, std::size_t N,
                           std::size_t K, float* y, std::size_t ldy, float* scratch);
  void (*linear_bf16_mxfp4)(const bf16* x, std::size_t ldx, std::size_t M,
                            const std::uint8_t* packed, const std::uint8_t* scale, std::size_t N,
                            std::size_t K, float* y, std::size_t ldy, float* scratch);
  // 8-bit weights: codes [N, K], scale [N, K/32], both dense; K a multiple of 32. A weight is code
  // times scale, exact in float32; "bf16" may round it to BF16.
  void (*linear_f32_int8)(const float* x, std::size_t ldx, std::size_t M, const std::int8_t* codes,
                          const bf16* scale, std::size_t N, std::size_t K, float* y,
                          std::size_t ldy);
  void (*linear_bf16_int8)(const bf16* x, std::size_t ldx, std::size_t M, const std::int8_t* codes,
                           const bf16* scale, std::size_t N, std::size_t K, float* y,
                           std::size_t ldy);

  // Null in sets without a matrix unit.
  const MatrixKernels* matrix = nullptr;

  // ---- Small float32 products (KDA chunks, MLA) ------------------------------------------------
  // C (+)= A B^T, A B, A^T B. `accumulate`: add to what C holds. B may be BF16 where the name says
  // so.
  void (*gemm_nt)(const float* A, std::size_t lda, const float* B, std::size_t ldb, float* C,
                  std::size_t ldc, std::size_t M, std::size_t N, std::size_t K, bool accumulate);
  void (*gemm_nt_bf16)(const float* A, std::size_t lda, const bf16* B, std::size_t ldb, float* C,
                       std::size_t ldc, std::size_t M, std::size_t N, std::size_t K,
                       bool accumulate);
  void (*gemm_nn)(const float* A, std::size_t lda, const float* B, std::size_t ldb, float* C,
                  std::size_t ldc, std::size_t M, std::size_t N, std::size_t K, bool accumulate);
  void (*gemm_nn_bf16)(const float* A, std::size_t lda, const bf16* B, std::size_t ldb, float* C,
                       std::size_t ldc, std::size_t M, std::size_t N, std::size_t K,
                       bool accumulate);
  void (*gemm_tn)(const float* A, std::size_t lda, const float* B, std::size_t ldb, float* C,
                  std::size_t ldc, std::size_t M, std::size_t N, std::size_t K, bool accumulate);

  // ---- Rows of n elements -----------------------------------------------------------------------
  // In and out may be the same row.
  void (*to_bf16)(const float* x, std::size_t n, bf16* y);  // nearest even
  void (*from_bf16)(const bf16* x, std::size_t n, float* y);
  void (*add)(const float* a, const float* b, std::size_t n, float* y);  // a + b
  void (*axpy)(float a, const float* x, std::size_t n, float* y);        // y += a x
  void (*scale)(float a, const float* x, std::size_t n, float* y);       // a x
  void (*mul)(const float* a, const float* b, std::size_t n, float* y);  // a * b, elementwise
  void (*exp)(const float* x, std::size_t n, float* y);                  // underflows to 0
  void (*sigmoid)(const float* x, std::size_t n, float* y);
  float (*dot)(const float* a, const float* b, std::size_t n);
  float (*sum_squares)(const float* x, std::size_t n);
  float (*max)(const float* x, std::size_t n);  // n >= 1
  // y = exp(x - shift); the sum of y. The shift is at least the largest x.
  float (*exp_sum)(const float* x, float shift, std::size_t n, float* y);

  // x * (mean(x^2) + eps)^-1/2 * w
  void (*rms_norm)(const float* x, const float* w, float eps, std::size_t n, float* y);
  // the same, times sigmoid(gate)
  void (*rms_norm_gated)(const float* x, const float* w, const float* gate, float eps,
                         std::size_t n, float* y);
  // x * (sum(x^2) + eps)^-1/2
  void (*l2_norm)(const float* x, float eps, std::size_t n, float* y);
  void (*mul_sigmoid)(const float* x, const float* gate, std::size_t n,
                      float* y);  // x sigmoid(gate)
  // beta tanh(gate/beta) sigmoid(gate) * linear_beta tanh(up/linear_beta);
  // linear_beta <= 0: the up branch is not capped. Finite for every finite input.
  void (*situ)(const float* gate, const float* up, float beta, float linear_beta, std::size_t n,
               float* y);
  void (*swiglu)(const float* gate, const float* up, std::size_t n, float* y);  // silu(gate) * up
  // y[c] = silu(sum_j w[j*ldw + c] rows[j][c]), j < taps (at most 8), the last row being the
  // current token.
  void (*conv_silu)(const float* const* rows, const float* w, std::size_t ldw, std::size_t taps,
                    std::size_t n, float* y);
  // g = lower_bound * sigmoid(a * (raw + dt_bias))
  void (*kda_gate)(const float* raw, const float* dt_bias, float a, float lower_bound,
                   std::size_t n, float* g);
  // g = -a * softplus(raw + dt_bias): Kimi-Linear's unbounded gate
  void (*kda_gate_softplus)(const float* raw, const float* dt_bias, float a, std::size_t n,
                            float* g);

  // Depth mix: score of one source, sum_d w_d v_d / sqrt(mean(v^2) + eps).
  float (*mix_score)(const float* v, const float* w, float eps, std::size_t n);
  // y = sum_i p[i] sources[i]; y may be one of the sources.
  void (*weighted_sum)(const float* const* sources, const float* p, std::size_t count,
                       std::size_t n, float* y);

  // One step of the KDA recurrence on one head. S [K, V] in place; q already scaled; g is the log
  // decay of each key channel; o [V].
  //   S <- diag(exp(g)) S;  u = beta (v - S^T k);  S <- S + k u^T;  o = S^T q
  // `scratch` holds K + V values.
  void (*kda_step)(float* S, const float* q, const float* k, const float* v, const float* g,
                   float beta, std::size_t K, std::size_t V, float* o, float* scratch);
};

// The table in use: the best that this processor can run, or the one that TRIAX_ISA names
// (scalar, avx2, avx512, avx512bf16, amx). A name that is unknown or cannot run here is an Error.
const KernelTable& kernels();
// Can this processor run it?
bool isa_available(Isa isa);
const KernelTable& kernel_table(Isa isa);
// By name, as TRIAX_ISA gives it; Error with the list of what runs here otherwise.
const KernelTable& kernel_table(std::string_view name);
// For tests and selftest: switches the table in use. Not while a step runs.
void use_isa(Isa isa);
std::string_view isa_name(Isa isa);

}  // namespace triax
