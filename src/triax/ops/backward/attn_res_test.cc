// Gradient of the depth mix against golden values and central differences.
#include "triax/ops/backward/attn_res.h"

#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/gradient.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

// sources [S][T * N] each; gradients of the sources, then of w. They are added to ones.
template <class F>
Arrays<F> run(Context& ctx, const Arrays<F>& sources, const std::vector<F>& w, double eps,
              const std::vector<F>& dy) {
  const std::size_t N = w.size();
  Arrays<F> out(sources.size(), std::vector<F>(dy.size(), F{1}));
  out.emplace_back(N);
  std::vector<Mat<const F>> in;
  std::vector<Mat<F>> to;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    in.push_back(as_mat(sources[i], N));
    to.push_back(as_mat(out[i], N));
  }
  depth_mix_backward<F>(ctx, in, w, static_cast<F>(eps), as_mat(dy, N), to, out.back());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    for (F& x : out[i]) x -= 1;
  }
  return out;
}

TEST(DepthMixBackward, EqualsGolden) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  const auto &v = golden["attn_res.sources"], &want = golden["attn_res.dsources"];  // [T, S, N]
  const std::size_t T = v.shape[0], S = v.shape[1], N = v.shape[2];
  const auto source = [&](const GoldenArray& from, std::size_t i) {
    std::vector<float> out;
    for (std::size_t t = 0; t < T; ++t) {
      const auto at = from.f32.begin() + static_cast<std::ptrdiff_t>((t * S + i) * N);
      out.insert(out.end(), at, at + static_cast<std::ptrdiff_t>(N));
    }
    return out;
  };
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    Arrays<F> sources;
    for (std::size_t i = 0; i < S; ++i) sources.push_back(cast<F>(source(v, i)));
    return run<F>(ctx, sources, cast<F>(golden["attn_res.w"].f32), 1e-5,
                  cast<F>(golden["attn_res.dy"].f32));
  });
  for (std::size_t i = 0; i < S; ++i) {
    const std::vector<float> rounded(got[i].begin(), got[i].end());
    EXPECT_TRUE(close(rounded, source(want, i), 1e-6)) << "source " << i;
  }
  EXPECT_TRUE(
      close(std::vector<float>(got[S].begin(), got[S].end()), golden["attn_res.dw"].f32, 1e-6));
}

TEST(DepthMixBackward, EqualsCentralDifferences) {
  const std::size_t T = 30, N = 150;
  for (const std::size_t S : {1u, 2u, 9u}) {
    Arrays<double> sources;
    for (std::size_t i = 0; i < S; ++i) sources.push_back(widen(normal(i, T * N, 1.0 + double(i))));
    auto w = widen(normal(20, N, 0.3));
    const auto dy = widen(normal(21, T * N));
    Runner runner(2);
    const auto got = run<double>(runner, sources, w, 1e-2, dy);
    const auto loss = [&] {
      long double sum = 0;
      for (std::size_t t = 0; t < T; ++t) {
        std::vector<double> rows;
        for (const auto& v : sources) rows.insert(rows.end(), &v[t * N], &v[t * N] + N);
        const auto y = ref::depth_mix(as_mat<double>(rows, N), w, 1e-2).y;
        sum += weighted(y, std::span(dy).subspan(t * N, N));
      }
      return sum;
    };
    for (std::size_t i = 0; i < S; ++i) check_gradient("source", sources[i], got[i], loss);
    if (S > 1) check_gradient("w", w, got[S], loss);  // one source: its weight is 1 whatever w
  }
}

}  // namespace
}  // namespace triax::ops
