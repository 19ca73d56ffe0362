#include "triax/model/batch.h"

#include <algorithm>

namespace triax {

Batch::Batch(std::span<const BatchEntry> entries) {
  std::size_t slot = 0;
  std::vector<std::size_t> first_slot;  // an entry's first row of the logits
  for (const BatchEntry& e : entries) {
    TRIAX_CHECK(e.state != nullptr && !e.ids.empty(), "a batch entry has a state and new tokens");
    first_slot.push_back(slot);
    slot += e.logits == LogitRows::all ? e.ids.size() : e.logits == LogitRows::last ? 1u : 0u;
  }
  for (const bool matrix : {true, false}) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if ((entries[i].ids.size() >= kMatrixRows) == matrix) add(entries[i], first_slot[i]);
    }
    if (!matrix) break;
    matrix_rows = ids.size();
    matrix_logit_rows = logit_rows.size();
  }
}

void Batch::add(const BatchEntry& e, std::size_t slot) {
  TRIAX_CHECK(std::find(states.begin(), states.end(), e.state) == states.end(),
              "a sequence stands once in a batch");
  const std::size_t begin = ids.size();
  ids.insert(ids.end(), e.ids.begin(), e.ids.end());
  segments.push_back({begin, e.ids.size()});
  states.push_back(e.state);
  if (e.logits == LogitRows::none) return;
  for (std::size_t r = e.logits == LogitRows::all ? begin : ids.size() - 1; r < ids.size(); ++r) {
    logit_rows.push_back(r);
    logit_slots.push_back(slot++);
  }
}

}  // namespace triax
