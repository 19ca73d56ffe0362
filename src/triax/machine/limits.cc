// Runs the loops of the instruction sets on all threads and takes the best time.
#include "triax/machine/limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "triax/core/clock.h"
#include "triax/core/error.h"
#include "triax/machine/isa/loops.h"

namespace triax {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Pages of its own, huge where the system gives them; huge-page aligned, not yet touched.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : mapped_(bytes + kHugePage) {
    at_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at_ == MAP_FAILED) {
      fail("no memory for the {} MiB that the read bandwidth is measured on; ask for fewer",
           bytes >> 20);
    }
    ::madvise(at_, mapped_, MADV_HUGEPAGE);  // without huge pages the figure is a little lower
  }
  ~Pages() { ::munmap(at_, mapped_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* data() const {
    const auto address = reinterpret_cast<std::uintptr_t>(at_);
    return static_cast<char*>(at_) + (kHugePage - address % kHugePage) % kHugePage;
  }

 private:
  std::size_t mapped_;
  void* at_ = nullptr;
};

// The widest loads that the set in use allows.
const LimitLoops& widest_reader(Isa isa) {
  for (int i = static_cast<int>(isa); i > 0; --i) {
    const LimitLoops& loops = limit_loops(static_cast<Isa>(i));
    if (loops.read != nullptr) return loops;
  }
  return limit_loops(Isa::scalar);
}

// Operations per second of `rounds` rounds on every thread at once.
double run_on_all(ThreadPool& pool, const LimitLoops& loops, std::size_t rounds) {
  const std::size_t threads = pool.threads();
  const Stopwatch watch;
  pool.parallel_for(threads, [&](std::size_t, std::size_t) { loops.multiply_add(rounds); });
  const double seconds = watch.seconds();
  return static_cast<double>(threads) * loops.multiply_add(1) * static_cast<double>(rounds) /
         seconds;
}

double peak_of(ThreadPool& pool, const LimitLoops& loops) {
  constexpr double kTarget = 0.01;  // seconds a run
  std::size_t rounds = 1000;
  for (;;) {  // also brings the clock up
    const Stopwatch watch;
    loops.multiply_add(rounds);
    if (watch.seconds() > kTarget) break;
    rounds *= 2;
  }
  double best = 0;
  for (int run = 0; run < 5; ++run) best = std::max(best, run_on_all(pool, loops, rounds));
  return best;
}

}  // namespace

const LimitLoops& limit_loops(Isa isa) {
  TRIAX_CHECK(isa_available(isa));
  switch (isa) {
    case Isa::scalar:
      break;
    case Isa::avx2:
      return *limits_avx2();
    case Isa::avx512:
      return *limits_avx512();
    case Isa::avx512bf16:
      return *limits_avx512bf16();
    case Isa::amx:
      return *limits_amx();
  }
  return *limits_scalar();
}

Peak measure_peak(ThreadPool& pool, Isa isa) {
  Peak best;
  for (int i = 0; i <= static_cast<int>(isa); ++i) {
    const LimitLoops& loops = limit_loops(static_cast<Isa>(i));
    const double rate = peak_of(pool, loops);
    if (rate > best.operations_per_second) best = {rate, loops.instruction};
  }
  return best;
}

double measure_read_bandwidth(ThreadPool& pool, std::size_t bytes, int runs) {
  TRIAX_CHECK(bytes > 0 && runs > 0);
  // More parts than threads: a thread that is held up takes fewer.
  const std::size_t parts = pool.threads() * 8;
  const std::size_t part = std::max(bytes / parts / kReadBlock, std::size_t{1}) * kReadBlock;
  const Pages pages(parts * part);
  // Written, or every page would be the one page of zeros.
  pool.parallel_for(parts, [&](std::size_t i, std::size_t) {
    std::memset(pages.data() + i * part, static_cast<int>(i % 127) + 1, part);
  });
  const LimitLoops& loops = widest_reader(kernels().isa);
  std::vector<std::uint64_t> sums(parts);
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) {
    const Stopwatch watch;
    pool.parallel_for(parts, [&](std::size_t i, std::size_t) {
      sums[i] = loops.read(pages.data() + i * part, part);
    });
    best = std::min(best, watch.seconds());
  }
  return static_cast<double>(parts * part) / best;
}

}  // namespace triax
