// One pool of threads for the arithmetic of a step.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace triax {

// A non-owning reference to a callable (item, worker) -> void. Valid while the callable lives.
class WorkRef {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, WorkRef>)
  WorkRef(F&& f)  // NOLINT: implicit on purpose
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* o, std::size_t item, std::size_t worker) {
          (*static_cast<std::remove_reference_t<F>*>(o))(item, worker);
        }) {}
  void operator()(std::size_t item, std::size_t worker) const { call_(object_, item, worker); }

 private:
  void* object_;
  void (*call_)(void*, std::size_t, std::size_t);
};

// Work items are taken one by one from a shared counter, so a slow core takes fewer. The result of
// an item may depend on the item alone, never on which worker ran it or on how many there are:
// that is what makes every result equal for any number of threads.
class ThreadPool {
 public:
  explicit ThreadPool(std::size_t threads);  // the caller counts as one; at least 1
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t threads() const;

  // Calls work(item, worker) for every item in [0, items), worker in [0, threads()). Returns when
  // all are done. Not nested; work must not throw. Subnormal numbers are flushed to zero meanwhile.
  void parallel_for(std::size_t items, WorkRef work);

  // Cores this process may use: affinity and cgroup quota.
  static std::size_t available_cores();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace triax
