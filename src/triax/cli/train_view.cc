// Drawing a training's progress.
#include "triax/cli/train_view.h"

#include <algorithm>
#include <cmath>

#include "triax/cli/format.h"

namespace triax::cli {
namespace {

constexpr double kPlainEvery = 5;  // seconds between two lines where there is no terminal
constexpr double kInPlaceEvery = 0.5;
constexpr double kMemory = 0.9;  // of speeds, a step
constexpr std::size_t kCurveWidth = 72, kCurveHeight = 8;

std::string millions(std::uint64_t n) {
  if (n < 1000000) return grouped(n);
  return fmt::format("{:.2f}M", static_cast<double>(n) / 1e6);
}

// U+2800 and the dots set in `bits`.
void append_braille(unsigned bits, std::string& out) {
  const unsigned code = 0x2800 + bits;
  out += static_cast<char>(0xE0 | (code >> 12));
  out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
  out += static_cast<char>(0x80 | (code & 0x3F));
}

}  // namespace

std::vector<std::string> terminal_curve(const std::vector<double>& values, std::size_t width,
                                        std::size_t height) {
  std::vector<double> finite;
  for (const double v : values) {
    if (std::isfinite(v)) finite.push_back(v);
  }
  if (finite.empty() || width == 0 || height == 0) return {};
  const std::size_t columns = std::min(2 * width, finite.size()), dots = 4 * height;
  std::vector<double> at(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t begin = c * finite.size() / columns;
    const std::size_t end = (c + 1) * finite.size() / columns;
    for (std::size_t i = begin; i < end; ++i) at[c] += finite[i];
    at[c] /= static_cast<double>(end - begin);
  }
  const auto [low, high] = std::minmax_element(at.begin(), at.end());
  // bits of a cell, left column from the top, then the right one
  constexpr unsigned kBits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
  std::vector<std::vector<unsigned>> cells(height, std::vector<unsigned>(width));
  for (std::size_t c = 0; c < columns; ++c) {
    const double share = *high > *low ? (*high - at[c]) / (*high - *low) : 0.5;
    const auto dot = static_cast<std::size_t>(std::lround(share * static_cast<double>(dots - 1)));
    cells[dot / 4][c / 2] |= kBits[c % 2][dot % 4];
  }
  std::vector<std::string> out;
  for (std::size_t r = 0; r < height; ++r) {
    std::string line = r == 0            ? fmt::format("{:7.3f} ", *high)
                       : r + 1 == height ? fmt::format("{:7.3f} ", *low)
                                         : std::string(8, ' ');
    for (const unsigned bits : cells[r]) append_braille(bits, line);
    out.push_back(std::move(line));
  }
  return out;
}

std::string status_line(const TrainStatus& s) {
  std::string out =
      fmt::format("step {}, {} of {} tokens ({:.1f} %): loss {:.3f}, {} tokens/s, {} GFLOP/s",
                  grouped(s.step), millions(s.tokens), millions(s.total),
                  100 * static_cast<double>(s.tokens) /
                      static_cast<double>(std::max<std::uint64_t>(s.total, 1)),
                  s.loss, human_rate(s.tokens_per_second), human_rate(s.gflops));
  if (s.peak_gflops > 0) out += fmt::format(" ({:.0f} % of peak)", 100 * s.gflops / s.peak_gflops);
  if (s.qat) out += ", QAT";
  if (s.tokens < s.total && s.tokens_per_second > 0) {
    out += fmt::format(
        ", {} to go", human_seconds(static_cast<double>(s.total - s.tokens) / s.tokens_per_second));
  }
  return out;
}

TrainView::TrainView(std::uint64_t total_tokens, double peak_gflops, ProgressStyle style)
    : total_(total_tokens), style_(std::move(style)) {
  status_.total = total_;
  status_.peak_gflops = peak_gflops;
}

TrainView::~TrainView() {
  if (status_.step > shown_) draw();  // what it came to stays to be read
  if (drawn_ > 0) style_.write("\n");
}

void TrainView::erase() {
  if (drawn_ == 0) return;
  style_.write(drawn_ == 1 ? "\r\033[K" : fmt::format("\r\033[{}A\033[J", drawn_ - 1));
  drawn_ = 0;
}

void TrainView::line(std::string_view text) {
  erase();
  style_.write(fmt::format("{}\n", text));
  if (style_.in_place && status_.step > 0) draw();
}

void TrainView::preparing(std::string_view what, std::uint64_t done, std::uint64_t total) {
  const double now = watch_.seconds();
  if (now - last_ < (style_.in_place ? kInPlaceEvery : kPlainEvery) && done != total) return;
  last_ = now;
  const std::string text = fmt::format(
      "{}: {} of {} ({:.0f} %)", what, grouped(done), grouped(total),
      100 * static_cast<double>(done) / static_cast<double>(std::max<std::uint64_t>(total, 1)));
  if (!style_.in_place) {
    if (done != total) style_.write(text + "\n");
    return;
  }
  erase();
  style_.write(text);
  drawn_ = 1;
  if (done == total) erase();
}

void TrainView::draw() {
  erase();
  shown_ = status_.step;
  const std::string text = status_line(status_);
  if (!style_.in_place) {
    style_.write(text + "\n");
    return;
  }
  const std::vector<std::string> curve = terminal_curve(losses_, kCurveWidth, kCurveHeight);
  std::string all;
  for (const std::string& row : curve) all += row + "\n";
  style_.write(all + text);
  drawn_ = curve.size() + 1;
}

void TrainView::step(const train::StepRecord& r) {
  seconds_ = kMemory * seconds_ + r.seconds;
  tokens_ = kMemory * tokens_ + static_cast<double>(r.step_tokens);
  operations_ = kMemory * operations_ + r.gflops * r.seconds;
  losses_.push_back(r.loss);
  status_.step = r.step;
  status_.tokens = r.tokens;
  status_.loss = r.loss;
  status_.qat = r.qat;
  status_.tokens_per_second = tokens_ / std::max(seconds_, 1e-9);
  status_.gflops = operations_ / std::max(seconds_, 1e-9);
  const double now = watch_.seconds();
  if (now - last_ < (style_.in_place ? kInPlaceEvery : kPlainEvery) && losses_.size() > 1) return;
  last_ = now;
  draw();
}

}  // namespace triax::cli
