// What a training shows while it runs: a line, and in a terminal the curve of its loss.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/cli/progress.h"
#include "triax/core/clock.h"
#include "triax/train/trainer.h"

namespace triax::cli {

// `values` as lines of braille dots, two a column and four a row, with the largest and the smallest
// value at the left; values are averaged to fit. width and height in characters.
std::vector<std::string> terminal_curve(const std::vector<double>& values, std::size_t width,
                                        std::size_t height);

// "step 120, 1.97M of 40.0M tokens (4.9 %): loss 3.412, 6,050 tokens/s, 203 GFLOP/s (22 % of
// peak), 1:44:10 to go".
struct TrainStatus {
  std::size_t step = 0;
  std::uint64_t tokens = 0, total = 0;
  double loss = 0, tokens_per_second = 0, gflops = 0;
  double peak_gflops = 0;  // of this machine; 0: not known
  bool qat = false;
};
std::string status_line(const TrainStatus& status);

class TrainView {
 public:
  TrainView(std::uint64_t total_tokens, double peak_gflops,
            ProgressStyle style = ProgressStyle::standard());
  ~TrainView();
  TrainView(const TrainView&) = delete;
  TrainView& operator=(const TrainView&) = delete;

  void line(std::string_view text);  // stays above what moves
  void preparing(std::string_view what, std::uint64_t done, std::uint64_t total);
  void step(const train::StepRecord& record);

 private:
  void erase();
  void draw();
  std::uint64_t total_;
  ProgressStyle style_;
  TrainStatus status_;
  std::vector<double> losses_;
  double seconds_ = 0, tokens_ = 0, operations_ = 0;  // decaying sums
  Stopwatch watch_;
  double last_ = -1e9;
  std::size_t drawn_ = 0;  // lines on the terminal
  std::size_t shown_ = 0;  // the last step that was drawn
};

}  // namespace triax::cli
