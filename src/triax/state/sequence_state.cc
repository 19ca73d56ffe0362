#include "triax/state/sequence_state.h"

#include <algorithm>

#include "triax/core/checked.h"

namespace triax {
namespace {

std::size_t matrix_elements(const K3Config& c) {
  return checked_mul(c.kda_num_heads, checked_mul(c.kda_head_dim, c.kda_head_dim));
}

std::size_t tail_elements(const K3Config& c) {
  return checked_mul(3 * (c.short_conv_kernel_size - 1), c.kda_inner());
}

std::size_t stored_size(Precision precision) {
  return precision == Precision::f32 ? 4 : 2;
}

}  // namespace

StateSize state_size(const K3Config& c, Precision precision) {
  const std::size_t element = stored_size(precision);
  StateSize out;
  if (c.kda_layers() > 0) {
    out.kda_matrices = checked_mul(c.kda_layers(), checked_mul(matrix_elements(c), sizeof(float)));
    out.conv_tails = checked_mul(c.kda_layers(), checked_mul(tail_elements(c), element));
  }
  out.latent_per_token = checked_mul(c.mla_layers(), checked_mul(c.latent_width(), element));
  return out;
}

SequenceState::SequenceState(const K3Config& c, Precision precision) : precision_(precision) {
  slot_.resize(c.num_hidden_layers);
  const std::size_t each = matrix_elements(c);
  matrices_ = Buffer<float>(checked_mul(c.kda_layers(), each));
  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) {
    if (c.is_kda(l)) {
      slot_[l] = kda_.size();
      kda_.push_back(KdaState{matrices_.span().subspan(kda_.size() * each, each),
                              Buffer<std::byte>(tail_elements(c) * stored_size(precision))});
    } else {
      slot_[l] = latent_.size();
      latent_.emplace_back(c.latent_width(), cache_dtype());
    }
  }
}

SequenceState SequenceState::fork() const {
  SequenceState out;
  out.precision_ = precision_;
  out.slot_ = slot_;
  out.kda_.reserve(kda_.size());
  out.matrices_ = matrices_.clone();
  for (const KdaState& k : kda_) {
    const std::size_t at = out.kda_.size() * k.matrix.size();
    out.kda_.push_back(KdaState{out.matrices_.span().subspan(at, k.matrix.size()), k.tail.clone()});
  }
  out.latent_ = latent_;  // shares the pages
  for (LatentCache& cache : out.latent_) cache.truncate(tokens());
  out.ids_ = ids_;
  return out;
}

void SequenceState::prepare(std::size_t rows) {
  for (LatentCache& cache : latent_) cache.reserve(tokens(), rows);
  // Capacity for commit(), grown in steps: an exact reserve for each token would copy every time.
  const std::size_t want = checked_add(tokens(), rows);
  if (want > ids_.capacity()) ids_.reserve(std::max(want, 2 * ids_.capacity()));
}

void SequenceState::commit(Vec<const std::int32_t> ids) noexcept {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

std::size_t SequenceState::bytes() const {
  std::size_t n = matrices_.bytes();
  for (const KdaState& k : kda_) n += k.tail.bytes();
  for (const LatentCache& c : latent_) n += c.pages() * kPageTokens * c.row_bytes();
  return n;
}

}  // namespace triax
