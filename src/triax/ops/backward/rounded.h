// Training's products with both factors rounded to BF16 (Products::bf16): forward, and both
// gradients, over the pool. Sums are float32, over k ascending in one chain; results do not depend
// on the number of threads. Gradients are added to what `dw` holds.
#pragma once

#include <cstdint>
#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/backward/moe.h"
#include "triax/ops/mla.h"
#include "triax/ops/segments.h"

namespace triax::ops {

// Several products with the same x [T, K]: y [T, N] = x w^T, w [N, K].
struct RoundedJob {
  Mat<const float> w;
  Mat<float> y;
};
void rounded_linear(Context& ctx, Mat<const float> x, std::span<const RoundedJob> jobs);

// Their gradients: dx (+)= sum over the jobs of dy w, in their order; each dw += dy^T x.
struct RoundedGradientJob {
  Mat<const float> w, dy;
  Mat<float> dw;
};
void rounded_linear_backward(Context& ctx, Mat<const float> x,
                             std::span<const RoundedGradientJob> jobs, Mat<float> dx,
                             bool accumulate);

// The activation in front of a rounded product: quicker than ops/elementwise.h's, its last digits
// are others.
void rounded_activate_row(const Activation& a, const float* gate, const float* up, std::size_t n,
                          float* y);
void rounded_activate(Context& ctx, Mat<const float> gate, Mat<const float> up, const Activation& a,
                      Mat<float> y);

// As experts_forward_keep() and experts_backward() of ops/backward/moe.h.
void rounded_experts_forward(Context& ctx, Mat<const float> z, const ExpertPairs& pairs,
                             Mat<const float> weights,
                             std::span<const ExpertMatrices<const float>> experts,
                             const Activation& activation, Mat<float> gate, Mat<float> up,
                             Mat<float> aggregate);
void rounded_experts_backward(Context& ctx, Mat<const float> z, const ExpertPairs& pairs,
                              Mat<const float> weights,
                              std::span<const ExpertMatrices<const float>> experts,
                              const Activation& activation, Mat<const float> gate,
                              Mat<const float> up, Mat<const float> dy, Mat<float> dz,
                              Mat<float> dweights,
                              std::span<const ExpertMatrices<float>> d_experts);

// Expanded MLA and its gradient, as mla_backward() of ops/backward/mla.h: keys, values, queries,
// probabilities and their gradients are rounded where they enter a product; softmax is float32.
void rounded_mla(Context& ctx, const MlaShape& shape, Mat<const float> q, Mat<const float> latent,
                 Mat<const float> kv_b, std::span<const Segment> segments, Mat<float> attended);
void rounded_mla_backward(Context& ctx, const MlaShape& shape, Mat<const float> q,
                          Mat<const float> latent, Mat<const float> kv_b,
                          std::span<const Segment> segments, Mat<const float> attended,
                          Mat<const float> d_attended, Mat<float> dq, Mat<float> dlatent,
                          Mat<float> dkv_b, Vec<float> max_logits);

// Logits x w^T, their cross-entropy and its gradients, as cross_entropy() of ops/backward/linear.h
// with the two gradients of the product behind it. x, dx [T, K] (dx written), w, dw [V, K]. The
// logits of 64 rows for each thread are there at once, and the rounded gradients of 1024.
void rounded_head(Context& ctx, Mat<const float> x, Mat<const float> w,
                  Vec<const std::int32_t> targets, float scale, Vec<float> losses, Mat<float> dx,
                  Mat<float> dw, Vec<const float> weights = {});

}  // namespace triax::ops
