// Everything a sequence carries from one pass to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "triax/config/config.h"
#include "triax/core/buffer.h"
#include "triax/core/context.h"
#include "triax/state/latent_cache.h"

namespace triax {

// Bytes of a sequence's state; spec: text model, section 7.
struct StateSize {
  std::size_t kda_matrices = 0;      // float32 in both number modes, constant
  std::size_t conv_tails = 0;        // constant
  std::size_t latent_per_token = 0;  // over all MLA layers
};
StateSize state_size(const K3Config& config, Precision precision);

// One KDA layer: the state matrices and the inputs that the convolutions still need.
struct KdaState {
  std::span<float> matrix;  // [H, K, V], key index first
  Buffer<std::byte> tail;   // [3 (q, k, v), taps-1, P], oldest first; float32 or BF16
};

// The state of one sequence. Depth mixes carry nothing across tokens. A pass goes:
//   prepare(rows)  may throw (memory); the sequence is as before
//   the forward pass writes KDA matrices, tails and latent rows
//   commit(ids)    cannot fail; the rows are part of the sequence now
class SequenceState {
 public:
  SequenceState(const K3Config& config, Precision precision);
  SequenceState(SequenceState&&) = default;
  SequenceState& operator=(SequenceState&&) = default;

  // A second sequence with the same past: latent pages are shared copy-on-write, KDA state is
  // copied.
  SequenceState fork() const;

  void prepare(std::size_t rows);
  void commit(Vec<const std::int32_t> ids) noexcept;

  std::size_t tokens() const { return ids_.size(); }
  const std::vector<std::int32_t>& ids() const { return ids_; }
  Precision precision() const { return precision_; }
  DType cache_dtype() const { return precision_ == Precision::f32 ? DType::F32 : DType::BF16; }

  KdaState& kda(std::size_t layer) { return kda_[slot_[layer]]; }
  const KdaState& kda(std::size_t layer) const { return kda_[slot_[layer]]; }
  LatentCache& latent(std::size_t layer) { return latent_[slot_[layer]]; }
  const LatentCache& latent(std::size_t layer) const { return latent_[slot_[layer]]; }

  std::size_t bytes() const;  // held now, shared pages included

 private:
  SequenceState() = default;
  Precision precision_ = Precision::bf16;
  std::vector<std::size_t> slot_;  // [layers] index into kda_ or latent_
  Buffer<float> matrices_;         // of all KDA layers, in one piece: large enough for huge pages
  std::vector<KdaState> kda_;
  std::vector<LatentCache> latent_;
  std::vector<std::int32_t> ids_;
};

}  // namespace triax
