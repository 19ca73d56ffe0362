// The stack, top to bottom; spec: text model, section 2. One token stream: everything here is per
// row but the convolutions, the KDA states and MLA, which know their sequence.
#include "triax/model/forward.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "triax/model/layer.h"
#include "triax/ops/attn_res.h"
#include "triax/ops/elementwise.h"
#include "triax/ops/linear.h"

namespace triax {
namespace {

// The running sum and the earlier sums that the depth mixes choose from.
struct Residual {
  Mat<float> s;                          // [T, hidden], the running sum
  std::vector<Mat<const float>> blocks;  // each [T, hidden], never written again once stored

  std::vector<Mat<const float>> sources() const {  // the running sum last
    std::vector<Mat<const float>> out = blocks;
    out.push_back(s);
    return out;
  }
};

// A mix over depth at one site of a layer; `site` is "attn_mix" or "mlp_mix".
void mix(Context& ctx, const Layer& layer, std::string_view site, const Residual& residual,
         const DepthMixWeights& w, Mat<float> x) {
  const ProfileScope profile(ctx.profile, Family::depth_mix);
  const Arena::Scope scope(ctx.arena);
  const auto sources = residual.sources();
  Mat<float> probs, scores;
  if (ctx.probe != nullptr) {
    probs = ctx.arena.take_mat<float>(x.shape[0], sources.size());
    scores = ctx.arena.take_mat<float>(x.shape[0], sources.size());
  }
  ops::depth_mix(ctx, sources, w.w, layer.config.rms_norm_eps, x, probs, scores);
  if (ctx.probe != nullptr) {
    probe_value(ctx, layer, site, x);
    probe_value(ctx, layer, fmt::format("{}.probs", site), probs);
    probe_value(ctx, layer, fmt::format("{}.scores", site), scores);
  }
}

// mix -> store at a block's start -> norm -> attention -> add
void attention_half(Context& ctx, const Layer& layer, Residual& residual, Mat<float> x) {
  const ProfileScope profile(ctx.profile, Family::norms);
  const K3Config& c = layer.config;
  const LayerWeights& w = layer.weights;
  const bool opens_block = c.opens_block(layer.index);
  Mat<const float> normed_from = residual.s;
  if (!residual.blocks.empty()) {
    mix(ctx, layer, "attn_mix", residual, w.self_attention_res, x);
    normed_from = x;
  }
  if (opens_block) {  // the raw running sum is stored, after the mix above looked at the old ones
    probe_value(ctx, fmt::format("block{}", residual.blocks.size()), residual.s);
    residual.blocks.push_back(residual.s);
    residual.s = ctx.arena.take_mat<float>(x.shape[0], c.hidden_size);
  }
  ops::rms_norm(ctx, normed_from, w.input_layernorm, c.rms_norm_eps, x);
  probe_value(ctx, layer, "attn_in", x);

  const Arena::Scope scope(ctx.arena);
  // At a block's start the old sum is dropped: the attention's output is the new sum.
  const Mat<float> a =
      opens_block ? residual.s : ctx.arena.take_mat<float>(x.shape[0], c.hidden_size);
  if (w.kind == LayerKind::kda) {
    kda_attention(ctx, layer, x, a);
  } else {
    mla_attention(ctx, layer, x, a);
  }
  if (!opens_block) ops::add(ctx, residual.s, a, residual.s);
  probe_value(ctx, layer, "after_attn", residual.s);
}

// mix -> norm -> feed-forward -> add
void ffn_half(Context& ctx, const Layer& layer, Residual& residual, Mat<float> x) {
  const ProfileScope profile(ctx.profile, Family::norms);
  const Arena::Scope scope(ctx.arena);
  const K3Config& c = layer.config;
  const LayerWeights& w = layer.weights;
  Mat<const float> normed_from = residual.s;
  if (!residual.blocks.empty()) {
    mix(ctx, layer, "mlp_mix", residual, w.mlp_res, x);
    normed_from = x;
  }
  ops::rms_norm(ctx, normed_from, w.post_attention_layernorm, c.rms_norm_eps, x);
  probe_value(ctx, layer, "mlp_in", x);

  const Mat<float> y = ctx.arena.take_mat<float>(x.shape[0], c.hidden_size);
  if (w.ffn == Ffn::dense) {
    dense_mlp(ctx, layer, x, y);
  } else {
    latent_moe(ctx, layer, x, y);
  }
  ops::add(ctx, residual.s, y, residual.s);
  probe_value(ctx, layer, "out", residual.s);
}

// The chosen rows of x, packed; x itself when all are chosen.
Mat<const float> gather(Context& ctx, Mat<const float> x, const std::vector<std::size_t>& rows) {
  if (rows.size() == x.shape[0]) return x;
  const Mat<float> out = ctx.arena.take_mat<float>(rows.size(), x.shape[1]);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(out[i].data, x[rows[i]].data, x.shape[1] * sizeof(float));
  }
  return out;
}

// Output mix, final norm and head, for the rows that want logits.
void head(Context& ctx, const Model& model, const Residual& residual, const Batch& batch,
          Mat<float> logits) {
  const std::vector<std::size_t>& rows = batch.logit_rows;
  if (rows.empty()) return;
  const ProfileScope profile(ctx.profile, Family::lm_head);
  const Arena::Scope scope(ctx.arena);
  const K3Config& c = model.config;
  std::vector<Mat<const float>> sources;
  for (const Mat<const float>& v : residual.sources()) sources.push_back(gather(ctx, v, rows));

  const Mat<float> x = ctx.arena.take_mat<float>(rows.size(), c.hidden_size);
  Mat<const float> normed_from = sources.back();
  if (c.uses_attn_res()) {
    const ProfileScope mixing(ctx.profile, Family::depth_mix);
    const Mat<float> probs = ctx.arena.take_mat<float>(rows.size(), sources.size());
    ops::depth_mix(ctx, sources, model.weights.output_attn_res.w, c.rms_norm_eps, x, probs);
    probe_value(ctx, "output_mix", x);
    probe_value(ctx, "output_mix.probs", probs);
    normed_from = x;
  }
  ops::rms_norm(ctx, normed_from, model.weights.norm, c.rms_norm_eps, x);
  probe_value(ctx, "final_hidden", x);

  ops::linear(ctx, x, model.weights.lm_head, logits);
  probe_value(ctx, "logits", logits);
}

void check_entries(const Model& model, std::span<const BatchEntry> entries, const Context& ctx) {
  for (const BatchEntry& e : entries) {
    TRIAX_CHECK(e.state->precision() == ctx.precision, "state and pass are of one number mode");
    for (std::size_t i = 0; i < e.ids.size(); ++i) {
      if (e.ids[i] < 0 || static_cast<std::size_t>(e.ids[i]) >= model.config.vocab_size) {
        fail("token id {} at position {} is outside the vocabulary (0..{})", e.ids[i],
             e.state->tokens() + i, model.config.vocab_size - 1);
      }
    }
  }
}

}  // namespace

std::size_t logit_row_count(std::span<const BatchEntry> entries) {
  std::size_t n = 0;
  for (const BatchEntry& e : entries) {
    n += e.logits == LogitRows::all ? e.ids.size() : e.logits == LogitRows::last ? 1u : 0u;
  }
  return n;
}

void forward(Context& ctx, const Model& model, std::span<const BatchEntry> entries,
             Mat<float> logits) {
  if (entries.empty()) return;
  const K3Config& c = model.config;
  const Batch batch(entries);
  TRIAX_CHECK(batch.logit_rows.empty() ||
              (logits.shape[0] == batch.logit_rows.size() && logits.shape[1] == c.vocab_size));
  check_entries(model, entries, ctx);
  for (const BatchEntry& e : entries) e.state->prepare(e.ids.size());

  const Arena::Scope scope(ctx.arena);
  const std::size_t T = batch.rows();
  Residual residual{ctx.arena.take_mat<float>(T, c.hidden_size), {}};
  const Mat<float> x = ctx.arena.take_mat<float>(T, c.hidden_size);
  {
    const ProfileScope profile(ctx.profile, Family::embedding);
    ops::embed(ctx, model.weights.embed_tokens, batch.ids, residual.s);  // no scaling
  }

  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) {
    const Layer layer{c, model.weights.layers[l], model.experts, l, batch};
    attention_half(ctx, layer, residual, x);
    ffn_half(ctx, layer, residual, x);
  }
  head(ctx, model, residual, batch, logits);

  for (const BatchEntry& e : entries) e.state->commit(e.ids);
}

}  // namespace triax
