#include "triax/core/huge_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "triax/core/checked.h"

namespace triax {

HugeBuffer::HugeBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  mapped_ = checked_add(bytes, kHugePage - 1) / kHugePage * kHugePage;
  const std::size_t asked = checked_add(mapped_, kHugePage);  // room to find an aligned start in
  void* at = ::mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    fail("no memory for {} bytes of weights: {}; close other programs or leave the weights mapped",
         bytes, std::strerror(errno));
  }
  auto* begin = static_cast<std::byte*>(at);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(at) % kHugePage;
  const std::size_t before = past == 0 ? 0 : kHugePage - past;
  data_ = begin + before;
  if (before != 0) ::munmap(begin, before);
  ::munmap(data_ + mapped_, asked - before - mapped_);
  // A hint: without huge pages everything works the same, more slowly.
  (void)::madvise(data_, mapped_, MADV_HUGEPAGE);
}

HugeBuffer::~HugeBuffer() {
  if (data_ != nullptr) ::munmap(data_, mapped_);
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

}  // namespace triax
