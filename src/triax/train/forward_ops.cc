// float32: inference's operations.
#include "triax/train/forward_ops.h"

#include <algorithm>
#include <vector>

#include "triax/ops/attn_res.h"
#include "triax/ops/linear.h"
#include "triax/ops/short_conv.h"

namespace triax::train {
namespace {

MatrixView as_weights(Mat<const float> w) {
  TRIAX_CHECK(w.dense());
  return {w.data, DType::F32, w.shape[0], w.shape[1]};
}

}  // namespace

template <>
void Forward<float>::embed(Context& ctx, Mat<const float> table, Vec<const std::int32_t> ids,
                           Mat<float> y) {
  ops::embed(ctx, as_weights(table), ids, y);
}

template <>
void Forward<float>::linear(Context& ctx, Mat<const float> x, Mat<const float> w, Mat<float> y) {
  ops::linear_f32(ctx, x, as_weights(w), y);
}

template <>
void Forward<float>::rms_norm(Context& ctx, Mat<const float> x, Vec<const float> w, float eps,
                              Mat<float> y) {
  ops::rms_norm(ctx, x, w, eps, y);
}

template <>
void Forward<float>::rms_norm_gated(Context& ctx, Mat<const float> o, Vec<const float> w,
                                    Mat<const float> gate, float eps, Mat<float> y) {
  ops::rms_norm_gated(ctx, o, w, gate, eps, y);
}

template <>
void Forward<float>::l2_norm(Context& ctx, Mat<const float> x, std::size_t D, float eps,
                             Mat<float> y) {
  ops::l2_norm(ctx, x, D, eps, y);
}

template <>
void Forward<float>::add(Context& ctx, Mat<const float> a, Mat<const float> b, Mat<float> y) {
  ops::add(ctx, a, b, y);
}

template <>
void Forward<float>::sigmoid(Context& ctx, Mat<const float> x, Mat<float> y) {
  ops::sigmoid(ctx, x, y);
}

template <>
void Forward<float>::mul_sigmoid(Context& ctx, Mat<const float> x, Mat<const float> gate,
                                 Mat<float> y) {
  ops::mul_sigmoid(ctx, x, gate, y);
}

template <>
void Forward<float>::activate(Context& ctx, Mat<const float> gate, Mat<const float> up,
                              const ops::Activation& a, Mat<float> y) {
  ops::activate(ctx, gate, up, a, y);
}

template <>
void Forward<float>::kda_gate(Context& ctx, Mat<const float> raw, Vec<const float> A,
                              Vec<const float> dt_bias, bool bounded, float lower_bound,
                              Mat<float> g) {
  ops::kda_gate(ctx, raw, A, dt_bias, bounded, lower_bound, g);
}

template <>
void Forward<float>::short_conv(Context& ctx, Mat<const float> x, Mat<const float> w,
                                std::span<const Segment> segments, Mat<float> y) {
  const Arena::Scope scope(ctx.arena);
  const std::size_t tail = (w.shape[0] - 1) * x.shape[1];
  const std::span<float> zeros = ctx.arena.take<float>(segments.size() * tail);
  std::fill(zeros.begin(), zeros.end(), 0.0f);
  std::vector<ops::ConvTail> tails;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    tails.push_back({zeros.data() + s * tail, DType::F32});
  }
  ops::short_conv(ctx, x, w, segments, tails, y);
}

template <>
void Forward<float>::mla(Context& ctx, const ops::MlaShape& shape, Mat<const float> q,
                         Mat<const float> latent, Mat<const float> kv_b,
                         std::span<const Segment> segments, Mat<float> attended) {
  TRIAX_CHECK(latent.dense());
  std::vector<const void*> pages;
  for (const Segment& s : segments) pages.push_back(latent.data + s.begin * latent.shape[1]);
  std::vector<LatentView> caches;
  for (std::size_t s = 0; s < segments.size(); ++s) {  // one page: the rows where they lie
    caches.push_back({std::span(pages).subspan(s, 1), std::max<std::size_t>(segments[s].rows, 1),
                      latent.shape[1], DType::F32, segments[s].rows});
  }
  ops::mla_attend(ctx, shape, q, as_weights(kv_b), segments, caches, attended,
                  ops::MlaPath::expanded);
}

template <>
void Forward<float>::depth_mix(Context& ctx, std::span<const Mat<const float>> sources,
                               Vec<const float> w, float eps, Mat<float> y) {
  ops::depth_mix(ctx, sources, w, eps, y);
}

template <>
void Forward<float>::route(Context& ctx, Mat<const float> logits, Vec<const float> bias,
                           const ops::RouterRule& rule, Mat<float> scores, Mat<std::int32_t> ids,
                           Mat<float> weights) {
  ops::route(ctx, logits, bias, rule, scores, ids, weights);
}

}  // namespace triax::train
