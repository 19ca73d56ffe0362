#include "triax/core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace triax {
namespace {

// How long a worker looks for new work before it sleeps. A step has a barrier every few tens of
// microseconds; sleeping there costs more than it saves, spinning for longer starves others.
constexpr int kSpins = 2000;

inline void relax() {
  __builtin_ia32_pause();
}

// Subnormal numbers count as zero inside a step, on every thread alike: a decaying KDA state runs
// through them, and they cost a hundred times a normal number.
constexpr unsigned int kFlushSubnormals = 0x8040;  // MXCSR bits FTZ and DAZ

class FlushSubnormals {
 public:
  FlushSubnormals() : saved_(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr(saved_ | kFlushSubnormals);
  }
  ~FlushSubnormals() { __builtin_ia32_ldmxcsr(saved_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned int saved_;
};

}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> workers;
  // One parallel_for: `generation` moves on when `work` and `items` are set.
  alignas(64) std::atomic<std::uint32_t> generation{0};
  alignas(64) std::atomic<std::size_t> next{0};
  alignas(64) std::atomic<std::uint32_t> running{
      0};  // workers that have not finished this generation
  const WorkRef* work = nullptr;
  std::size_t items = 0;
  bool stop = false;

  void run_items(std::size_t worker) {
    const WorkRef call = *work;
    const std::size_t n = items;
    for (std::size_t i = next.fetch_add(1, std::memory_order_relaxed); i < n;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      call(i, worker);
    }
  }

  void worker_main(std::size_t worker) {
    const FlushSubnormals flush;
    std::uint32_t seen = 0;
    for (;;) {
      std::uint32_t now = generation.load(std::memory_order_acquire);
      for (int spin = 0; now == seen && spin < kSpins; ++spin) {
        relax();
        now = generation.load(std::memory_order_acquire);
      }
      while (now == seen) {
        generation.wait(seen, std::memory_order_acquire);
        now = generation.load(std::memory_order_acquire);
      }
      seen = now;
      if (stop) return;
      run_items(worker);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }

  void publish() {
    running.store(static_cast<std::uint32_t>(workers.size()), std::memory_order_relaxed);
    next.store(0, std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
  }

  void wait_done() {
    std::uint32_t left = running.load(std::memory_order_acquire);
    for (int spin = 0; left != 0 && spin < kSpins; ++spin) {
      relax();
      left = running.load(std::memory_order_acquire);
    }
    while (left != 0) {
      running.wait(left, std::memory_order_acquire);
      left = running.load(std::memory_order_acquire);
    }
  }
};

ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>()) {
  for (std::size_t i = 1; i < std::max<std::size_t>(threads, 1); ++i) {
    state_->workers.emplace_back([s = state_.get(), i] { s->worker_main(i); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop = true;
  state_->publish();
  for (std::thread& t : state_->workers) t.join();
}

std::size_t ThreadPool::threads() const {
  return state_->workers.size() + 1;
}

void ThreadPool::parallel_for(std::size_t items, WorkRef work) {
  if (items == 0) return;
  const FlushSubnormals flush;
  if (items == 1 || state_->workers.empty()) {
    for (std::size_t i = 0; i < items; ++i) work(i, 0);
    return;
  }
  state_->work = &work;
  state_->items = items;
  state_->publish();
  state_->run_items(0);
  state_->wait_done();
}

std::size_t ThreadPool::available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    cores = std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT(&set)));
  }
  // cgroup v2: "QUOTA PERIOD" in microseconds, or "max PERIOD"
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    const double allowed = std::ceil(std::strtod(quota.c_str(), nullptr) / period);
    if (allowed >= 1) cores = std::min(cores, static_cast<std::size_t>(allowed));
  }
  return cores;
}

}  // namespace triax
