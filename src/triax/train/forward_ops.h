// The forward operations of training for both number types: float32 is inference's own operations
// (ops/), float64 the plain reference (ops/ref/). Gradients stand in ops/backward/.
#pragma once

#include <cstdint>
#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/elementwise.h"
#include "triax/ops/mla.h"
#include "triax/ops/moe.h"
#include "triax/ops/segments.h"

namespace triax::train {

// Every segment is a whole document: convolution and attention start at its first row.
// Shapes and formulas as in the headers of ops/. F is float or double.
template <class F>
struct Forward {
  static void embed(Context& ctx, Mat<const F> table, Vec<const std::int32_t> ids, Mat<F> y);
  static void linear(Context& ctx, Mat<const F> x, Mat<const F> w, Mat<F> y);
  static void rms_norm(Context& ctx, Mat<const F> x, Vec<const F> w, float eps, Mat<F> y);
  static void rms_norm_gated(Context& ctx, Mat<const F> o, Vec<const F> w, Mat<const F> gate,
                             float eps, Mat<F> y);
  static void l2_norm(Context& ctx, Mat<const F> x, std::size_t D, float eps, Mat<F> y);
  static void add(Context& ctx, Mat<const F> a, Mat<const F> b, Mat<F> y);
  static void sigmoid(Context& ctx, Mat<const F> x, Mat<F> y);
  static void mul_sigmoid(Context& ctx, Mat<const F> x, Mat<const F> gate, Mat<F> y);
  static void activate(Context& ctx, Mat<const F> gate, Mat<const F> up, const ops::Activation& a,
                       Mat<F> y);
  static void kda_gate(Context& ctx, Mat<const F> raw, Vec<const F> A, Vec<const F> dt_bias,
                       bool bounded, float lower_bound, Mat<F> g);
  static void short_conv(Context& ctx, Mat<const F> x, Mat<const F> w,
                         std::span<const Segment> segments, Mat<F> y);
  // latent [T, rank + rope]: normed c, then the shared key channels
  static void mla(Context& ctx, const ops::MlaShape& shape, Mat<const F> q, Mat<const F> latent,
                  Mat<const F> kv_b, std::span<const Segment> segments, Mat<F> attended);
  static void depth_mix(Context& ctx, std::span<const Mat<const F>> sources, Vec<const F> w,
                        float eps, Mat<F> y);
  static void route(Context& ctx, Mat<const F> logits, Vec<const F> bias,
                    const ops::RouterRule& rule, Mat<F> scores, Mat<std::int32_t> ids,
                    Mat<F> weights);
};

}  // namespace triax::train
