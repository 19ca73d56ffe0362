#include "triax/core/buffer.h"

#include <sys/mman.h>

#include <cstdint>

namespace triax {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Weights, states and scratch run through megabytes: in pages of 2 MiB, where the system has them,
// the processor looks up far fewer. A hint, on the whole huge pages inside.
void ask_for_huge_pages(void* p, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  const std::uintptr_t begin = (at + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (at + bytes) / kHugePage * kHugePage;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  void* p = ::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow);
  if (p == nullptr) fail("out of memory: could not allocate {} bytes", bytes);
  if (bytes >= kHugePage) ask_for_huge_pages(p, bytes);
  return p;
}

}  // namespace triax
