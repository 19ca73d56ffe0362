// Owning memory in huge pages, for weights that every token reads from end to end.
#pragma once

#include <cstddef>

namespace triax {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes

// Zeroed anonymous memory that begins at a multiple of 2 MiB and asks for pages of that size; where
// the system has none to give it is made of ordinary pages, which changes no result. A page takes
// memory when it is first written to. Movable.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  explicit HugeBuffer(std::size_t bytes);  // throws Error when the system has no room
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }  // bytes, as asked for

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;  // size_ rounded up to whole huge pages
};

}  // namespace triax
