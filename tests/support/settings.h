// Running an operation under every instruction set of this machine and several numbers of threads.
// Header only; the test program links triax_kernels.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "support/compare.h"
#include "triax/core/context.h"
#include "triax/kernels/kernels.h"

namespace triax::test {

// A Context that owns what it refers to.
class Runner {
 public:
  explicit Runner(std::size_t threads, Precision precision = Precision::f32)
      : pool_(threads), context_{pool_, arena_, precision, nullptr} {
    // Scratch memory starts as NaN: an operation that reads what it has not written shows.
    const Arena::Scope scope(arena_);
    const std::span<float> all = arena_.take<float>(std::size_t{1} << 19);
    std::fill(all.begin(), all.end(), std::numeric_limits<float>::quiet_NaN());
  }
  operator Context&() { return context_; }  // NOLINT: implicit on purpose
  Context& context() { return context_; }

 private:
  ThreadPool pool_;
  Arena arena_;
  Context context_;
};

// f() under each instruction set that this machine has; the table in use is restored afterwards.
template <class F>
void for_each_isa(F&& f) {
  const Isa before = kernels().isa;
  for (int i = 0; i < kIsaCount; ++i) {
    const Isa isa = static_cast<Isa>(i);
    if (!isa_available(isa)) continue;
    use_isa(isa);
    SCOPED_TRACE("instruction set " + std::string(isa_name(isa)));
    f();
  }
  use_isa(before);
}

// op(Context&) -> std::vector<float> with 1, 2, 3 and 5 threads under each instruction set. The
// thread counts must agree in every bit; check(result) looks at the one of each instruction set.
template <class Op, class Check>
void for_each_setting(Precision precision, Op&& op, Check&& check) {
  for_each_isa([&] {
    Runner one(1, precision);
    const std::vector<float> result = op(one.context());
    check(result);
    for (const std::size_t threads : {2u, 3u, 5u}) {
      Runner several(threads, precision);
      EXPECT_TRUE(same_bits(op(several.context()), result)) << threads << " threads";
    }
  });
}

template <class T>
Mat<const T> as_mat(const std::vector<T>& data, std::size_t cols) {
  return Mat<const T>(data.data(), {data.size() / cols, cols});
}
template <class T>
Mat<T> as_mat(std::vector<T>& data, std::size_t cols) {
  return Mat<T>(data.data(), {data.size() / cols, cols});
}

}  // namespace triax::test
