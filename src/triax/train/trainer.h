// The training loop: one step at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "triax/core/clock.h"
#include "triax/core/context.h"
#include "triax/train/guard.h"
#include "triax/train/parameters.h"
#include "triax/train/quantile_balancing.h"
#include "triax/train/records.h"
#include "triax/train/sampler.h"
#include "triax/train/step.h"
#include "triax/train/train_checkpoint.h"
#include "triax/train/train_config.h"

namespace triax::train {

// Weights that a token uses, head included, embedding not: what "6 N tokens" counts.
std::uint64_t active_parameters(const K3Config& config);

// The products of passes, and of the optimiser, in the configuration's precision.
StepOptions step_options(const TrainConfig& config);
OptimizerSettings optimizer_settings(const TrainConfig& config);

// Masters, optimiser, balancers and data position of one training. The layout, the configuration
// and the sources outlive it.
class Trainer {
 public:
  // The masters start as init_parameters(seed).
  Trainer(Context& ctx, const TrainConfig& config, const ParameterLayout& layout,
          std::span<const DocumentSet> sources);

  bool done() const { return state_.stage == config_.stages.size(); }
  // Draws the data of a step, adds up the gradients of its passes, and applies them: balancing
  // over the whole step, clipping, optimiser, QK-clip. A step that the guard rejects changes
  // nothing but the position. Throws Error when the guard gives up.
  StepRecord step();
  // The same with given passes at a given rate; the position moves on by their rows. `watch` runs
  // since the step began. A training of such steps alone needs no sources.
  StepRecord step_on(std::span<const PackedBatch> batches, double rate, Stopwatch watch = {});

  // What passes compute with now: the masters, or in quantisation-aware training what a checkpoint
  // of them would hold.
  const Parameters<float>& pass_weights();
  // What a checkpoint of the masters holds.
  const Parameters<float>& exported_weights();
  bool qat() const { return qat_at(state_.tokens); }

  Parameters<float>& masters() { return masters_; }
  std::size_t steps_taken() const { return state_.step; }
  std::uint64_t tokens() const { return state_.tokens; }
  double seconds() const { return state_.seconds; }
  // Running mean of max/mean load of each layer with experts, and what is wrong with it ("": fine).
  const GuardState& guard() const { return guard_.state(); }
  std::string load_fault() const { return guard_.judge_loads(state_.step, moe_layers_); }

  void save(const std::filesystem::path& folder, std::size_t keep);
  // Goes on from a checkpoint. Throws Error when it is not of this configuration and data.
  void restore(const std::filesystem::path& checkpoint);

 private:
  bool qat_at(std::uint64_t tokens) const;
  TrainArrays arrays() { return {masters_.all(), optimizer_.first(), optimizer_.second()}; }
  std::span<float> bias(std::size_t layer);
  StepLoss passes(std::span<const PackedBatch> batches, float scale, StepWatch<float>& watch,
                  std::vector<ExpertLoad>& loads);
  void apply(StepRecord& record, const StepWatch<float>& watch,
             const std::vector<ExpertLoad>& loads);
  void advance(std::size_t rows);
  void watch_loads(StepRecord& record);
  void describe(StepRecord& record, const std::vector<ExpertLoad>& loads) const;
  std::vector<HeadNorms> head_norms() const;

  Context& ctx_;
  const TrainConfig& config_;
  const ParameterLayout& layout_;
  std::span<const DocumentSet> sources_;
  Parameters<float> masters_, gradients_;
  std::unique_ptr<Parameters<float>> rounded_;  // made when it is first needed
  bool rounded_valid_ = false;
  Optimizer optimizer_;
  Sampler sampler_;
  std::vector<std::size_t> moe_layers_;
  std::vector<QuantileBalancer> balancers_;  // [moe layers]
  Guard guard_;
  TrainState state_;
  double operations_per_token_ = 0;
};

}  // namespace triax::train
