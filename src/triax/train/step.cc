// The stack in training, top to bottom and back; model/forward.cc has the same forward pass.
#include "triax/train/step.h"

#include <algorithm>
#include <variant>

#include "triax/ops/backward/attn_res.h"
#include "triax/ops/backward/kda.h"
#include "triax/ops/backward/pointwise.h"
#include "triax/ops/backward/rounded.h"
#include "triax/train/forward_ops.h"
#include "triax/train/layers.h"

namespace triax::train {

template <class F>
void Pass<F>::linear(Mat<const F> x, std::initializer_list<Linear> jobs) const {
  if constexpr (std::is_same_v<F, float>) {
    if (rounds()) {
      std::vector<ops::RoundedJob> rounded;
      for (const Linear& job : jobs) rounded.push_back({weights.matrix(job.name), job.y});
      ops::rounded_linear(ctx, x, rounded);
      return;
    }
  }
  for (const Linear& job : jobs) Forward<F>::linear(ctx, x, weights.matrix(job.name), job.y);
}

template <class F>
void Pass<F>::linear_backward(Mat<const F> x, std::initializer_list<LinearGradient> jobs, Mat<F> dx,
                              bool accumulate) const {
  if constexpr (std::is_same_v<F, float>) {
    if (rounds()) {
      std::vector<ops::RoundedGradientJob> rounded;
      for (const LinearGradient& job : jobs) {
        rounded.push_back({weights.matrix(job.name), job.dy, gradients->matrix(job.name)});
      }
      ops::rounded_linear_backward(ctx, x, rounded, dx, accumulate);
      return;
    }
  }
  for (const LinearGradient& job : jobs) {
    ops::linear_input_gradient<F>(ctx, job.dy, weights.matrix(job.name), dx, accumulate);
    ops::linear_weight_gradient<F>(ctx, x, job.dy, gradients->matrix(job.name));
    accumulate = true;
  }
}

template <class F>
Mat<F> Pass<F>::linear_backward_first(Mat<const F> x, const MatrixView& name,
                                      Mat<const F> dy) const {
  const Mat<F> dx = take(weights.matrix(name).shape[1]);
  linear_backward(x, {{name, dy}}, dx, false);
  return dx;
}

template struct Pass<float>;
template struct Pass<double>;

namespace {

constexpr std::size_t kHeadRows = 256;  // rows whose logits are there at once

// The two sites of a layer where a mix over depth and a norm make a module's input.
template <class F>
struct Site {
  const DepthMixWeights& mix;
  const std::vector<float>& norm;
};

// To whoever watches, under the names of the inference pass: "layer3.after_attn", "layer3.out".
template <class F>
void report(const Context& ctx, std::size_t layer, std::string_view what, Mat<F> x) {
  if constexpr (std::is_same_v<F, float>) {
    if (ctx.probe == nullptr) return;
    const std::string name = fmt::format("layer{}.{}", layer, what);
    if (ctx.probe->wants(name)) ctx.probe->value(name, x.shape, x.data);
  }
}

// The running sum's gradient and those of the stored blocks, all [T, hidden].
template <class F>
struct ResidualGradient {
  Mat<F> s;
  std::vector<Mat<F>> blocks;
};

template <class F>
struct LayerKept {
  Mat<F> s_in, s_mid;      // the running sum before each site
  std::size_t blocks = 0;  // stored before the attention's site
  std::variant<KdaKept<F>, MlaKept<F>> attention;
  std::variant<MlpKept<F>, MoeKept<F>> ffn;
};

template <class F>
class Stack {
 public:
  Stack(const Pass<F>& pass, const TrainBatch& batch) : pass_(pass), batch_(batch) {}

  void forward() {
    const K3Config& c = pass_.config;
    Mat<F> s = pass_.take(c.hidden_size);
    x_ = pass_.take(c.hidden_size);
    {
      const ProfileScope profile(pass_.ctx.profile, Family::embedding);
      Forward<F>::embed(pass_.ctx, pass_.weights.matrix(pass_.names.embed_tokens), batch_.ids, s);
    }
    for (std::size_t l = 0; l < c.num_hidden_layers; ++l) s = layer_forward(l, s);
    last_ = s;
  }

  // Output mix, final norm, head and loss, block of rows by block of rows; with gradients the way
  // back down to the running sum as well.
  StepLoss head(F scale, Vec<F> losses, Mat<F> logits);

  void backward() {
    const K3Config& c = pass_.config;
    for (std::size_t l = c.num_hidden_layers; l-- > 0;) layer_backward(l);
    const ProfileScope profile(pass_.ctx.profile, Family::embedding);
    ops::embed_backward<F>(pass_.ctx, batch_.ids, d_.s,
                           pass_.gradients->matrix(pass_.names.embed_tokens));
  }

 private:
  Mat<F> layer_forward(std::size_t l, Mat<F> s);
  void layer_backward(std::size_t l);

  // The mixed running sum, or the sum itself when there is nothing to mix.
  bool mixes(std::size_t blocks) const { return pass_.config.uses_attn_res() && blocks > 0; }
  std::vector<Mat<const F>> sources(std::size_t blocks, Mat<const F> s) const {
    std::vector<Mat<const F>> out(blocks_.begin(),
                                  blocks_.begin() + static_cast<std::ptrdiff_t>(blocks));
    out.push_back(s);
    return out;
  }
  std::span<F> mix_vector(const DepthMixWeights& mix) const {
    const Vec<const F> norm = pass_.weights.vector(mix.norm), proj = pass_.weights.vector(mix.proj);
    const std::span<F> w = pass_.ctx.arena.template take<F>(norm.size());
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = norm[i] * proj[i];
    return w;
  }
  Mat<const F> mixed(const Site<F>& site, std::size_t blocks, Mat<F> s) const {
    if (!mixes(blocks)) return s;
    const ProfileScope profile(pass_.ctx.profile, Family::depth_mix);
    const Mat<F> out = pass_.take(s.shape[1]);
    Forward<F>::depth_mix(pass_.ctx, sources(blocks, s), mix_vector(site.mix),
                          pass_.config.rms_norm_eps, out);
    return out;
  }
  Mat<F> normed(const Site<F>& site, Mat<const F> x, Mat<F> out) const {
    const ProfileScope profile(pass_.ctx.profile, Family::norms);
    Forward<F>::rms_norm(pass_.ctx, x, pass_.weights.vector(site.norm), pass_.config.rms_norm_eps,
                         out);
    return out;
  }
  // A module's input; nothing of it is kept.
  void site_forward(const Site<F>& site, std::size_t blocks, Mat<F> s, Mat<F> x) const {
    const Arena::Scope scope(pass_.ctx.arena);
    normed(site, mixed(site, blocks, s), x);
  }
  // From the gradient of a module's normed input to those of the running sum (added to d_.s) and of
  // the first `blocks` stored blocks.
  void site_backward(const Site<F>& site, std::size_t blocks, Mat<F> s, Mat<const F> x,
                     Mat<F> dnormed);

  const Pass<F>& pass_;
  const TrainBatch& batch_;
  std::vector<LayerKept<F>> kept_;
  std::vector<Mat<F>> blocks_;
  Mat<F> x_;     // [T, hidden], the forward pass's module input
  Mat<F> last_;  // the running sum behind the last layer
  ResidualGradient<F> d_;
};

template <class F>
Mat<F> Stack<F>::layer_forward(std::size_t l, Mat<F> s) {
  const K3Config& c = pass_.config;
  const LayerWeights& names = pass_.names.layers[l];
  const std::size_t hidden = c.hidden_size;
  LayerKept<F> kept;
  kept.s_in = s;
  kept.s_mid = pass_.take(hidden);
  const Mat<F> s_out = pass_.take(hidden);
  kept.blocks = blocks_.size();
  const bool opens = c.opens_block(l);

  const Mat<F> x = x_;
  site_forward({names.self_attention_res, names.input_layernorm}, kept.blocks, s, x);
  if (opens) blocks_.push_back(s);  // the raw running sum, after the mix looked at the old ones
  // At a block's start the old sum is dropped: the attention's output is the new sum.
  if (c.is_kda(l)) {
    kept.attention = kda_forward(pass_, l, Mat<const F>(x), kept.s_mid);
  } else {
    kept.attention = mla_forward(pass_, l, Mat<const F>(x), kept.s_mid);
  }
  if (!opens) Forward<F>::add(pass_.ctx, s, kept.s_mid, kept.s_mid);
  report(pass_.ctx, l, "after_attn", kept.s_mid);

  site_forward({names.mlp_res, names.post_attention_layernorm}, blocks_.size(), kept.s_mid, x);
  if (c.ffn(l) == Ffn::dense) {
    const ProfileScope profile(pass_.ctx.profile, Family::dense_mlp);
    const MlpKept<F> mlp = take_mlp(pass_, names.mlp);
    mlp_forward(pass_, names.mlp, Mat<const F>(x), mlp, s_out);
    kept.ffn = mlp;
  } else {
    kept.ffn = moe_forward(pass_, l, Mat<const F>(x), s_out);
  }
  Forward<F>::add(pass_.ctx, kept.s_mid, s_out, s_out);
  report(pass_.ctx, l, "out", s_out);
  kept_.push_back(kept);
  return s_out;
}

template <class F>
void Stack<F>::site_backward(const Site<F>& site, std::size_t blocks, Mat<F> s, Mat<const F> x,
                             Mat<F> dnormed) {
  Parameters<F>& grad = *pass_.gradients;
  const F eps = pass_.config.rms_norm_eps;
  const bool mix = mixes(blocks);
  const ProfileScope norms(pass_.ctx.profile, Family::norms);
  ops::rms_norm_backward<F>(pass_.ctx, x, pass_.weights.vector(site.norm), eps, dnormed,
                            mix ? dnormed : d_.s, !mix, grad.vector(site.norm));
  if (!mix) return;
  const ProfileScope mixing(pass_.ctx.profile, Family::depth_mix);
  std::vector<Mat<F>> to(d_.blocks.begin(),
                         d_.blocks.begin() + static_cast<std::ptrdiff_t>(blocks));
  to.push_back(d_.s);
  const std::span<F> dw = pass_.ctx.arena.template take<F>(s.shape[1]);
  std::fill(dw.begin(), dw.end(), F{0});
  ops::depth_mix_backward<F>(pass_.ctx, sources(blocks, s), Vec<const F>(mix_vector(site.mix)), eps,
                             dnormed, to, dw);
  const Vec<const F> norm = pass_.weights.vector(site.mix.norm);
  const Vec<const F> proj = pass_.weights.vector(site.mix.proj);
  const Vec<F> dnorm = grad.vector(site.mix.norm), dproj = grad.vector(site.mix.proj);
  for (std::size_t i = 0; i < dw.size(); ++i) {
    dnorm[i] += dw[i] * proj[i];
    dproj[i] += dw[i] * norm[i];
  }
}

template <class F>
void Stack<F>::layer_backward(std::size_t l) {
  const Arena::Scope scope(pass_.ctx.arena);
  const K3Config& c = pass_.config;
  const LayerWeights& names = pass_.names.layers[l];
  const LayerKept<F>& kept = kept_[l];
  const bool opens = c.opens_block(l);
  const std::size_t stored = kept.blocks + (opens ? 1 : 0);
  const Mat<F> dx = pass_.take(c.hidden_size);
  {  // s_out = s_mid + ffn(norm(mix(s_mid)))
    const Arena::Scope half(pass_.ctx.arena);
    const Site<F> site{names.mlp_res, names.post_attention_layernorm};
    const Mat<const F> in = mixed(site, stored, kept.s_mid);
    const Mat<F> x = normed(site, in, pass_.take(c.hidden_size));
    fill_zero(pass_.ctx, dx);
    if (c.ffn(l) == Ffn::dense) {
      const ProfileScope profile(pass_.ctx.profile, Family::dense_mlp);
      mlp_backward(pass_, names.mlp, Mat<const F>(x), std::get<MlpKept<F>>(kept.ffn),
                   Mat<const F>(d_.s), dx);
    } else {
      moe_backward(pass_, l, Mat<const F>(x), std::get<MoeKept<F>>(kept.ffn), Mat<const F>(d_.s),
                   dx);
    }
    site_backward(site, stored, kept.s_mid, in, dx);
  }
  // s_mid = s_in + attention(norm(mix(s_in))), without s_in at a block's start
  const Arena::Scope half(pass_.ctx.arena);
  const Site<F> site{names.self_attention_res, names.input_layernorm};
  const Mat<const F> in = mixed(site, kept.blocks, kept.s_in);
  const Mat<F> x = normed(site, in, pass_.take(c.hidden_size));
  fill_zero(pass_.ctx, dx);
  if (c.is_kda(l)) {
    kda_backward(pass_, l, Mat<const F>(x), std::get<KdaKept<F>>(kept.attention),
                 Mat<const F>(d_.s), dx);
  } else {
    mla_backward(pass_, l, Mat<const F>(x), std::get<MlaKept<F>>(kept.attention),
                 Mat<const F>(d_.s), dx);
  }
  // A running sum that was stored has three ways back: as a block to every later site (collected
  // until here), into this layer's mix (below), and none through the sum, which was reset.
  if (opens) d_.s = d_.blocks[kept.blocks];
  site_backward(site, kept.blocks, kept.s_in, in, dx);
}

template <class F>
StepLoss Stack<F>::head(F scale, Vec<F> losses, Mat<F> logits) {
  Context& ctx = pass_.ctx;
  const ProfileScope profile(ctx.profile, Family::lm_head);
  const K3Config& c = pass_.config;
  const std::size_t T = pass_.rows;
  const bool gradients = pass_.gradients != nullptr;
  if (gradients) {
    d_.s = pass_.take(c.hidden_size);
    fill_zero(pass_.ctx, d_.s);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      d_.blocks.push_back(pass_.take(c.hidden_size));
      fill_zero(pass_.ctx, d_.blocks.back());
    }
  }
  const Arena::Scope scope(ctx.arena);
  const Site<F> site{pass_.names.output_attn_res, pass_.names.norm};
  const Mat<const F> in = mixed(site, blocks_.size(), last_);
  const Mat<F> x = normed(site, in, pass_.take(c.hidden_size));
  const Mat<F> dx = gradients ? pass_.take(c.hidden_size) : Mat<F>{};
  const MatrixView& name = c.tie_word_embeddings ? pass_.names.embed_tokens : pass_.names.lm_head;
  const Mat<const F> w = pass_.weights.matrix(name);
  const std::span<F> own = ctx.arena.template take<F>(T);
  const Vec<F> row_losses = losses.data != nullptr ? losses : Vec<F>(own);
  const bool rounded = gradients && pass_.rounds(), weighted = batch_.weights.data != nullptr;
  if constexpr (std::is_same_v<F, float>) {
    if (rounded) {
      ops::rounded_head(ctx, x, w, batch_.targets, scale, row_losses, dx,
                        pass_.gradients->matrix(name), batch_.weights);
    }
  }
  for (std::size_t t = rounded ? T : 0; t < T; t += kHeadRows) {
    const Arena::Scope block(ctx.arena);
    const std::size_t end = std::min(T, t + kHeadRows);
    const Mat<F> rows = ctx.arena.template take_mat<F>(end - t, c.vocab_size);
    Forward<F>::linear(ctx, x.slice(t, end), w, rows);
    for (std::size_t i = t; logits.data != nullptr && i < end; ++i) {
      std::copy_n(rows[i - t].data, c.vocab_size, logits[i].data);
    }
    ops::cross_entropy<F>(ctx, rows, batch_.targets.slice(t, end), scale, row_losses.slice(t, end),
                          weighted ? batch_.weights.slice(t, end) : Vec<const float>{});
    if (!gradients) continue;
    ops::linear_input_gradient<F>(ctx, rows, w, dx.slice(t, end), false);
    ops::linear_weight_gradient<F>(ctx, x.slice(t, end), rows, pass_.gradients->matrix(name));
  }
  StepLoss out;
  for (std::size_t t = 0; t < T; ++t) {
    if (batch_.targets[t] == ops::kNoTarget) continue;
    const double weight = weighted ? static_cast<double>(batch_.weights[t]) : 1;
    out.sum += weight * static_cast<double>(row_losses[t]);
    ++out.counted;
  }
  if (gradients) site_backward(site, blocks_.size(), last_, in, dx);
  return out;
}

template <class F>
StepLoss run(Context& ctx, const Parameters<F>& weights, const TrainBatch& batch, F scale,
             Parameters<F>* gradients, StepWatch<F>* watch, Vec<F> losses, Mat<F> logits,
             const StepOptions& options) {
  const ParameterLayout& layout = weights.layout();
  const K3Config& c = layout.config();
  const std::size_t T = batch.ids.size();
  TRIAX_CHECK(batch.targets.size() == T, "a target, or kNoTarget, for each row");
  TRIAX_CHECK(losses.data == nullptr || losses.size() == T);
  TRIAX_CHECK(batch.weights.data == nullptr || batch.weights.size() == T);
  TRIAX_CHECK(ctx.precision == Precision::f32, "training computes in float32");
  std::size_t next = 0;
  for (const Segment& s : batch.documents) {
    TRIAX_CHECK(s.begin == next && s.rows > 0, "documents tile the rows");
    next += s.rows;
  }
  TRIAX_CHECK(next == T, "documents tile the rows");
  if (T == 0) return {};
  if (watch != nullptr && gradients != nullptr) {
    watch->max_logits.resize(c.num_hidden_layers);
    for (std::size_t l = 0; l < c.num_hidden_layers; ++l) {
      const std::size_t heads = c.is_kda(l) ? 0 : c.num_attention_heads;
      if (watch->max_logits[l].size() == heads) continue;
      watch->max_logits[l].assign(heads, -std::numeric_limits<F>::infinity());
    }
  }
  const Arena::Scope scope(ctx.arena);
  const Pass<F> pass{ctx, c,     layout.names(),  weights, gradients, batch.documents,
                     T,   watch, options.products};
  Stack<F> stack(pass, batch);
  stack.forward();
  const StepLoss loss = stack.head(scale, losses, logits);
  if (gradients != nullptr) stack.backward();
  return loss;
}

}  // namespace

template <class F>
StepLoss loss_and_gradient(Context& ctx, const Parameters<F>& weights, const TrainBatch& batch,
                           F scale, Parameters<F>& gradients, StepWatch<F>* watch, Vec<F> losses,
                           const StepOptions& options) {
  TRIAX_CHECK(&gradients.layout() == &weights.layout());
  return run<F>(ctx, weights, batch, scale, &gradients, watch, losses, {}, options);
}

template <class F>
StepLoss loss_only(Context& ctx, const Parameters<F>& weights, const TrainBatch& batch,
                   Vec<F> losses, Mat<F> logits, StepWatch<F>* watch) {
  return run<F>(ctx, weights, batch, F{1}, nullptr, watch, losses, logits, {});
}

std::size_t activation_numbers(const K3Config& c, std::size_t tokens, std::size_t documents) {
  const std::size_t hidden = c.hidden_size, P = c.kda_inner(), D = c.kda_head_dim;
  // a document's last stretch of rows is not whole
  const std::size_t states = tokens / ops::kKdaKeepRows + documents;
  std::size_t row = 2 * hidden, state_numbers = 0;  // the embedding, a module's input
  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) {
    row += 2 * hidden;  // two running sums
    if (c.is_kda(l)) {
      row += 6 * P + D + c.kda_num_heads + (c.use_full_rank_gate ? 0 : D);
      state_numbers += states * P * D;
    } else {
      const std::size_t values = c.num_attention_heads * c.v_head_dim;
      row += c.q_lora_rank + c.num_attention_heads * c.q_head_dim() + c.latent_width() + values +
             (c.mla_use_output_gate ? values : 0);
    }
    if (c.ffn(l) == Ffn::dense) {
      row += 2 * c.intermediate_size;
    } else {
      const std::size_t k = c.num_experts_per_token;
      row += c.num_experts + c.routed_expert_hidden_size * (c.has_latent ? 2 : 1) +
             k * (2 * c.moe_intermediate_size + 4) + 2 * c.shared_intermediate();
    }
  }
  row += hidden * (1 + c.blocks());  // gradients of the running sum and of the blocks
  return tokens * row + state_numbers;
}

#define TRIAX_INSTANCES(F)                                                                     \
  template StepLoss loss_and_gradient<F>(Context&, const Parameters<F>&, const TrainBatch&, F, \
                                         Parameters<F>&, StepWatch<F>*, Vec<F>,                \
                                         const StepOptions&);                                  \
  template StepLoss loss_only<F>(Context&, const Parameters<F>&, const TrainBatch&, Vec<F>,    \
                                 Mat<F>, StepWatch<F>*)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::train
