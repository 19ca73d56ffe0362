// Runs the binary as at a terminal: a pseudo terminal that keys are typed into.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace triax::test {

class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& args);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Types when the program takes single keys (its prompt is up), or, `at_once`, whatever it does.
  void type(const std::string& keys, bool at_once = false);
  // Waits until `text` has been shown `times` times in all; false when the program ends before, or
  // after a long time without it.
  bool shows(const std::string& text, std::size_t times = 1);
  // Waits for the end of the program: its exit code, 128 + signal when one ended it.
  int wait();

  const std::string& screen() const { return screen_; }  // all that was shown

 private:
  bool read_some();

  pid_t child_ = -1;
  int fd_ = -1;
  std::string screen_;
};

}  // namespace triax::test
