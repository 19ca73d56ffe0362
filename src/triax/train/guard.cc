// Judging steps.
#include "triax/train/guard.h"

#include <algorithm>
#include <cmath>

#include "triax/core/error.h"

namespace triax::train {
namespace {

constexpr double kLoadMemory = 0.8;  // of the running means of loads

void follow(double& mean, double value, double memory, bool first) {
  mean = first ? value : memory * mean + (1 - memory) * value;
}

}  // namespace

std::string first_not_finite(const Parameters<float>& numbers) {
  for (const ParameterLayout::Tensor& t : numbers.layout().tensors()) {
    for (const float x : numbers[t]) {
      if (!std::isfinite(x)) return t.name;
    }
  }
  return "";
}

std::string largest_gradient(const Parameters<float>& gradients) {
  const ParameterLayout::Tensor* largest = nullptr;
  double most = -1, total = 0;
  for (const ParameterLayout::Tensor& t : gradients.layout().tensors()) {
    double sum = 0;
    for (const float x : gradients[t]) sum += static_cast<double>(x) * static_cast<double>(x);
    total += sum;
    if (sum <= most) continue;
    most = sum;
    largest = &t;
  }
  return fmt::format("{} ({:.0f} % of the norm)", largest->name,
                     total > 0 ? 100 * std::sqrt(most / total) : 0.0);
}

Guard::Guard(const GuardSettings& settings, std::size_t moe_layers) : settings_(settings) {
  state_.load.resize(moe_layers);
  state_.dead.resize(moe_layers);
}

std::string Guard::judge(double loss, double norm, const Parameters<float>& weights,
                         const Parameters<float>& gradients) const {
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    if (const std::string name = first_not_finite(weights); !name.empty()) {
      fail(
          "weight {} holds a number that is not finite, and so is the loss; go on from an earlier "
          "checkpoint with a lower optimizer.peak_rate",
          name);
    }
    const std::string name = first_not_finite(gradients);
    if (name.empty()) {
      return fmt::format(
          "loss {} and gradient norm {} are not both finite, though every gradient "
          "is",
          loss, norm);
    }
    return fmt::format("loss {}; the first gradient that is not finite is that of {}", loss, name);
  }
  if (state_.healthy < settings_.healthy_first) return "";
  if (settings_.loss_above > 0 && loss > state_.loss + settings_.loss_above) {
    return fmt::format("loss {:.3f} is a spike above its running mean {:.3f}; largest gradient: {}",
                       loss, state_.loss, largest_gradient(gradients));
  }
  if (settings_.norm_times > 0 && norm > state_.norm * settings_.norm_times) {
    return fmt::format(
        "gradient norm {:.3g} is a spike above its running mean {:.3g}; largest "
        "gradient: {}",
        norm, state_.norm, largest_gradient(gradients));
  }
  return "";
}

void Guard::healthy(double loss, double norm) {
  follow(state_.loss, loss, settings_.memory, state_.healthy == 0);
  follow(state_.norm, norm, settings_.memory, state_.healthy == 0);
  ++state_.healthy;
  state_.skipped_in_row = 0;
}

void Guard::skipped(const std::string& why) {
  ++state_.skipped;
  if (++state_.skipped_in_row < settings_.skips) return;
  fail(
      "{} steps in a row were left out, the last one because: {}; go on from the checkpoint with "
      "a lower optimizer.peak_rate, or look at the data",
      state_.skipped_in_row, why);
}

void Guard::loads(const std::vector<double>& max_over_mean, const std::vector<double>& dead) {
  TRIAX_CHECK(max_over_mean.size() == state_.load.size() && dead.size() == state_.dead.size());
  for (std::size_t i = 0; i < state_.load.size(); ++i) {
    follow(state_.load[i], max_over_mean[i], kLoadMemory, state_.loads == 0);
    follow(state_.dead[i], dead[i], kLoadMemory, state_.loads == 0);
  }
  ++state_.loads;
}

std::string Guard::judge_loads(std::size_t step, const std::vector<std::size_t>& layers) const {
  if (step < settings_.load_from || settings_.load_limit <= 0 || state_.load.empty()) return "";
  const auto worst = static_cast<std::size_t>(
      std::max_element(state_.load.begin(), state_.load.end()) - state_.load.begin());
  const auto deadest = static_cast<std::size_t>(
      std::max_element(state_.dead.begin(), state_.dead.end()) - state_.dead.begin());
  if (state_.dead[deadest] > 0.01) {
    return fmt::format("layer {}: {:.1f} % of the experts get no tokens", layers[deadest],
                       100 * state_.dead[deadest]);
  }
  if (state_.load[worst] > settings_.load_limit) {
    return fmt::format("layer {}: the busiest expert gets {:.2f} times the mean (limit {:.2f})",
                       layers[worst], state_.load[worst], settings_.load_limit);
  }
  return "";
}

}  // namespace triax::train
