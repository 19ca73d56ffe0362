#include "triax/state/latent_cache.h"

#include "triax/core/checked.h"

namespace triax {

void LatentCache::reserve(std::size_t tokens, std::size_t rows) {
  const std::size_t end = checked_add(tokens, rows);
  const std::size_t want = (end + kPageTokens - 1) / kPageTokens;
  const std::size_t page_bytes = checked_mul(kPageTokens, row_bytes());
  const std::size_t first = tokens / kPageTokens;
  // The page that new rows go into may be shared with a fork: take a copy of it.
  if (rows > 0 && first < pages_.size() && pages_[first].use_count() > 1) {
    pages_[first] = std::make_shared<Page>(pages_[first]->clone());
    pointers_[first] = pages_[first]->data();
  }
  pages_.reserve(want);
  pointers_.reserve(want);
  while (pages_.size() < want) {
    pages_.push_back(std::make_shared<Page>(page_bytes));
    pointers_.push_back(pages_.back()->data());
  }
}

void LatentCache::truncate(std::size_t tokens) {
  const std::size_t keep = (tokens + kPageTokens - 1) / kPageTokens;
  if (keep >= pages_.size()) return;
  pages_.resize(keep);
  pointers_.resize(keep);
}

}  // namespace triax
