// Reference: the KDA recurrence.
#include <cmath>

#include "triax/ops/ref/ref.h"

namespace triax::ops::ref {

std::vector<double> kda(Mat<const double> q, Mat<const double> k, Mat<const double> v,
                        Mat<const double> g, Vec<const double> beta, Mat<double> S) {
  const std::size_t T = q.shape[0], K = q.shape[1], V = v.shape[1];
  std::vector<double> o(T * V, 0.0), u(V);
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t j = 0; j < V; ++j) {
      double seen = 0;  // S^T k, S decayed
      for (std::size_t d = 0; d < K; ++d) seen += (S[d][j] *= std::exp(g[t][d])) * k[t][d];
      u[j] = beta[t] * (v[t][j] - seen);
      for (std::size_t d = 0; d < K; ++d) S[d][j] += k[t][d] * u[j];
      for (std::size_t d = 0; d < K; ++d) o[t * V + j] += S[d][j] * q[t][d];
    }
  }
  return o;
}

}  // namespace triax::ops::ref
