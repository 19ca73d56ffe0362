// The status line and the thread that writes it.
#include "triax/cli/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "triax/cli/format.h"
#include "triax/core/error.h"

namespace triax::cli {

std::string progress_line(std::string_view what, Unit unit, std::uint64_t done, std::uint64_t total,
                          double seconds) {
  const auto amount = [unit](std::uint64_t n) {
    return unit == Unit::bytes ? human_bytes(n) : grouped(n);
  };
  const std::string_view name = unit == Unit::bytes    ? ""
                                : unit == Unit::tokens ? " tokens"
                                                       : " items";
  if (done == 0 && total == 0) return fmt::format("{}: {}", what, human_seconds(seconds));
  std::string out = fmt::format("{}: ", what);
  if (total > 0) {
    const double part = static_cast<double>(done) / static_cast<double>(total);
    out += fmt::format("{:.0f} %, {} of {}{}", 100 * part, amount(done), amount(total), name);
  } else {
    out += amount(done) + std::string(name);
  }
  if (done == 0 || seconds <= 0) return out + ", " + human_seconds(seconds);
  const double rate = static_cast<double>(done) / seconds;
  out += unit == Unit::bytes ? fmt::format(", {}/s", human_bytes(static_cast<std::uint64_t>(rate)))
                             : fmt::format(", {}{}/s", human_rate(rate), name);
  if (done < total) {
    out += fmt::format(", {} to go", human_seconds(static_cast<double>(total - done) / rate));
  }
  return out;
}

ProgressStyle ProgressStyle::standard(bool streams_text) {
  ProgressStyle style;
  style.in_place = ::isatty(STDERR_FILENO) == 1;
  style.beside_text = style.in_place && streams_text && ::isatty(STDOUT_FILENO) == 1;
  if (style.in_place && !style.beside_text) {
    style.first = 0.5;
    style.every = 0.2;
  }
  style.write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  return style;
}

Progress::Progress(std::string what, Unit unit, std::uint64_t total, ProgressStyle style)
    : what_(std::move(what)), unit_(unit), style_(std::move(style)), total_(total) {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      wake_.wait_for(lock, std::chrono::milliseconds(50), [this] { return stop_; });
      if (!stop_) tick();
    }
  });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    erase();
  }
  wake_.notify_all();
  thread_.join();
}

void Progress::tick() {
  const double now = watch_.seconds();
  if (now - last_ < (first_ ? style_.first : style_.every)) return;
  const std::string line = progress_line(what_, unit_, done_, total_, now);
  if (style_.beside_text) {
    // Save the cursor, write behind the text, come back; text_follows() wipes what is behind the
    // cursor.
    style_.write("\0337\033[J  \033[2m[" + line + "]\033[0m\0338");
  } else {
    style_.write(style_.in_place ? "\r\033[K" + line : line + "\n");
  }
  shown_ = style_.in_place;
  first_ = false;
  last_ = now;
}

void Progress::erase() {
  if (shown_) style_.write(style_.beside_text ? "\033[J" : "\r\033[K");
  shown_ = false;
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  total_ = total;
}

void Progress::update(std::uint64_t done) {
  const std::lock_guard lock(mutex_);
  done_ = done;
}

void Progress::text_follows() {
  if (style_.in_place && !style_.beside_text) return;  // stdout is elsewhere
  const std::lock_guard lock(mutex_);
  erase();
  last_ = watch_.seconds();
}

}  // namespace triax::cli
