// Losses and distances of next-token distributions.
#include "triax/cli/score.h"

#include <algorithm>
#include <cmath>

#include "triax/core/error.h"

namespace triax::cli {

double log_sum_exp(std::span<const float> logits) {
  TRIAX_CHECK(!logits.empty());
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
  return top + std::log(sum);
}

double token_loss(std::span<const float> logits, std::int32_t target) {
  return log_sum_exp(logits) - static_cast<double>(logits[static_cast<std::size_t>(target)]);
}

double kl_divergence(std::span<const float> p, std::span<const float> q) {
  TRIAX_CHECK(p.size() == q.size());
  const double zp = log_sum_exp(p), zq = log_sum_exp(q);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double lp = static_cast<double>(p[i]) - zp, lq = static_cast<double>(q[i]) - zq;
    sum += std::exp(lp) * (lp - lq);
  }
  return std::isnan(sum) ? sum : std::max(sum, 0.0);
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const double place = std::ceil(q * static_cast<double>(values.size())) - 1;
  const std::size_t k =
      static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k), values.end());
  return values[k];
}

}  // namespace triax::cli
