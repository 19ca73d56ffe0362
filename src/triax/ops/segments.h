// A ragged batch: the rows of several sequences lie one after the other in every activation matrix.
#pragma once

#include <cstddef>
#include <span>

#include "triax/core/dtype.h"

namespace triax {

// Rows [begin, begin + rows) of the batch belong to one sequence, oldest first.
struct Segment {
  std::size_t begin = 0;
  std::size_t rows = 0;
};

// A sequence's compact MLA cache of one layer, as the attention reads it: pages of `page_tokens`
// rows of `width` = kv_lora_rank + qk_rope_head_dim values (normed latent c, then the shared key
// channels), float32 or BF16. Token t lies in pages[t / page_tokens], row t % page_tokens.
struct LatentView {
  std::span<const void* const> pages;
  std::size_t page_tokens = 0;
  std::size_t width = 0;
  DType dtype = DType::F32;
  std::size_t tokens = 0;  // valid tokens, those of this pass included
};

}  // namespace triax
