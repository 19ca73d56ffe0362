// Limits of compiling: time and memory, so that no schema can hold up a server.
#pragma once

#include <cstddef>

#include "triax/core/checked.h"
#include "triax/core/clock.h"
#include "triax/core/error.h"

namespace triax::grammar {

struct GrammarLimits {
  double seconds = 2;
  std::size_t bytes = std::size_t{64} << 20;  // of automata, about
};

// What compiling one grammar may still use. Throws Error when a limit is passed.
class Budget {
 public:
  explicit Budget(const GrammarLimits& limits) : limits_(limits) {}

  // Takes memory, and looks at the clock now and then.
  void use(std::size_t bytes) {
    used_ = checked_add(used_, bytes);
    if (used_ > limits_.bytes) {
      fail("the schema is too large: its automata pass {} MiB; make it smaller or looser",
           limits_.bytes >> 20);
    }
    tick();
  }

  void tick() {
    if (++ticks_ % 64 != 0) return;
    if (clock_.seconds() > limits_.seconds) {
      fail("the schema takes longer than {} s to compile; make it smaller or looser",
           limits_.seconds);
    }
  }

  std::size_t used() const { return used_; }

 private:
  GrammarLimits limits_;
  std::size_t used_ = 0;
  std::size_t ticks_ = 0;
  Stopwatch clock_;
};

}  // namespace triax::grammar
