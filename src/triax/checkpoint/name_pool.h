// Names of many tensors, stored in a few blocks, and a table that finds an entry by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "triax/checkpoint/tensor_entry.h"

namespace triax {

// Copies of strings; a returned view lives as long as the pool and moves with it.
class NamePool {
 public:
  std::string_view add(std::string_view text);
  void take(NamePool&& other);  // its views live on in this pool

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t left_ = 0;  // free bytes at the end of the last block
  char* at_ = nullptr;
};

// Open addressing over 32-bit positions in an array of entries: 8 to 16 bytes an entry.
class NameTable {
 public:
  // Builds the table. Returns the position of the first entry whose name came before, or
  // entries.size() when all names differ; after a duplicate the table is unusable.
  std::size_t build(std::span<const TensorEntry> entries);
  // Position of `name`, or npos.
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  std::size_t find(std::string_view name, std::span<const TensorEntry> entries) const;

 private:
  std::vector<std::uint32_t> slots_;  // position + 1; 0: free
};

}  // namespace triax
