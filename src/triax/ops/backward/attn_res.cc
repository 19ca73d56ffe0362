// Gradient of the depth mix, row by row.
#include "triax/ops/backward/attn_res.h"

#include "triax/ops/backward/kernels.h"
#include "triax/ops/backward/loops.h"

namespace triax::ops {

template <class F>
void depth_mix_backward(Context& ctx, std::span<const Mat<const F>> sources, Vec<const F> w, F eps,
                        Mat<const F> dy, std::span<const Mat<F>> dsources, Vec<F> dw) {
  const std::size_t S = sources.size(), T = dy.shape[0], N = dy.shape[1];
  TRIAX_CHECK(S >= 1 && S <= kMaxMixSources && dsources.size() == S);
  TRIAX_CHECK(w.size() == N && dw.size() == N);
  for (std::size_t i = 0; i < S; ++i) {
    TRIAX_CHECK(sources[i].shape == dy.shape && dsources[i].shape == dy.shape);
  }
  const auto row = [&](std::size_t t, F* partial) {
    F r[kMaxMixSources], along[kMaxMixSources], p[kMaxMixSources], seen[kMaxMixSources];
    const F* given = dy[t].data;
    for (std::size_t i = 0; i < S; ++i) {
      const F* v = sources[i][t].data;
      if constexpr (std::is_same_v<F, float>) {
        float sums[3];
        training_kernels().mix_sums(v, w.data, given, N, sums);
        r[i] = 1 / std::sqrt(sums[0] / static_cast<float>(N) + eps);
        along[i] = sums[1];
        seen[i] = sums[2];
      } else {
        r[i] = loops::inverse_rms(v, eps, N);
        along[i] = loops::dot(w.data, v, N);
        seen[i] = loops::dot(given, v, N);
      }
      p[i] = r[i] * along[i];
    }
    const F largest = *std::max_element(p, p + S);
    F sum = 0, mean = 0;
    for (std::size_t i = 0; i < S; ++i) sum += p[i] = std::exp(p[i] - largest);
    for (std::size_t i = 0; i < S; ++i) mean += (p[i] /= sum) * seen[i];
    for (std::size_t i = 0; i < S; ++i) {
      const F* v = sources[i][t].data;
      F* out = dsources[i][t].data;
      const F prob = p[i], dl = prob * (seen[i] - mean), up = dl * r[i];
      const F back = up * r[i] * r[i] * along[i] / static_cast<F>(N);
      if constexpr (std::is_same_v<F, float>) {
        training_kernels().mix_back(v, w.data, given, prob, up, back, N, out, partial);
        continue;
      }
      for (std::size_t d = 0; d < N; ++d) {
        partial[d] += up * v[d];
        out[d] += prob * given[d] + up * w[d] - back * v[d];
      }
    }
  };
  loops::sum_over_rows(ctx, T, S * N, N, dw.data,
                       [&](std::size_t begin, std::size_t end, F* partial) {
                         for (std::size_t t = begin; t < end; ++t) row(t, partial);
                       });
}

template void depth_mix_backward<float>(Context&, std::span<const Mat<const float>>,
                                        Vec<const float>, float, Mat<const float>,
                                        std::span<const Mat<float>>, Vec<float>);
template void depth_mix_backward<double>(Context&, std::span<const Mat<const double>>,
                                         Vec<const double>, double, Mat<const double>,
                                         std::span<const Mat<double>>, Vec<double>);

}  // namespace triax::ops
