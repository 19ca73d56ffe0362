// Experts used where they lie in the mapped shards, or copied out of them once.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "triax/core/buffer.h"
#include "triax/experts/expert_store.h"

namespace triax {

// The places of all experts of a folder, checked: six tensors each, shapes and dtypes by the tensor
// table.
class ExpertTable {
 public:
  ExpertTable(const K3Config& config, std::shared_ptr<const Checkpoint> checkpoint);

  ExpertView view(std::size_t layer, std::size_t expert) const;
  std::size_t experts_per_layer() const { return experts_; }
  std::size_t size() const { return places_.size(); }
  bool has_layer(std::size_t layer) const { return first_[layer] != kNone; }
  std::size_t index(std::size_t layer, std::size_t expert) const { return first_[layer] + expert; }
  std::size_t scale_bytes() const;  // of all experts together
  // Throws Error naming tensor and row when a scale byte of this expert is 255.
  void check_scales(std::size_t layer, std::size_t expert) const;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  // w1 packed, w1 scale, w2 packed, w2 scale, w3 packed, w3 scale
  using Place = std::array<const std::uint8_t*, 6>;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::size_t experts_, width_, latent_;
  std::vector<std::size_t> first_;  // [layers] index of a layer's expert 0 in places_
  std::vector<Place> places_;
};

// Weights straight from the mapping: nothing is copied, the page cache decides what is in memory.
// Scale bytes are checked when it is made if all of them together are small (2 GiB), else when an
// expert is first used.
class MappedExperts : public ExpertStore {
 public:
  MappedExperts(const K3Config& config, std::shared_ptr<const Checkpoint> checkpoint);
  std::size_t resident_bytes() const override { return 0; }

 protected:
  void fetch(std::size_t layer, std::span<const std::int32_t> ids,
             std::span<ExpertView> views) override;
  void release(std::size_t) override {}

 private:
  ExpertTable table_;
  bool checked_at_open_ = false;
  std::vector<std::atomic<bool>> seen_;  // [experts of all layers]: mapped, and checked
};

// Every expert copied into memory of its own. `progress(done, total)` in bytes.
class ResidentExperts : public ExpertStore {
 public:
  ResidentExperts(const K3Config& config, std::shared_ptr<const Checkpoint> checkpoint,
                  const std::function<void(std::size_t done, std::size_t total)>& progress = {});
  std::size_t resident_bytes() const override { return memory_.bytes(); }

 protected:
  void fetch(std::size_t layer, std::span<const std::int32_t> ids,
             std::span<ExpertView> views) override;
  void release(std::size_t) override {}

 private:
  ExpertTable table_;
  std::size_t record_ = 0;  // bytes of one expert
  Buffer<std::uint8_t> memory_;
};

// nullptr for a model without routed experts.
std::unique_ptr<ExpertStore> open_mapped_experts(const K3Config& config,
                                                 std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace triax
