// The modules of a layer in training: forward passes that keep what their gradients need, and the
// gradients. One file a module, beside the equations of model/. Internal to train/.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "triax/core/context.h"
#include "triax/ops/backward/moe.h"
#include "triax/ops/mla.h"
#include "triax/ops/segments.h"
#include "triax/ops/split.h"
#include "triax/train/parameters.h"
#include "triax/train/step.h"

namespace triax::train {

// What every module is given. `gradients` and `watch` may be null.
template <class F>
struct Pass {
  Context& ctx;
  const K3Config& config;
  const K3Weights& names;
  const Parameters<F>& weights;
  Parameters<F>* gradients;
  std::span<const Segment> documents;
  std::size_t rows;
  StepWatch<F>* watch;
  ops::Products products;

  // Products of one x with several weights; y written.
  struct Linear {
    const MatrixView& name;
    Mat<F> y;
  };
  void linear(Mat<const F> x, std::initializer_list<Linear> jobs) const;
  // Their gradients: dx += the sum of dy W (written when not `accumulate`), each dW += dy^T x.
  struct LinearGradient {
    const MatrixView& name;
    Mat<const F> dy;
  };
  void linear_backward(Mat<const F> x, std::initializer_list<LinearGradient> jobs, Mat<F> dx,
                       bool accumulate = true) const;
  bool rounds() const { return std::is_same_v<F, float> && products == ops::Products::bf16; }

  Mat<F> take(std::size_t columns) const { return ctx.arena.take_mat<F>(rows, columns); }
  // dW += dy^T x; dy W alone, written
  Mat<F> linear_backward_first(Mat<const F> x, const MatrixView& name, Mat<const F> dy) const;
};

// x [T, hidden] is the normed input. All in the arena. Columns in comments; [T, columns].
template <class F>
struct KdaKept {
  Mat<F> q_proj, k_proj, v_proj;  // P, before the convolution
  Mat<F> f_a;                     // head_dim
  Mat<F> g_raw;                   // P
  Mat<F> beta;                    // heads, after the sigmoid
  Mat<F> g_a;                     // head_dim; without the full-rank gate
  Mat<F> gate;                    // P, before the sigmoid
  Mat<F> o;                       // P, before norm and gate
  View<F, 4> states;              // [kept, heads, K, V]
};
template <class F>
struct MlaKept {
  Mat<F> q_a;       // q_lora_rank, before the norm
  Mat<F> q;         // heads * (nope + rope)
  Mat<F> kv;        // kv_lora_rank + rope, before the norm
  Mat<F> attended;  // heads * value
  Mat<F> gate;      // heads * value, before the sigmoid
};
template <class F>
struct MlpKept {
  Mat<F> gate, up;  // width
};
template <class F>
struct MoeKept {
  Mat<F> logits;           // experts
  Mat<std::int32_t> ids;   // top_k
  Mat<F> weights;          // top_k
  ops::ExpertPairs pairs;  //
  Mat<F> z;                // latent; empty without a latent space
  Mat<F> gate, up;         // [T * top_k, expert width]
  Mat<F> aggregate;        // latent, before the norm
  MlpKept<F> shared;
};

template <class F>
KdaKept<F> kda_forward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, Mat<F> out);
template <class F>
void kda_backward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, const KdaKept<F>& kept,
                  Mat<const F> dout, Mat<F> dx);
template <class F>
MlaKept<F> mla_forward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, Mat<F> out);
template <class F>
void mla_backward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, const MlaKept<F>& kept,
                  Mat<const F> dout, Mat<F> dx);
// `kept` is taken before: its memory outlives the caller's temporaries.
template <class F>
MlpKept<F> take_mlp(const Pass<F>& pass, const MlpWeights& names);
template <class F>
void mlp_forward(const Pass<F>& pass, const MlpWeights& names, Mat<const F> x,
                 const MlpKept<F>& kept, Mat<F> out);
template <class F>
void mlp_backward(const Pass<F>& pass, const MlpWeights& names, Mat<const F> x,
                  const MlpKept<F>& kept, Mat<const F> dout, Mat<F> dx);
template <class F>
MoeKept<F> moe_forward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, Mat<F> out);
template <class F>
void moe_backward(const Pass<F>& pass, std::size_t layer, Mat<const F> x, const MoeKept<F>& kept,
                  Mat<const F> dout, Mat<F> dx);
// Every backward adds to dx, which starts at zero.

template <class F>
ops::Activation activation_of(const Pass<F>& pass) {
  const K3Config& c = pass.config;
  return {c.act_situ, c.activation_situ_beta, c.activation_situ_linear_beta};
}
template <class F>
void fill_zero(Context& ctx, Mat<F> x) {
  ops::for_row_blocks(ctx, x.shape[0], x.shape[1], [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) std::fill_n(x[t].data, x.shape[1], F{0});
  });
}

}  // namespace triax::train
