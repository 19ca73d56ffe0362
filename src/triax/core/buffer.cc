#include "triax/core/buffer.h"

namespace triax {

void* allocate_aligned(std::size_t bytes) {
  void* p = ::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow);
  if (p == nullptr) fail("out of memory: could not allocate {} bytes", bytes);
  return p;
}

}  // namespace triax
