// Is a step fit to be applied? Numbers that are not finite, spikes of loss or gradient, loads of
// experts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "triax/train/parameters.h"
#include "triax/train/train_config.h"

namespace triax::train {

// What the guard remembers; part of a checkpoint. Only healthy steps change the means.
struct GuardState {
  double loss = 0, norm = 0;  // running means
  std::size_t healthy = 0;    // steps that made them
  std::size_t skipped = 0;    // steps left out, in all
  std::size_t skipped_in_row = 0;
  std::vector<double> load;  // [layers with experts], running mean of max/mean load
  std::vector<double> dead;  // [layers with experts], running mean of the dead fraction
  std::size_t loads = 0;     // steps that made them
};

// The first tensor, in table order, that holds a number that is not finite; "" when all are.
std::string first_not_finite(const Parameters<float>& numbers);
// The tensor with the largest gradient: "NAME (83 % of the norm)".
std::string largest_gradient(const Parameters<float>& gradients);

class Guard {
 public:
  Guard(const GuardSettings& settings, std::size_t moe_layers);

  // Why this step must not be applied, in one line; "" when it may. `norm` is of the whole
  // gradient.
  std::string judge(double loss, double norm, const Parameters<float>& weights,
                    const Parameters<float>& gradients) const;
  // A step was applied, or left out. Throws Error with `why` after too many in a row.
  void healthy(double loss, double norm);
  void skipped(const std::string& why);

  // Loads of a step, a value for each layer with experts.
  void loads(const std::vector<double>& max_over_mean, const std::vector<double>& dead);
  // What is wrong with the loads at `step`, in one line; "" when nothing is, or it is too early.
  // `layers`: names of the layers with experts.
  std::string judge_loads(std::size_t step, const std::vector<std::size_t>& layers) const;

  const GuardState& state() const { return state_; }
  void set_state(const GuardState& state) { state_ = state; }

 private:
  GuardSettings settings_;
  GuardState state_;
};

}  // namespace triax::train
