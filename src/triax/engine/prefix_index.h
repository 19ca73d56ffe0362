// Beginnings of token sequences in lexicographic order: which of them begin a prompt?
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "triax/engine/cuts.h"
#include "triax/engine/request.h"

namespace triax {

// What is known of a state without looking into it.
struct Prefix {
  std::vector<std::int32_t> ids;
  Trail trail;
  // Set when some of the ids were generated: up to here the trail is that of a prompt's own plan,
  // cuts of which any longer prompt has too. kNone: all of it is.
  std::size_t free_from = kNone;
  bool has_logits = false;  // of the last token: a prompt that ends here needs them

  std::size_t tokens() const { return ids.size(); }
};

// May a request with this plan of `prompt_tokens` go on from the state? Its ids are known to begin
// the prompt.
bool usable(const Prefix& prefix, const CutPlan& plan, std::size_t prompt_tokens, CacheUse use);

// Ids are always compared in full.
class PrefixIndex {
 public:
  using Item = std::shared_ptr<const Prefix>;

  // An item with the same ids and trail, or null.
  Item same(const Prefix& prefix) const;
  void insert(Item item);
  void erase(const Prefix* item);

  // The longest item whose ids begin with, or are, `ids`, and that `accept` takes.
  Item longest(std::span<const std::int32_t> ids,
               const std::function<bool(const Prefix&)>& accept) const;
  // Tokens that `ids` has in common with the item most alike.
  std::size_t common(std::span<const std::int32_t> ids) const;

  // In lexicographic order: an item stands behind all its own beginnings.
  const std::vector<Item>& items() const { return items_; }

 private:
  // The first item past those that begin with, or are less than, `ids`.
  std::size_t upper(std::span<const std::int32_t> ids) const;

  std::vector<Item> items_;
};

// Tokens at the start that two sequences have in common.
std::size_t common_tokens(std::span<const std::int32_t> a, std::span<const std::int32_t> b);

}  // namespace triax
