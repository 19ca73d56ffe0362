// What this machine can do at most: the roofline that kernels and whole runs are held against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "triax/core/thread_pool.h"
#include "triax/kernels/kernels.h"

namespace triax {

// Loops of one instruction set, for the calling thread.
struct LimitLoops {
  const char* name;         // "avx512bf16"
  const char* instruction;  // "vdpbf16ps, 512-bit"
  // Runs `rounds` rounds of independent multiply-adds that stay in registers; returns the
  // operations done (a multiply-add is two).
  double (*multiply_add)(std::size_t rounds);
  // Reads n bytes, n a multiple of kReadBlock, with the widest loads of the set; returns something
  // that depends on all of them. Null in sets that read no wider than the one before.
  std::uint64_t (*read)(const void* p, std::size_t n);
};
inline constexpr std::size_t kReadBlock = 1024;

// The set must be available (isa_available).
const LimitLoops& limit_loops(Isa isa);

struct Peak {
  double operations_per_second = 0;
  const char* instruction = "";
};
// The fastest multiply-add of BF16 or float32 inputs with float32 sums that `isa` and the sets
// before it offer, on all threads of the pool at once. The best of a few runs of some 10 ms.
Peak measure_peak(ThreadPool& pool, Isa isa);

// Bytes per second that all threads of the pool read together from a warm buffer in huge pages,
// each its own part; the best of `runs`. Buffers beyond the caches only: 1 GiB and more say what
// memory gives. Throws Error when there is no room for the buffer, which is freed on return.
double measure_read_bandwidth(ThreadPool& pool, std::size_t bytes, int runs = 5);

}  // namespace triax
