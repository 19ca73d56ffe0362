// Gated feed-forwards of one width: dense layers and the shared experts; spec: text model,
// section 5.
#include "triax/model/layer.h"
#include "triax/ops/elementwise.h"
#include "triax/ops/linear.h"

namespace triax {

void gated_mlp(Context& ctx, const K3Config& c, const MlpWeights& w, Mat<const float> x,
               Mat<float> out) {
  const Arena::Scope scope(ctx.arena);
  const std::size_t T = x.shape[0], width = w.gate_proj.rows;
  const Mat<float> gate = ctx.arena.take_mat<float>(T, width);
  const Mat<float> up = ctx.arena.take_mat<float>(T, width);
  const ops::LinearJob jobs[] = {{w.gate_proj, gate}, {w.up_proj, up}};
  ops::linear(ctx, x, jobs);
  const ops::Activation act{c.act_situ, c.activation_situ_beta, c.activation_situ_linear_beta};
  ops::activate(ctx, gate, up, act, gate);
  ops::linear(ctx, gate, w.down_proj, out);
}

void dense_mlp(Context& ctx, const Layer& layer, Mat<const float> x, Mat<float> out) {
  const ProfileScope profile(ctx.profile, Family::dense_mlp);
  gated_mlp(ctx, layer.config, layer.weights.mlp, x, out);
}

}  // namespace triax
