// Reference: MLA with expanded keys and values, and the depth mix.
#include <algorithm>
#include <cmath>

#include "triax/ops/ref/ref.h"

namespace triax::ops::ref {
namespace {

void softmax(std::vector<double>& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v - largest);
  for (double& v : x) v /= sum;
}

}  // namespace

MixResult depth_mix(Mat<const double> sources, Vec<const double> w, double eps) {
  const std::size_t S = sources.shape[0], N = sources.shape[1];
  MixResult out;
  for (std::size_t i = 0; i < S; ++i) {
    const std::vector<double> normed = rms_norm(sources[i], w, eps);
    double score = 0;
    for (double x : normed) score += x;
    out.scores.push_back(score);
  }
  out.probs = out.scores;
  softmax(out.probs);
  out.y.assign(N, 0.0);
  for (std::size_t i = 0; i < S; ++i) {
    for (std::size_t d = 0; d < N; ++d) out.y[d] += out.probs[i] * sources[i][d];
  }
  return out;
}

std::vector<double> mla(Mat<const double> q, Mat<const double> latent, Mat<const double> kv_b,
                        std::size_t nope) {
  const std::size_t T = q.shape[0], L = latent.shape[0], rank = kv_b.shape[1], head = q.shape[1];
  const std::size_t V = kv_b.shape[0] - nope;
  std::vector<double> expanded(L * kv_b.shape[0], 0.0);  // [L, nope + value]
  const Mat<double> kv(expanded.data(), {L, kv_b.shape[0]});
  for (std::size_t s = 0; s < L; ++s) {
    for (std::size_t r = 0; r < kv_b.shape[0]; ++r) {
      for (std::size_t c = 0; c < rank; ++c) kv[s][r] += latent[s][c] * kv_b[r][c];
    }
  }
  std::vector<double> out(T * V, 0.0);
  for (std::size_t t = 0; t < T; ++t) {
    std::vector<double> p(L - T + t + 1, 0.0);
    for (std::size_t s = 0; s < p.size(); ++s) {
      for (std::size_t d = 0; d < nope; ++d) p[s] += q[t][d] * kv[s][d];
      for (std::size_t d = nope; d < head; ++d) p[s] += q[t][d] * latent[s][rank + d - nope];
      p[s] /= std::sqrt(static_cast<double>(head));
    }
    softmax(p);
    for (std::size_t s = 0; s < p.size(); ++s) {
      for (std::size_t j = 0; j < V; ++j) out[t * V + j] += p[s] * kv[s][nope + j];
    }
  }
  return out;
}

}  // namespace triax::ops::ref
