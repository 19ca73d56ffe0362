// The compact MLA cache of one sequence: pages of tokens, shared copy-on-write between forks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "triax/core/buffer.h"
#include "triax/core/dtype.h"

namespace triax {

inline constexpr std::size_t kPageTokens = 64;

// Rows of `width` = kv_lora_rank + qk_rope_head_dim values, float32 or BF16, of one MLA layer.
class LatentCache {
 public:
  LatentCache(std::size_t width, DType dtype) : width_(width), dtype_(dtype) {}

  // Makes room for `rows` tokens after the `tokens` already there, and makes the page they start in
  // this cache's own. May throw (memory); changes nothing a reader sees.
  void reserve(std::size_t tokens, std::size_t rows);
  // Writable storage of token t; reserve() covered it.
  std::byte* row(std::size_t t) {
    return pages_[t / kPageTokens]->data() + (t % kPageTokens) * row_bytes();
  }
  const std::byte* row(std::size_t t) const {
    return pages_[t / kPageTokens]->data() + (t % kPageTokens) * row_bytes();
  }
  // Gives back the pages past the first `tokens`.
  void truncate(std::size_t tokens);

  std::span<const void* const> page_pointers() const { return pointers_; }
  std::size_t width() const { return width_; }
  DType dtype() const { return dtype_; }
  std::size_t row_bytes() const { return width_ * dtype_size(dtype_); }
  std::size_t pages() const { return pages_.size(); }

 private:
  using Page = Buffer<std::byte>;
  std::size_t width_;
  DType dtype_;
  std::vector<std::shared_ptr<Page>> pages_;
  std::vector<const void*> pointers_;  // pages_[i]->data(), as the attention reads them
};

}  // namespace triax
