#include "triax/engine/prefix_index.h"

#include <algorithm>

namespace triax {

std::size_t common_tokens(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const std::size_t n = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first -
      a.begin());
}

bool usable(const Prefix& prefix, const CutPlan& plan, std::size_t prompt_tokens, CacheUse use) {
  const std::size_t n = prefix.tokens();
  if (n == 0 || n > prompt_tokens || (n == prompt_tokens && !prefix.has_logits)) return false;
  if (use == CacheUse::none || use == CacheUse::any) return use == CacheUse::any;
  const std::size_t common = prefix.trail.common(plan);
  if (common == n) return true;
  return use == CacheUse::turns && prefix.free_from != kNone && common >= prefix.free_from;
}

std::size_t PrefixIndex::upper(std::span<const std::int32_t> ids) const {
  const auto found = std::upper_bound(
      items_.begin(), items_.end(), ids, [](std::span<const std::int32_t> key, const Item& item) {
        return std::lexicographical_compare(key.begin(), key.end(), item->ids.begin(),
                                            item->ids.end());
      });
  return static_cast<std::size_t>(found - items_.begin());
}

PrefixIndex::Item PrefixIndex::same(const Prefix& prefix) const {
  for (std::size_t i = upper(prefix.ids); i > 0 && items_[i - 1]->ids == prefix.ids; --i) {
    if (items_[i - 1]->trail == prefix.trail) return items_[i - 1];
  }
  return nullptr;
}

void PrefixIndex::insert(Item item) {
  const std::size_t at = upper(item->ids);
  items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(at), std::move(item));
}

void PrefixIndex::erase(const Prefix* item) {
  std::erase_if(items_, [&](const Item& i) { return i.get() == item; });
}

PrefixIndex::Item PrefixIndex::longest(std::span<const std::int32_t> ids,
                                       const std::function<bool(const Prefix&)>& accept) const {
  // All items that begin `ids` stand before it. Going down, an item that parts from it after l
  // tokens shows that the rest of them begin its first l tokens.
  std::size_t at = upper(ids);
  while (at > 0) {
    const Prefix& item = *items_[at - 1];
    const std::size_t l = common_tokens(item.ids, ids);
    if (l == item.tokens()) {
      if (accept(item)) return items_[at - 1];
      --at;
    } else if (l == ids.size()) {  // cannot be: the item would stand behind
      --at;
    } else {
      ids = ids.first(l);
      at = std::min(at - 1, upper(ids));
    }
  }
  return nullptr;
}

std::size_t PrefixIndex::common(std::span<const std::int32_t> ids) const {
  const std::size_t at = upper(ids);
  std::size_t best = 0;
  if (at > 0) best = common_tokens(items_[at - 1]->ids, ids);
  if (at < items_.size()) best = std::max(best, common_tokens(items_[at]->ids, ids));
  return best;
}

}  // namespace triax
