// Status lines: their text, and that nothing is silent for long.
#include "triax/cli/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>

namespace triax::cli {
namespace {

TEST(ProgressLine, SaysPartAmountRateAndTimeToGo) {
  EXPECT_EQ(progress_line("prompt", Unit::tokens, 2048, 8192, 16),
            "prompt: 25 %, 2,048 of 8,192 tokens, 128 tokens/s, 48 s to go");
  EXPECT_EQ(progress_line("writing x", Unit::bytes, 1'500'000'000, 3'000'000'000, 3),
            "writing x: 50 %, 1.5 GB of 3.0 GB, 500 MB/s, 3 s to go");
}

TEST(ProgressLine, DoesNotInventWhatItCannotKnow) {
  EXPECT_EQ(progress_line("opening m", Unit::bytes, 0, 0, 4), "opening m: 4 s");
  EXPECT_EQ(progress_line("prompt", Unit::tokens, 0, 100, 4), "prompt: 0 %, 0 of 100 tokens, 4 s");
  EXPECT_EQ(progress_line("generating", Unit::tokens, 8, 0, 4), "generating: 8 tokens, 2 tokens/s");
  EXPECT_EQ(progress_line("prompt", Unit::tokens, 100, 100, 4),
            "prompt: 100 %, 100 of 100 tokens, 25 tokens/s");
}

// Collects what is written, and waits for it.
class Lines {
 public:
  ProgressStyle style(bool in_place, bool beside_text = false) {
    ProgressStyle s;
    s.in_place = in_place;
    s.beside_text = beside_text;
    s.first = s.every = 0.001;
    s.write = [this](std::string_view text) {
      const std::lock_guard lock(mutex_);
      text_ += text;
      ++count_;
      more_.notify_all();
    };
    return s;
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    more_.wait(lock, [&] { return count_ >= count; });
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::string text_;
  int count_ = 0;
};

TEST(Progress, GoesOnWhileAPassTakesLong) {
  Lines lines;
  {
    Progress progress("prompt", Unit::tokens, 10, lines.style(false));
    lines.wait_for(3);  // without any update
  }
  EXPECT_EQ(lines.text().rfind("prompt: 0 %, 0 of 10 tokens", 0), 0u) << lines.text();
  EXPECT_EQ(lines.text().back(), '\n');
  EXPECT_EQ(lines.text().find('\r'), std::string::npos) << "no terminal codes in a log";
}

TEST(Progress, LineOnATerminalIsTakenAway) {
  Lines lines;
  {
    Progress progress("prompt", Unit::tokens, 10, lines.style(true));
    progress.update(5);
    lines.wait_for(2);
  }
  EXPECT_TRUE(lines.text().ends_with("\r\033[K")) << "the last thing written clears the line";
  EXPECT_EQ(lines.text().find('\n'), std::string::npos);
}

TEST(Progress, BesideTextTheLineGoesBeforeTextFollows) {
  Lines lines;
  Progress progress("generating", Unit::tokens, 10, lines.style(true, true));
  lines.wait_for(1);
  progress.text_follows();
  EXPECT_NE(lines.text().find("\0337"), std::string::npos);
  EXPECT_NE(lines.text().find("\033[J"), std::string::npos);
}

TEST(Progress, QuickWorkSaysNothing) {
  Lines lines;
  ProgressStyle style = lines.style(false);
  style.first = 1e6;
  {
    Progress progress("prompt", Unit::tokens, 10, style);
  }
  EXPECT_EQ(lines.text(), "");
}

}  // namespace
}  // namespace triax::cli
