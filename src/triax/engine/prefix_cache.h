// States of earlier requests in memory, under a budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "triax/engine/capacity.h"
#include "triax/engine/prefix_index.h"
#include "triax/state/sequence_state.h"

namespace triax {

// A state, whole: KDA matrices and convolution tails of every layer, latent pages of every layer,
// the ids, and often the logits of the last of them. Nobody writes to it; whoever goes on from it
// forks it, which shares the latent pages until one is written to.
struct Snapshot : Prefix {
  Snapshot(SequenceState s, Trail t, std::size_t free, std::vector<float> last)
      : state(std::move(s)), logits(std::move(last)) {
    ids = state.ids();
    trail = std::move(t);
    free_from = free;
    has_logits = !logits.empty();
  }
  SequenceState state;
  std::vector<float> logits;  // [vocab], or none
};

// Used by one thread. What a prefix cache of two kinds of state can get wrong cannot happen here:
// both kinds live and die in one Snapshot, so that there is no boundary with only one of them; a
// hit is held by its user, so that making room cannot take it away; and a Snapshot is made from a
// finished pass only, so that no page of it is yet to be written.
class PrefixCache {
 public:
  PrefixCache(const K3Config& config, Precision precision);

  // The longest usable state, which counts as used; null when there is none.
  std::shared_ptr<const Snapshot> find(std::span<const std::int32_t> prompt, const CutPlan& plan,
                                       CacheUse use);
  // Tokens that the prompt has in common with some state.
  std::size_t common(std::span<const std::int32_t> prompt) const { return index_.common(prompt); }
  bool holds(const Prefix& prefix) const;

  // Puts a state in, unless one with the same ids and trail is there already.
  void insert(std::shared_ptr<const Snapshot> snapshot);
  // Drops the states worth least until at most `bytes` are taken. Worth: prompt tokens that it
  // saves beyond the next shorter state, times the uses, over the bytes that dropping it frees;
  // aged as in GreedyDual-Size-Frequency (Cherkasova 1998).
  void shrink(std::size_t bytes);

  std::size_t bytes() const { return bytes_; }
  std::size_t entries() const { return index_.items().size(); }
  std::uint64_t evictions() const { return evictions_; }

 private:
  struct Use {
    double clock = 0;  // value of clock_ when it was used last
    double uses = 1;
  };
  std::span<const void* const> pages_of(const Snapshot& snapshot) const;
  void count_pages(const Snapshot& snapshot, bool add);
  std::size_t own_pages(const Snapshot& snapshot) const;
  void erase(const Snapshot* snapshot);
  const Snapshot* least(double& value) const;

  StateCost cost_;
  std::size_t mla_layer_ = kNone;  // the first
  PrefixIndex index_;
  std::unordered_map<const Prefix*, Use> use_;
  std::unordered_map<const void*, std::size_t> pages_;  // users in here, by a page's memory
  std::size_t bytes_ = 0;
  double clock_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace triax
