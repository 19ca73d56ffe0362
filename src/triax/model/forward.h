// The forward pass: token ids in, logits out, states moved on.
#pragma once

#include <span>

#include "triax/config/config.h"
#include "triax/core/context.h"
#include "triax/experts/expert_store.h"
#include "triax/model/batch.h"
#include "triax/weights/weights.h"

namespace triax {

// What a pass reads. All of it outlives the model.
struct Model {
  const K3Config& config;
  const K3Weights& weights;
  ExpertStore* experts = nullptr;  // nullptr for a model without routed experts
};

// Rows of logits that forward() will write for these entries.
std::size_t logit_row_count(std::span<const BatchEntry> entries);

// One pass over the new tokens of all entries; prefill pieces and decode rows may share it. Every
// state is moved on by its entry's ids. logits [logit_row_count(entries), vocab] float32, in the
// order of the entries. Throws Error before anything changed (an id outside the vocabulary, no
// memory for the cache). A sequence's result does not depend on what else is in the batch.
void forward(Context& ctx, const Model& model, std::span<const BatchEntry> entries,
             Mat<float> logits);

}  // namespace triax
