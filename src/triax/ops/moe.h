// Routing and the routed experts of a latent mixture.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "triax/core/context.h"
#include "triax/core/matrix.h"
#include "triax/core/view.h"
#include "triax/ops/elementwise.h"

namespace triax::ops {

struct RouterRule {
  std::size_t top_k = 0;
  bool renormalize = true;
  float factor = 1.0f;  // routed_scaling_factor
};

// score = sigmoid(logits); the top_k largest score + bias are chosen (equal: the lower id), bias
// used for the choice only; weight = score, over the sum of the chosen + 1e-20 when renormalised,
// times the factor. logits, scores [T, E] (scores may be empty); ids [T, top_k] ascending; weights
// [T, top_k] in the same order.
void route(Context& ctx, Mat<const float> logits, Vec<const float> bias, const RouterRule& rule,
           Mat<float> scores, Mat<std::int32_t> ids, Mat<float> weights);

// aggregate[t] = sum over t's experts, in ascending order of id, of weight * w2(act(w1 z, w3 z)).
// z, aggregate [T, latent]. `experts` lists the experts in use in ascending order of id, `views`
// their weights. Tokens are grouped by expert; one flat work list over (expert, rows) for each of
// the two stages. In bf16 mode z and the activation's output are rounded to BF16.
void routed_experts(Context& ctx, Mat<const float> z, Mat<const std::int32_t> ids,
                    Mat<const float> weights, std::span<const std::int32_t> experts,
                    std::span<const ExpertView> views, const Activation& activation,
                    Mat<float> aggregate);

// The distinct ids, ascending.
std::vector<std::int32_t> experts_in_use(Mat<const std::int32_t> ids);

}  // namespace triax::ops
