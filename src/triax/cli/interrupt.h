// Ctrl-C as a question that a loop asks.
#pragma once

#include <csignal>

namespace triax::cli {

// While it lives, the first Ctrl-C only makes interrupted() true; a second one ends the program. A
// new one starts without any.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_{};
};

// While it lives, Ctrl-C does nothing, but where an InterruptGuard lives too.
class InterruptShield {
 public:
  InterruptShield();
  ~InterruptShield();
  InterruptShield(const InterruptShield&) = delete;
  InterruptShield& operator=(const InterruptShield&) = delete;

 private:
  struct sigaction before_{};
};

bool interrupted();
// Thrown where Ctrl-C ends a command that leaves nothing behind.
struct Interrupted {};
inline constexpr int kInterruptedExit = 130;

}  // namespace triax::cli
