#include "triax/model/batch.h"

#include <algorithm>

namespace triax {

Batch::Batch(std::span<const BatchEntry> entries) {
  for (const BatchEntry& e : entries) {
    TRIAX_CHECK(e.state != nullptr && !e.ids.empty(), "a batch entry has a state and new tokens");
    TRIAX_CHECK(std::find(states.begin(), states.end(), e.state) == states.end(),
                "a sequence stands once in a batch");
    const std::size_t begin = ids.size();
    ids.insert(ids.end(), e.ids.begin(), e.ids.end());
    segments.push_back({begin, e.ids.size()});
    states.push_back(e.state);
    if (e.logits == LogitRows::none) continue;
    const std::size_t first = e.logits == LogitRows::all ? begin : ids.size() - 1;
    for (std::size_t r = first; r < ids.size(); ++r) logit_rows.push_back(r);
  }
}

}  // namespace triax
