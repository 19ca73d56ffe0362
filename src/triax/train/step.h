// The whole model in training: packed documents in, loss and the gradient of every tensor out.
//
// Memory, in numbers a token (P = KDA heads * head_dim, W = expert width, L = latent width,
// k = experts a token, D = hidden). Kept by a layer until its gradient is done: the two running
// sums 2 D; KDA 8 P + P head_dim / 32 + head_dim + heads; MLA q_lora_rank + kv_lora_rank + rope +
// heads (nope + rope + 2 value); dense 2 * width; experts L + L + 2 k W + 2 * shared width +
// experts. Recomputed: depth mixes, norms, convolutions, decays, activations, attention
// probabilities, KDA states between every 32nd. Never there: outputs of single experts beyond their
// layer, logits of more than 256 rows. Beside that the gradient of the running sum and of each
// stored block, D each, and one module's temporaries. activation_numbers() adds this up.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "triax/core/context.h"
#include "triax/ops/backward/linear.h"
#include "triax/ops/backward/products.h"
#include "triax/ops/segments.h"
#include "triax/train/parameters.h"

namespace triax::train {

// Documents packed one after the other: they tile the rows and know nothing of each other (states,
// convolutions and attention begin anew). A batch has no padding.
struct TrainBatch {
  Vec<const std::int32_t> ids;      // [T]
  Vec<const std::int32_t> targets;  // [T], ops::kNoTarget where a row has no loss
  std::span<const Segment> documents;
  // [T], of each row's loss, any sign: -log p of a sampled token times its advantage is policy
  // gradient. Empty: all 1.
  Vec<const float> weights = {};
};

// What a step tells on the side.
template <class F>
struct StepWatch {
  // Once for each layer with experts, in the forward pass: scores [T, experts] without bias, the
  // chosen ids [T, top_k]. For quantile balancing and load.
  std::function<void(std::size_t layer, Mat<const F> scores, Mat<const std::int32_t> ids)> routed;
  // Raised to the largest scaled logit of each MLA head: [layers][heads], empty for KDA. Filled
  // with -infinity when it has another size. Only gradient passes look.
  std::vector<std::vector<F>> max_logits;
};

struct StepLoss {
  double sum = 0;           // nats, over rows with a target, each times its weight
  std::size_t counted = 0;  // those rows
  double mean() const { return counted == 0 ? 0 : sum / static_cast<double>(counted); }
};

struct StepOptions {
  // bf16: products with weights round both factors, in float32 training only; what exactly stands
  // in docs/math/training.md. The gradient is then that of float32 within 3 %.
  ops::Products products = ops::Products::f32;
};

// Adds scale * d(sum of losses) / d(tensor) to `gradients` for every tensor, in an order that does
// not depend on the number of threads. The router's bias gets nothing. With tied embeddings both
// uses add to the one tensor. losses [T], when not empty, receives each row's loss before weights.
template <class F>
StepLoss loss_and_gradient(Context& ctx, const Parameters<F>& weights, const TrainBatch& batch,
                           F scale, Parameters<F>& gradients, StepWatch<F>* watch = nullptr,
                           Vec<F> losses = {}, const StepOptions& options = {});

// The forward pass alone. In float32 it is inference's pass in f32 mode by the recurrent form of
// KDA and the expanded form of MLA, operation by operation: equal bit for bit. logits [T, vocab],
// when not empty, receives every row's logits.
template <class F>
StepLoss loss_only(Context& ctx, const Parameters<F>& weights, const TrainBatch& batch,
                   Vec<F> losses = {}, Mat<F> logits = {}, StepWatch<F>* watch = nullptr);

// Numbers kept at once by loss_and_gradient for T tokens in `documents` documents (what the comment
// above adds up, without one module's temporaries).
std::size_t activation_numbers(const K3Config& config, std::size_t tokens, std::size_t documents);

}  // namespace triax::train
