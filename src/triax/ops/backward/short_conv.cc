// Gradient of the short convolution: an item owns a stripe of channels over all rows.
#include "triax/ops/backward/short_conv.h"

#include "triax/ops/backward/kernels.h"
#include "triax/ops/backward/loops.h"

namespace triax::ops {
namespace {

constexpr std::size_t kMaxTaps = 8;
constexpr std::size_t kStripe = 16;  // channels of an item

}  // namespace

template <class F>
void short_conv_backward(Context& ctx, Mat<const F> x, Mat<const F> w,
                         std::span<const Segment> segments, Mat<const F> dy, Mat<F> dx, Mat<F> dw) {
  const std::size_t C = x.shape[1], taps = w.shape[0];
  TRIAX_CHECK(dy.shape == x.shape && dx.shape == x.shape && dw.shape == w.shape);
  TRIAX_CHECK(w.shape[1] == C && taps >= 1 && taps <= kMaxTaps);
  for (const Segment& s : segments) TRIAX_CHECK(s.begin + s.rows <= x.shape[0]);
  const auto stripe = [&](const Segment& s, std::size_t c, std::size_t n, F(*sums)[kStripe]) {
    F p[kStripe], sig[kStripe];
    for (std::size_t t = s.begin; t < s.begin + s.rows; ++t) {
      const std::size_t seen = std::min(taps, t - s.begin + 1);  // taps that meet a row
      std::fill_n(p, n, F{0});
      for (std::size_t j = taps - seen; j < taps; ++j) {
        const F *in = x[t + j - (taps - 1)].data + c, *tap = w[j].data + c;
        for (std::size_t i = 0; i < n; ++i) p[i] += tap[i] * in[i];
      }
      loops::sigmoid(p, n, sig);
      for (std::size_t i = 0; i < n; ++i) {
        p[i] = dy[t][c + i] * sig[i] * (1 + p[i] * (1 - sig[i]));  // dp
        dx[t][c + i] = 0;
      }
      for (std::size_t j = taps - seen; j < taps; ++j) {
        const F *in = x[t + j - (taps - 1)].data + c, *tap = w[j].data + c;
        F* out = dx[t + j - (taps - 1)].data + c;
        for (std::size_t i = 0; i < n; ++i) {
          out[i] += tap[i] * p[i];
          sums[j][i] += in[i] * p[i];
        }
      }
    }
  };
  ctx.pool.parallel_for(ceil_div(C, kStripe), [&](std::size_t item, std::size_t) {
    const std::size_t c = item * kStripe, n = std::min(kStripe, C - c);
    if constexpr (std::is_same_v<F, float>) {
      for (const Segment& s : segments) {
        training_kernels().conv_back(x.data + s.begin * x.stride + c, x.stride, w.data + c,
                                     w.stride, taps, s.rows, dy.data + s.begin * dy.stride + c,
                                     dy.stride, n, dx.data + s.begin * dx.stride + c, dx.stride,
                                     dw.data + c, dw.stride);
      }
      return;
    }
    F sums[kMaxTaps][kStripe] = {};
    for (const Segment& s : segments) stripe(s, c, n, sums);
    for (std::size_t j = 0; j < taps; ++j) {
      for (std::size_t i = 0; i < n; ++i) dw[j][c + i] += sums[j][i];
    }
  });
}

template void short_conv_backward<float>(Context&, Mat<const float>, Mat<const float>,
                                         std::span<const Segment>, Mat<const float>, Mat<float>,
                                         Mat<float>);
template void short_conv_backward<double>(Context&, Mat<const double>, Mat<const double>,
                                          std::span<const Segment>, Mat<const double>, Mat<double>,
                                          Mat<double>);

}  // namespace triax::ops
