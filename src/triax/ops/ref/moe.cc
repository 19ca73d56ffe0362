// Reference: router and one routed expert.
#include <algorithm>
#include <numeric>

#include "triax/ops/ref/ref.h"

namespace triax::ops::ref {

Route route(Vec<const double> logits, Vec<const double> bias, std::size_t top_k, bool renormalize,
            double factor) {
  Route out;
  out.ids.resize(logits.size());
  std::iota(out.ids.begin(), out.ids.end(), 0);
  const auto score = [&](std::int32_t e) { return sigmoid(logits[static_cast<std::size_t>(e)]); };
  const auto key = [&](std::int32_t e) { return score(e) + bias[static_cast<std::size_t>(e)]; };
  std::sort(out.ids.begin(), out.ids.end(), [&](std::int32_t a, std::int32_t b) {
    return key(a) > key(b) || (key(a) == key(b) && a < b);
  });
  out.ids.resize(top_k);
  std::sort(out.ids.begin(), out.ids.end());
  double sum = 1e-20;
  for (std::int32_t e : out.ids) sum += score(e);
  for (std::int32_t e : out.ids) out.weights.push_back(score(e) / (renormalize ? sum : 1) * factor);
  return out;
}

std::vector<double> expert(const ExpertView& e, Vec<const double> z, const Activation& a) {
  const std::vector<double> gate = linear(e.w1, z), up = linear(e.w3, z);
  std::vector<double> h(gate.size());
  for (std::size_t i = 0; i < h.size(); ++i) {
    h[i] = a.situ ? situ(gate[i], up[i], a.beta, a.linear_beta) : silu(gate[i]) * up[i];
  }
  return linear(e.w2, h);
}

}  // namespace triax::ops::ref
