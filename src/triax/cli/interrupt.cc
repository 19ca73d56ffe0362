// Ctrl-C as a question that a loop asks.
#include "triax/cli/interrupt.h"

namespace triax::cli {
namespace {

volatile std::sig_atomic_t seen = 0;  // a signal handler can reach nothing but a global

void on_interrupt(int) {
  seen = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  seen = 0;
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_, nullptr);
}

InterruptShield::InterruptShield() {
  struct sigaction action{};
  action.sa_handler = SIG_IGN;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

InterruptShield::~InterruptShield() {
  sigaction(SIGINT, &before_, nullptr);
}

bool interrupted() {
  return seen != 0;
}

}  // namespace triax::cli
