// The optimiser: Per-Head Muon for matrices, AdamW for the rest, QK-clip, gradient clipping and the
// rate schedule. Which tensor gets what is a column of the tensor table (TensorRow::update).
// Sources: Kimi K3 technical report 2.5 and 3.3; Moonlight (scale of the update); Kimi K2
// (QK-clip).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "triax/core/context.h"
#include "triax/ops/backward/products.h"
#include "triax/train/parameters.h"

namespace triax::train {

// What updates the matrices. Muon by head is K3's; the others are there to compare with.
enum class Matrices : std::uint8_t {
  muon_heads,  // Muon; q, k, v and kv_b head by head
  muon_whole,  // Muon; every matrix in one piece
  adamw,       // AdamW with weight decay
};

struct OptimizerSettings {
  Matrices matrices = Matrices::muon_heads;
  double muon_momentum = 0.95;                       // Nesterov
  double muon_rms = 0.2;                             // of an update, in units of the rate
  ops::Products muon_products = ops::Products::f32;  // bf16: Newton-Schulz with rounded factors
  double adam_beta1 = 0.9, adam_beta2 = 0.95, adam_eps = 1e-8;
  double weight_decay = 0.1;
  double clip_norm = 1.0;    // of the whole gradient; 0: not clipped
  double qk_clip_tau = 100;  // largest scaled MLA logit; 0: off
};

// Rate at step `step` of `steps`, counted from 0: linear over the first `warmup` (a fraction, at
// least one step), then half a cosine from `peak` to `final_fraction * peak`.
struct Schedule {
  double peak = 2e-3;
  double warmup = 0.01;
  double final_fraction = 0.1;
  std::size_t steps = 1;
  double rate(std::size_t step) const;
};

// Rows of a tensor that Muon orthogonalises together.
struct MuonBlock {
  std::size_t begin = 0, rows = 0;
};
// A head's rows of q, k, v; its key rows and its value rows of kv_b; the whole matrix otherwise.
// Empty for tensors that Muon leaves to AdamW.
std::vector<MuonBlock> muon_blocks(const ParameterLayout::Tensor& tensor, const K3Config& config,
                                   Matrices matrices = Matrices::muon_heads);
// The optimiser's name for a tensor with its blocks: "Muon, 3 blocks of 64 x 192".
std::string update_text(const ParameterLayout::Tensor& tensor, const K3Config& config,
                        Matrices matrices = Matrices::muon_heads);

// Square root of the sum of squares of all gradients, in an order of its own.
double gradient_norm(Context& ctx, const Parameters<float>& gradients);

class Optimizer {
 public:
  Optimizer(const ParameterLayout& layout, const OptimizerSettings& settings);

  // One step from the gradients of a whole batch (already averaged), which are scaled by
  // min(1, clip_norm / norm) as they are read. Returns the norm before clipping.
  //   Muon, each block: M <- mu M + G;  U = G + mu M;  O = NS5(U)
  //     W <- W (1 - rate decay) - rate * 0.2 sqrt(max(rows, columns)) O
  //   AdamW: m, v with bias correction;  W <- W (1 - rate decay) - rate m / (sqrt(v) + eps)
  double step(Context& ctx, double rate, const Parameters<float>& gradients,
              Parameters<float>& weights);

  // State for checkpoints: momentum (or first moment) of every number, second moments of AdamW's.
  std::span<float> first() { return first_.span(); }
  std::span<float> second() { return second_.span(); }
  std::size_t steps_taken() const { return steps_; }
  void set_steps_taken(std::size_t steps) { steps_ = steps; }
  const OptimizerSettings& settings() const { return settings_; }

 private:
  void muon(Context& ctx, double rate, float scale, const Parameters<float>& gradients,
            Parameters<float>& weights);
  void adamw(Context& ctx, double rate, float scale, const Parameters<float>& gradients,
             Parameters<float>& weights);

  // A block of a tensor, or a stretch of an AdamW tensor.
  struct Item {
    std::size_t tensor, begin, rows;  // rows of a block; numbers of a stretch
  };
  const ParameterLayout* layout_;
  OptimizerSettings settings_;
  std::vector<Item> muon_items_, adam_items_;
  std::size_t scratch_ = 0;                 // numbers a worker needs for a block
  std::vector<std::size_t> second_offset_;  // [tensors], of AdamW's tensors
  Buffer<float> first_, second_;
  std::size_t steps_ = 0;
};

// After a step: for each MLA layer and head whose largest scaled logit of this step's forward pass
// passed tau, with gamma = tau / largest: the head's nope rows of q and its key rows of kv_b times
// sqrt(gamma), its rope rows of q times gamma; the shared key channels stay. max_logits[layer]
// holds a value for each head (empty for KDA layers). Returns the number of heads clipped.
std::size_t qk_clip(double tau, std::span<const std::vector<float>> max_logits,
                    Parameters<float>& weights);

}  // namespace triax::train
