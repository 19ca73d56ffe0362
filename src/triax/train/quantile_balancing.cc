// Quantile Balancing by histograms.
#include "triax/train/quantile_balancing.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "triax/core/checked.h"

namespace triax::train {
namespace {

constexpr std::size_t kRowBlock = 64;  // tokens of an item
constexpr std::size_t kStripe = 16;    // experts of an item

}  // namespace

QuantileBalancer::QuantileBalancer(std::size_t experts, std::size_t top_k, std::size_t bins)
    : experts_(experts),
      top_k_(top_k),
      bins_(bins),
      bias_(experts),
      counts_(checked_mul(experts, bins)) {
  TRIAX_CHECK(top_k >= 1 && bins >= 2);
  if (top_k >= experts) {
    fail("quantile balancing needs more experts than a token takes: {} of {}", top_k, experts);
  }
}

void QuantileBalancer::begin_step(std::span<const float> bias) {
  TRIAX_CHECK(bias.size() == experts_);
  std::copy(bias.begin(), bias.end(), bias_.begin());
  const auto [low, high] = std::minmax_element(bias_.begin(), bias_.end());
  low_ = static_cast<double>(*low) - 1;
  width_ = (static_cast<double>(*high) + 1 - low_) / static_cast<double>(bins_);
  std::fill(counts_.begin(), counts_.end(), 0u);
  tokens_ = 0;
}

void QuantileBalancer::count(Context& ctx, Mat<const float> scores) {
  const std::size_t T = scores.shape[0];
  TRIAX_CHECK(scores.shape[1] == experts_ && width_ > 0, "begin_step() comes first");
  if (T == 0) return;
  const Arena::Scope scope(ctx.arena);
  const std::span<float> cutoff = ctx.arena.take<float>(T);
  const Mat<float> biased = ctx.arena.take_mat<float>(ctx.pool.threads(), experts_);
  ctx.pool.parallel_for((T + kRowBlock - 1) / kRowBlock, [&](std::size_t item, std::size_t worker) {
    float* row = biased[worker].data;
    for (std::size_t t = item * kRowBlock; t < std::min(T, (item + 1) * kRowBlock); ++t) {
      for (std::size_t e = 0; e < experts_; ++e) row[e] = scores[t][e] + bias_[e];
      std::nth_element(row, row + top_k_, row + experts_, std::greater<>());
      cutoff[t] = row[top_k_];
    }
  });
  // An item owns its experts' counts, so nothing is added from two sides.
  const auto last = static_cast<double>(bins_ - 1);
  ctx.pool.parallel_for((experts_ + kStripe - 1) / kStripe, [&](std::size_t item, std::size_t) {
    const std::size_t begin = item * kStripe, end = std::min(experts_, begin + kStripe);
    for (std::size_t t = 0; t < T; ++t) {
      for (std::size_t e = begin; e < end; ++e) {
        const double required = static_cast<double>(cutoff[t]) - static_cast<double>(scores[t][e]);
        const double bin = std::clamp(std::floor((required - low_) / width_), 0.0, last);
        ++counts_[e * bins_ + static_cast<std::size_t>(bin)];
      }
    }
  });
  tokens_ += T;
}

double QuantileBalancer::quantile(std::size_t expert) const {
  const double share = static_cast<double>(top_k_) / static_cast<double>(experts_);
  const double wanted = static_cast<double>(tokens_) * share;
  const std::uint32_t* bins = counts_.data() + expert * bins_;
  double before = 0;
  std::size_t bin = 0;
  while (bin + 1 < bins_ && before + bins[bin] < std::ceil(wanted)) before += bins[bin++];
  const double inside =
      bins[bin] == 0 ? 0 : std::clamp((wanted - before) / static_cast<double>(bins[bin]), 0.0, 1.0);
  return low_ + (static_cast<double>(bin) + inside) * width_;
}

void QuantileBalancer::end_step(std::span<float> bias, double keep) const {
  TRIAX_CHECK(bias.size() == experts_ && keep >= 0 && keep < 1);
  if (tokens_ == 0) return;
  std::vector<double> next(experts_);
  double mean = 0;
  for (std::size_t e = 0; e < experts_; ++e) mean += next[e] = quantile(e);
  mean /= static_cast<double>(experts_);
  for (std::size_t e = 0; e < experts_; ++e) {
    const double present = static_cast<double>(bias_[e]);
    bias[e] = static_cast<float>(keep * present + (1 - keep) * (next[e] - mean));
  }
}

void ExpertLoad::count(Mat<const std::int32_t> ids) {
  for (std::size_t t = 0; t < ids.shape[0]; ++t) {
    for (std::size_t i = 0; i < ids.shape[1]; ++i) {
      const auto id = static_cast<std::size_t>(ids[t][i]);
      TRIAX_CHECK(id < tokens.size());
      ++tokens[id];
    }
  }
}

double ExpertLoad::max_over_mean() const {
  std::uint64_t sum = 0, most = 0;
  for (std::uint64_t n : tokens) sum += n, most = std::max(most, n);
  const double mean = static_cast<double>(sum) / static_cast<double>(tokens.size());
  return sum == 0 ? 0 : static_cast<double>(most) / mean;
}

double ExpertLoad::dead_fraction() const {
  const auto dead = std::count(tokens.begin(), tokens.end(), std::uint64_t{0});
  return static_cast<double>(dead) / static_cast<double>(tokens.size());
}

void sign_rule(const ExpertLoad& load, double rate, std::span<float> bias) {
  TRIAX_CHECK(bias.size() == load.tokens.size());
  std::uint64_t sum = 0;
  for (const std::uint64_t n : load.tokens) sum += n;
  const double mean = static_cast<double>(sum) / static_cast<double>(load.tokens.size());
  for (std::size_t e = 0; e < bias.size(); ++e) {
    const double missing = mean - static_cast<double>(load.tokens[e]);
    const double step = missing > 0 ? rate : missing < 0 ? -rate : 0;
    bias[e] = static_cast<float>(static_cast<double>(bias[e]) + step);
  }
}

}  // namespace triax::train
