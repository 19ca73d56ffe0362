// Scratch memory of one thread of control: temporaries of a step are taken here and given back
// together. Ops take from it before they hand work to the pool; kernels never do.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "triax/core/buffer.h"
#include "triax/core/view.h"

namespace triax {

class Arena {
 public:
  // Everything taken after a Scope opens is given back when it closes.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), chunk_(arena.chunk_), used_(arena.used_) {}
    ~Scope() { arena_.rewind(chunk_, used_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    std::size_t chunk_, used_;
  };

  // `count` uninitialised elements, aligned to 64 bytes.
  template <class T>
  std::span<T> take(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    return {static_cast<T*>(take_bytes(checked_mul(count, sizeof(T)))), count};
  }
  template <class T>
  Mat<T> take_mat(std::size_t rows, std::size_t cols) {
    return Mat<T>(take<T>(checked_mul(rows, cols)).data(), {rows, cols});
  }

  std::size_t peak_bytes() const { return peak_; }

 private:
  struct Chunk {
    std::unique_ptr<std::byte[], AlignedFree> data;
    std::size_t size = 0;
  };
  void* take_bytes(std::size_t bytes);
  void rewind(std::size_t chunk, std::size_t used);

  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // the chunk in use
  std::size_t used_ = 0;   // bytes taken from it
  std::size_t peak_ = 0;   // most bytes ever taken at once, over all chunks
};

}  // namespace triax
