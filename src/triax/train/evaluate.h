// Evaluation during training: held-out loss, loss by position, recall by distance, depth weights.
#pragma once

#include <span>

#include "triax/core/context.h"
#include "triax/train/documents.h"
#include "triax/train/records.h"
#include "triax/train/step.h"

namespace triax::train {

struct EvaluationPlan {
  std::size_t tokens = 65536;    // rows of each held-out source, and of each of the other parts
  std::size_t context = 512;     // longest sequence: twice the context of the last stage
  std::size_t pass_rows = 4096;  // of a pass, at most (but a whole sequence)
  std::uint64_t seed = 1;
};

// Held-out loss: the first documents of each source, cut at `context`, mean over their targets.
// Loss by position: documents joined one after the other (no fresh state between them) to
// sequences of `context` rows; the mean loss of positions [2^n, 2^(n+1)). It shows whether a model
// holds beyond the lengths it was trained on.
// Recall by distance: 16 tokens of a held-out text, other text of so many tokens, the same 16
// tokens again; the mean probability of tokens 5 to 16 at their second occurrence, and at their
// first.
// Depth: for each site of Attention Residuals the mean softmax weight of each source.
EvaluationRecord evaluate(Context& ctx, const Parameters<float>& weights,
                          std::span<const DocumentSet> held_out, const EvaluationPlan& plan);

// Mean weights of every site over the rows of a batch.
std::vector<DepthSite> depth_weights(Context& ctx, const Parameters<float>& weights,
                                     const TrainBatch& batch);

}  // namespace triax::train
