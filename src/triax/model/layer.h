// What every module of a layer is given, and how it reports intermediate values.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "triax/config/config.h"
#include "triax/core/context.h"
#include "triax/experts/expert_store.h"
#include "triax/model/batch.h"
#include "triax/weights/weights.h"

namespace triax {

// One layer of the pass at hand.
struct Layer {
  const K3Config& config;
  const LayerWeights& weights;
  ExpertStore* experts;  // nullptr for a model without experts
  std::size_t index;     // from 0
  const Batch& batch;
};

// Reports under the golden files' names, "layer12.kda.g". Costs a branch when nobody listens.
template <std::size_t R>
void probe_value(Context& ctx, std::string_view name, const View<float, R>& value) {
  if (ctx.probe == nullptr || !ctx.probe->wants(name)) return;
  TRIAX_CHECK(value.dense());
  ctx.probe->value(name, std::span<const std::size_t>(value.shape), value.data);
}
template <std::size_t R>
void probe_value(Context& ctx, const Layer& layer, std::string_view name,
                 const View<float, R>& value) {
  if (ctx.probe == nullptr) return;
  probe_value(ctx, fmt::format("layer{}.{}", layer.index, name), value);
}

// The same rows, heads apart: [T, H*D] -> [T, H, D].
template <class T>
View<T, 3> split_heads(const Mat<T>& x, std::size_t heads) {
  return View<T, 3>(x.data, {x.shape[0], heads, x.shape[1] / heads}, x.stride);
}

// The modules. x [T, hidden] is the normed input, out [T, hidden] the module's output.
void kda_attention(Context& ctx, const Layer& layer, Mat<const float> x, Mat<float> out);
void mla_attention(Context& ctx, const Layer& layer, Mat<const float> x, Mat<float> out);
void dense_mlp(Context& ctx, const Layer& layer, Mat<const float> x, Mat<float> out);
void latent_moe(Context& ctx, const Layer& layer, Mat<const float> x, Mat<float> out);
// down(act(gate x, up x)) of one width: the dense layer and the shared experts.
void gated_mlp(Context& ctx, const K3Config& config, const MlpWeights& w, Mat<const float> x,
               Mat<float> out);

}  // namespace triax
