// The router: sigmoid scores, the top_k of score + bias, weights from the scores alone.
#include <algorithm>

#include "triax/kernels/kernels.h"
#include "triax/ops/moe.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

// The ids of the `top_k` largest key[e], ascending. Equal keys: the lower id, since ids come in
// ascending order and a later one must be strictly larger to pass an earlier one.
void choose(const float* score, Vec<const float> bias, std::size_t top_k, float* best,
            std::int32_t* ids) {
  std::size_t held = 0;  // best[0..held) in falling order
  for (std::size_t e = 0; e < bias.size(); ++e) {
    const float key = score[e] + bias[e];
    if (held == top_k && !(key > best[held - 1])) continue;
    std::size_t at = held == top_k ? held - 1 : held++;
    for (; at > 0 && key > best[at - 1]; --at) {
      best[at] = best[at - 1];
      ids[at] = ids[at - 1];
    }
    best[at] = key;
    ids[at] = static_cast<std::int32_t>(e);
  }
  std::sort(ids, ids + top_k);
}

void weigh(const float* score, const RouterRule& rule, const std::int32_t* ids, float* weights) {
  float sum = 0;
  for (std::size_t i = 0; i < rule.top_k; ++i) sum += score[ids[i]];
  const float divisor = rule.renormalize ? sum + 1e-20f : 1.0f;
  for (std::size_t i = 0; i < rule.top_k; ++i) weights[i] = score[ids[i]] / divisor * rule.factor;
}

}  // namespace

void route(Context& ctx, Mat<const float> logits, Vec<const float> bias, const RouterRule& rule,
           Mat<float> scores, Mat<std::int32_t> ids, Mat<float> weights) {
  const std::size_t T = logits.shape[0], E = logits.shape[1], k = rule.top_k;
  TRIAX_CHECK(bias.size() == E && k >= 1 && k <= E, "one bias an expert, top_k within the experts");
  TRIAX_CHECK(ids.shape[0] == T && ids.shape[1] == k && weights.shape == ids.shape, "[T, top_k]");
  TRIAX_CHECK(scores.data == nullptr || scores.shape == logits.shape, "scores is [T, E]");
  const Arena::Scope scope(ctx.arena);
  const Mat<float> score = scores.data != nullptr ? scores : ctx.arena.take_mat<float>(T, E);
  const Mat<float> best = ctx.arena.take_mat<float>(T, k);  // keys of the chosen, [T, top_k]
  for_row_blocks(ctx, T, E, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      kernels().sigmoid(logits[t].data, E, score[t].data);
      choose(score[t].data, bias, k, best[t].data, ids[t].data);
      weigh(score[t].data, rule, ids[t].data, weights[t].data);
    }
  });
}

std::vector<std::int32_t> experts_in_use(Mat<const std::int32_t> ids) {
  std::vector<std::int32_t> out;
  out.reserve(ids.size());
  for (std::size_t t = 0; t < ids.shape[0]; ++t)
    out.insert(out.end(), ids[t].begin(), ids[t].end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace triax::ops
