// Stable LatentMoE of one layer: a sigmoid router on the full width, experts in a latent space;
// spec: text model, section 5.
#include <vector>

#include "triax/model/layer.h"
#include "triax/ops/elementwise.h"
#include "triax/ops/linear.h"
#include "triax/ops/moe.h"

namespace triax {
namespace {

struct Routing {
  Mat<std::int32_t> ids;  // [T, top_k], ascending
  Mat<float> weights;     // [T, top_k]
};

// The router sees x, never z.
Routing choose(Context& ctx, const Layer& layer, Mat<const float> x) {
  const ProfileScope profile(ctx.profile, Family::router);
  const K3Config& c = layer.config;
  const MoeWeights& w = layer.weights.moe;
  const std::size_t T = x.shape[0], k = c.num_experts_per_token;
  const Mat<float> logits = ctx.arena.take_mat<float>(T, c.num_experts);
  const Mat<float> scores = ctx.arena.take_mat<float>(T, c.num_experts);
  ops::linear_f32(ctx, x, w.gate, logits);
  Routing out{ctx.arena.take_mat<std::int32_t>(T, k), ctx.arena.take_mat<float>(T, k)};
  const ops::RouterRule rule{k, c.moe_renormalize, c.routed_scaling_factor};
  ops::route(ctx, logits, w.e_score_correction_bias, rule, scores, out.ids, out.weights);
  probe_value(ctx, layer, "moe.logits", logits);
  probe_value(ctx, layer, "moe.scores", scores);
  probe_value(ctx, layer, "moe.weights", out.weights);
  if (ctx.probe != nullptr) {
    ctx.probe->ids(fmt::format("layer{}.moe.ids", layer.index), out.ids.shape, out.ids.data);
  }
  return out;
}

// The chosen experts' weights, leased from their store while the products run.
void run_experts(Context& ctx, const Layer& layer, const Routing& routing, Mat<const float> z,
                 Mat<float> aggregate) {
  const ProfileScope profile(ctx.profile, Family::routed_experts);
  const K3Config& c = layer.config;
  const std::vector<std::int32_t> used = ops::experts_in_use(routing.ids);
  std::vector<ExpertView> views(used.size());
  const ExpertLease lease = layer.experts->acquire(layer.index, used, views);
  const ops::Activation act{c.act_situ, c.activation_situ_beta, c.activation_situ_linear_beta};
  ops::routed_experts(ctx, z, routing.ids, routing.weights, used, views, act, aggregate);
}

}  // namespace

void latent_moe(Context& ctx, const Layer& layer, Mat<const float> x, Mat<float> out) {
  const Arena::Scope scope(ctx.arena);
  const K3Config& c = layer.config;
  const MoeWeights& w = layer.weights.moe;
  const std::size_t T = x.shape[0], L = c.routed_expert_hidden_size;

  const ProfileScope profile(ctx.profile, Family::latent);
  const Routing routing = choose(ctx, layer, x);
  Mat<const float> z = x;  // [T, latent]
  if (c.has_latent) {
    const Mat<float> latent = ctx.arena.take_mat<float>(T, L);
    ops::linear(ctx, x, w.routed_expert_down_proj, latent);
    probe_value(ctx, layer, "moe.latent", latent);
    z = latent;
  }

  // Without a latent space the aggregate is the routed output itself.
  const Mat<float> aggregate = c.has_latent ? ctx.arena.take_mat<float>(T, L) : out;
  run_experts(ctx, layer, routing, z, aggregate);
  probe_value(ctx, layer, "moe.aggregate", aggregate);

  if (c.has_latent) {
    if (c.latent_moe_use_norm) {
      ops::rms_norm(ctx, aggregate, w.routed_expert_norm, c.rms_norm_eps, aggregate);
      probe_value(ctx, layer, "moe.normed", aggregate);
    }
    ops::linear(ctx, aggregate, w.routed_expert_up_proj, out);
  }
  probe_value(ctx, layer, "moe.routed", out);

  if (c.num_shared_experts > 0) {
    const Mat<float> shared = ctx.arena.take_mat<float>(T, c.hidden_size);
    const ProfileScope sharing(ctx.profile, Family::shared_experts);
    gated_mlp(ctx, c, w.shared_experts, x, shared);
    probe_value(ctx, layer, "moe.shared", shared);
    ops::add(ctx, out, shared, out);
  }
  probe_value(ctx, layer, "moe.out", out);
}

}  // namespace triax
