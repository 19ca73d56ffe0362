#include "triax/experts/expert_store.h"

#include "triax/core/error.h"

namespace triax {

ExpertLease::~ExpertLease() {
  if (store_ != nullptr) store_->release(layer_);
}

ExpertLease ExpertStore::acquire(std::size_t layer, std::span<const std::int32_t> ids,
                                 std::span<ExpertView> views) {
  TRIAX_CHECK(ids.size() == views.size());
  fetch(layer, ids, views);
  return ExpertLease(*this, layer);
}

}  // namespace triax
