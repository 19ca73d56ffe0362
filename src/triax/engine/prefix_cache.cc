#include "triax/engine/prefix_cache.h"

#include <algorithm>
#include <limits>

namespace triax {
namespace {

const Snapshot& as_snapshot(const PrefixIndex::Item& item) {
  return static_cast<const Snapshot&>(*item);
}

}  // namespace

PrefixCache::PrefixCache(const K3Config& config, Precision precision)
    : cost_(state_cost(config, precision)) {
  for (std::size_t l = config.num_hidden_layers; l-- > 0;) {
    if (!config.is_kda(l)) mla_layer_ = l;
  }
}

// The pages of one MLA layer stand for those of all: they are made, shared and copied together.
std::span<const void* const> PrefixCache::pages_of(const Snapshot& s) const {
  if (mla_layer_ == kNone) return {};
  return s.state.latent(mla_layer_).page_pointers();
}

std::shared_ptr<const Snapshot> PrefixCache::find(std::span<const std::int32_t> prompt,
                                                  const CutPlan& plan, CacheUse use) {
  const auto found =
      index_.longest(prompt, [&](const Prefix& p) { return usable(p, plan, prompt.size(), use); });
  if (found == nullptr) return nullptr;
  Use& u = use_.at(found.get());
  u.clock = clock_;
  u.uses += 1;
  return std::static_pointer_cast<const Snapshot>(found);
}

bool PrefixCache::holds(const Prefix& prefix) const {
  const auto same = index_.same(prefix);
  return same != nullptr && (same->has_logits || !prefix.has_logits);
}

void PrefixCache::count_pages(const Snapshot& snapshot, bool add) {
  for (const void* page : pages_of(snapshot)) {
    if (add) {
      if (pages_[page]++ == 0) bytes_ += cost_.page_bytes;
    } else {
      const auto at = pages_.find(page);
      if (--at->second > 0) continue;
      pages_.erase(at);
      bytes_ -= cost_.page_bytes;
    }
  }
}

// Pages that no other state in here shares: they stand at the end.
std::size_t PrefixCache::own_pages(const Snapshot& snapshot) const {
  const auto pages = pages_of(snapshot);
  std::size_t n = 0;
  while (n < pages.size() && pages_.at(pages[pages.size() - 1 - n]) == 1) ++n;
  return n;
}

void PrefixCache::insert(std::shared_ptr<const Snapshot> snapshot) {
  Use use{clock_, 1};
  if (const auto same = index_.same(*snapshot)) {
    Use& u = use_.at(same.get());
    u.clock = clock_;
    if (same->has_logits || !snapshot->has_logits) return;
    use.uses = u.uses;
    erase(&as_snapshot(same));
  }
  count_pages(*snapshot, true);
  bytes_ += cost_.fixed;
  use_.emplace(snapshot.get(), use);
  index_.insert(std::move(snapshot));
}

void PrefixCache::erase(const Snapshot* snapshot) {
  count_pages(*snapshot, false);
  bytes_ -= cost_.fixed;
  use_.erase(snapshot);
  index_.erase(snapshot);
}

const Snapshot* PrefixCache::least(double& value) const {
  const Snapshot* worst = nullptr;
  std::vector<const Prefix*> shorter;  // the item's own beginnings, longest last
  for (const PrefixIndex::Item& item : index_.items()) {
    const Snapshot& s = as_snapshot(item);
    while (!shorter.empty()) {
      const auto& begin = shorter.back()->ids;
      if (begin.size() <= s.tokens() && std::equal(begin.begin(), begin.end(), s.ids.begin()))
        break;
      shorter.pop_back();
    }
    const std::size_t saved = s.tokens() - (shorter.empty() ? 0 : shorter.back()->tokens());
    const std::size_t freed = cost_.fixed + own_pages(s) * cost_.page_bytes;
    const Use& use = use_.at(&s);
    const double worth = use.clock + use.uses * static_cast<double>(saved) /
                                         static_cast<double>(std::max<std::size_t>(freed, 1));
    if (worst == nullptr || worth < value) {
      worst = &s;
      value = worth;
    }
    shorter.push_back(&s);
  }
  return worst;
}

void PrefixCache::shrink(std::size_t bytes) {
  while (bytes_ > bytes) {
    double value = 0;
    const Snapshot* worst = least(value);
    TRIAX_CHECK(worst != nullptr);
    clock_ = std::max(clock_, value);
    erase(worst);
    ++evictions_;
  }
}

}  // namespace triax
