// Owning, aligned, zero-initialised memory.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "triax/core/checked.h"
#include "triax/core/view.h"

namespace triax {

inline constexpr std::size_t kAlignment = 64;  // bytes: one cache line, one 512-bit vector

struct AlignedFree {
  void operator()(void* p) const { ::operator delete(p, std::align_val_t{kAlignment}); }
};

// `count` elements of a trivial type, zero at the start. Movable; copies are explicit (clone()).
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t count);
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::span<T> span() { return {data(), size_}; }
  std::span<const T> span() const { return {data(), size_}; }
  Buffer clone() const;
  void clear();  // all zeros

 private:
  std::unique_ptr<T[], AlignedFree> data_;
  std::size_t size_ = 0;
};

// Raw aligned allocation behind Buffer and Arena; throws Error when the system has no memory.
void* allocate_aligned(std::size_t bytes);

template <class T>
Buffer<T>::Buffer(std::size_t count) : size_(count) {
  data_.reset(static_cast<T*>(allocate_aligned(checked_mul(count, sizeof(T)))));
  clear();
}

template <class T>
Buffer<T> Buffer<T>::clone() const {
  Buffer out(size_);
  if (size_ != 0) __builtin_memcpy(out.data(), data(), bytes());
  return out;
}

template <class T>
void Buffer<T>::clear() {
  if (size_ != 0) __builtin_memset(static_cast<void*>(data()), 0, bytes());
}

}  // namespace triax
