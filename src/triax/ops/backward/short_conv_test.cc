// Gradient of the short convolution: golden values, central differences, document borders.
#include "triax/ops/backward/short_conv.h"

#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/gradient.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

// [C, n] -> [n, C]
std::vector<float> transposed(const std::vector<float>& x, std::size_t n) {
  const std::size_t C = x.size() / n;
  std::vector<float> out(x.size());
  for (std::size_t c = 0; c < C; ++c) {
    for (std::size_t j = 0; j < n; ++j) out[j * C + c] = x[c * n + j];
  }
  return out;
}

// The golden case has a start window: rows of x before the first, whose outputs nobody reads.
TEST(ShortConvBackward, EqualsGolden) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  const std::size_t C = golden["conv.x"].cols(), taps = golden["conv.w"].cols(), back = taps - 1;
  std::vector<float> x = transposed(golden["conv.state"].f32, back), dy(back * C, 0.0f);
  x.insert(x.end(), golden["conv.x"].f32.begin(), golden["conv.x"].f32.end());
  dy.insert(dy.end(), golden["conv.dy"].f32.begin(), golden["conv.dy"].f32.end());
  const std::vector<float> w = transposed(golden["conv.w"].f32, taps);
  const Segment all{0, x.size() / C};
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    const auto X = cast<F>(x), W = cast<F>(w), D = cast<F>(dy);
    std::vector<F> dx(X.size()), dw(W.size());
    short_conv_backward<F>(ctx, as_mat(X, C), as_mat(W, C), {&all, 1}, as_mat(D, C), as_mat(dx, C),
                           as_mat(dw, C));
    return Arrays<F>{dx, dw};
  });
  std::vector<float> want = transposed(golden["conv.dstate"].f32, back);
  want.insert(want.end(), golden["conv.dx"].f32.begin(), golden["conv.dx"].f32.end());
  EXPECT_TRUE(close(std::vector<float>(got[0].begin(), got[0].end()), want, 1e-6));
  EXPECT_TRUE(close(std::vector<float>(got[1].begin(), got[1].end()),
                    transposed(golden["conv.dw"].f32, taps), 1e-6));
}

TEST(ShortConvBackward, EqualsCentralDifferencesOverDocuments) {
  const std::size_t C = 37, taps = 4;
  const std::vector<Segment> documents{{0, 1}, {1, 2}, {3, 9}, {12, 3}};
  const std::size_t T = 15;
  auto x = widen(normal(1, T * C)), w = widen(normal(2, taps * C));
  const auto dy = widen(normal(3, T * C));
  std::vector<double> dx(T * C), dw(taps * C);
  Runner runner(2);
  short_conv_backward<double>(runner, as_mat<double>(x, C), as_mat<double>(w, C), documents,
                              as_mat(dy, C), as_mat(dx, C), as_mat(dw, C));
  const auto loss = [&] {
    double sum = 0;
    for (const Segment& s : documents) {
      for (std::size_t t = 0; t < s.rows; ++t) {
        for (std::size_t c = 0; c < C; ++c) {
          std::vector<double> window(taps), tap(taps);
          for (std::size_t j = 0; j < taps; ++j) {
            tap[j] = w[j * C + c];
            if (t + j + 1 >= taps) window[j] = x[(s.begin + t + j + 1 - taps) * C + c];
          }
          sum += ref::short_conv(tap, window) * dy[(s.begin + t) * C + c];
        }
      }
    }
    return sum;
  };
  check_gradient("x", x, dx, loss);
  check_gradient("w", w, dw, loss);
}

}  // namespace
}  // namespace triax::ops
