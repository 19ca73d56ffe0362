// One line that says how far work has come, so that nothing is silent for longer than two seconds.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "triax/core/clock.h"

namespace triax::cli {

enum class Unit : std::uint8_t { tokens, bytes, items };

// "prompt: 42 %, 2,150 of 5,120 tokens, 310 tokens/s, 9.6 s to go"; total 0: not known.
std::string progress_line(std::string_view what, Unit unit, std::uint64_t done, std::uint64_t total,
                          double seconds);

struct ProgressStyle {
  bool in_place = false;     // rewrite one terminal line; otherwise a line each time
  bool beside_text = false;  // in place, behind text that streams to the same terminal
  double first = 1.8;        // seconds until the line is first shown
  double every = 1.8;        // and between two of them
  std::function<void(std::string_view)> write;

  // On stderr: in place where it is a terminal. `streams_text`: stdout is being written meanwhile.
  static ProgressStyle standard(bool streams_text = false);
};

// The line is written by a thread of its own, so it goes on while a pass takes long.
class Progress {
 public:
  Progress(std::string what, Unit unit, std::uint64_t total = 0,
           ProgressStyle style = ProgressStyle::standard());
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::uint64_t done, std::uint64_t total);
  void update(std::uint64_t done);
  // Text goes to stdout now: takes the line off a shared terminal, counts silence from here.
  void text_follows();
  double seconds() const { return watch_.seconds(); }

 private:
  void tick();
  void erase();

  std::string what_;
  Unit unit_;
  ProgressStyle style_;
  Stopwatch watch_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t done_ = 0, total_ = 0;
  double last_ = 0;     // when something was last to be seen
  bool shown_ = false;  // a line stands on the terminal
  bool first_ = true;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace triax::cli
