// Where the routed experts' weights come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "triax/checkpoint/checkpoint.h"
#include "triax/config/config.h"
#include "triax/core/matrix.h"

namespace triax {

class ExpertStore;

// The views of an acquire() are valid while its lease lives.
class ExpertLease {
 public:
  ExpertLease(ExpertStore& store, std::size_t layer) : store_(&store), layer_(layer) {}
  ExpertLease(ExpertLease&& o) noexcept : store_(o.store_), layer_(o.layer_) { o.store_ = nullptr; }
  ExpertLease(const ExpertLease&) = delete;
  ExpertLease& operator=(const ExpertLease&) = delete;
  ExpertLease& operator=(ExpertLease&&) = delete;
  ~ExpertLease();

 private:
  ExpertStore* store_;
  std::size_t layer_;
};

// The model asks a layer's experts in ascending order of id and gives them back when the layer is
// done. A store may have them in memory, mapped, or read them when asked; results are the same to
// the bit.
class ExpertStore {
 public:
  virtual ~ExpertStore() = default;

  // views[i] is the expert ids[i] of `layer` (from 0). Throws Error when a weight is not usable: a
  // scale byte of 255 (NaN) names its tensor and row.
  ExpertLease acquire(std::size_t layer, std::span<const std::int32_t> ids,
                      std::span<ExpertView> views);

  // Bytes that the store holds in memory of its own.
  virtual std::size_t resident_bytes() const = 0;

 protected:
  virtual void fetch(std::size_t layer, std::span<const std::int32_t> ids,
                     std::span<ExpertView> views) = 0;
  virtual void release(std::size_t layer) = 0;
  friend class ExpertLease;
};

}  // namespace triax
