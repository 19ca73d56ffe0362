// Quantile Balancing: the bias of a router such that every expert gets its share of tokens.
//
// A token with biased cutoff alpha (its (k+1)-th largest score + bias) takes expert j exactly when
// bias_j > r_j = alpha - score_j, the raw score. So the k/n quantile of r over the tokens of a step
// is the bias at which the expert would have got k/n of them. No rate, no gradient, no optimiser.
// Source: Kimi K3 technical report, section 2.3.3, appendices C and D.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "triax/core/context.h"
#include "triax/core/view.h"

namespace triax::train {

inline constexpr std::size_t kBalancingBins = 1000;

// The bias of one layer of experts, over one optimizer step at a time. Memory: experts * bins * 4
// B.
class QuantileBalancer {
 public:
  QuantileBalancer(std::size_t experts, std::size_t top_k, std::size_t bins = kBalancingBins);

  // Clears the counts. Bins cover [min(bias) - 1, max(bias) + 1], where every r lies: known to all
  // ranks without an exchange.
  void begin_step(std::span<const float> bias);
  // Counts tokens of this step, each once: training tokens only, no padding, not again when
  // activations are recomputed. scores [T, experts] are the sigmoids without bias. The bias is the
  // one that begin_step() saw.
  void count(Context& ctx, Mat<const float> scores);
  // [experts, bins] and the number of tokens: integers, to be added up over data-parallel ranks.
  std::span<std::uint32_t> counts() { return counts_; }
  std::uint64_t tokens() const { return tokens_; }
  void set_tokens(std::uint64_t tokens) { tokens_ = tokens; }
  // The bias of the next step, centred: mean 0. `keep` is the weight of the present bias (0: none,
  // the rule as published). Without tokens the bias stays.
  void end_step(std::span<float> bias, double keep = 0) const;

  double bin_width() const { return width_; }

 private:
  double quantile(std::size_t expert) const;

  std::size_t experts_, top_k_, bins_;
  std::vector<float> bias_;
  std::vector<std::uint32_t> counts_;  // [experts, bins]
  std::uint64_t tokens_ = 0;
  double low_ = 0, width_ = 0;
};

// How evenly a step's tokens fell. Entropy is not reported: it stays near 1 while experts die.
struct ExpertLoad {
  std::vector<std::uint64_t> tokens;  // [experts]
  explicit ExpertLoad(std::size_t experts) : tokens(experts) {}
  void count(Mat<const std::int32_t> ids);  // [T, top_k]
  double max_over_mean() const;             // 1 at best; 0 without tokens
  double dead_fraction() const;             // experts without a token
};

// The older rule, to compare with: every expert's bias one `rate` up when it got fewer tokens than
// the mean, down when it got more. Source: DeepSeek-V3 report, 2.1.2 (bias update speed).
void sign_rule(const ExpertLoad& load, double rate, std::span<float> bias);

}  // namespace triax::train
