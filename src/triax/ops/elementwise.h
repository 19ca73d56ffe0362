// Row-wise operations: norms, activations, gates, sums. Every one is float32 in both number modes.
#pragma once

#include "triax/core/context.h"
#include "triax/core/view.h"

namespace triax::ops {

// y = x * rsqrt(mean(x^2) + eps) * w, row by row. x, y [T, N]; w [N].
void rms_norm(Context& ctx, Mat<const float> x, Vec<const float> w, float eps, Mat<float> y);

// KDA read-out: per head of D = w.size(): rms_norm(o) * w * sigmoid(gate). o, gate, y [T, H*D].
void rms_norm_gated(Context& ctx, Mat<const float> o, Vec<const float> w, Mat<const float> gate,
                    float eps, Mat<float> y);

// Per head of D columns: x / sqrt(sum(x^2) + eps). x, y [T, H*D].
void l2_norm(Context& ctx, Mat<const float> x, std::size_t D, float eps, Mat<float> y);

void add(Context& ctx, Mat<const float> a, Mat<const float> b, Mat<float> y);
void sigmoid(Context& ctx, Mat<const float> x, Mat<float> y);
void mul_sigmoid(Context& ctx, Mat<const float> x, Mat<const float> gate, Mat<float> y);
// Rounds to BF16 and back in bf16 mode; leaves x alone in f32 mode.
void round_in_bf16_mode(Context& ctx, Mat<float> x);

// The gated activation of every feed-forward.
struct Activation {
  bool situ = true;           // false: SwiGLU
  float beta = 4.0f;          // activation_situ_beta
  float linear_beta = 25.0f;  // activation_situ_linear_beta; 0: not capped
};
void activate(Context& ctx, Mat<const float> gate, Mat<const float> up, const Activation& a,
              Mat<float> y);
// The same for n elements on the calling thread: for ops that apply it inside an item of theirs.
void activate_row(const Activation& a, const float* gate, const float* up, std::size_t n, float* y);

// KDA log decay. raw, g [T, H*K]; A [H] = exp(A_log); dt_bias [H*K].
// bounded: lower_bound * sigmoid(A (raw + dt_bias)); otherwise -A softplus(raw + dt_bias).
void kda_gate(Context& ctx, Mat<const float> raw, Vec<const float> A, Vec<const float> dt_bias,
              bool bounded, float lower_bound, Mat<float> g);

}  // namespace triax::ops
