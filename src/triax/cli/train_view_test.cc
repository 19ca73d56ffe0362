// The curve of a training in the terminal, dot for dot.
#include "triax/cli/train_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace triax::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(TerminalCurve, AFallingLineGoesFromTheTopLeftToTheBottomRight) {
  // Four values in two cells of one row: a dot a column, from the first row of dots to the last.
  EXPECT_THAT(terminal_curve({3, 2, 1, 0}, 2, 1), ElementsAre("  3.000 ⠑⢄"));
  EXPECT_THAT(terminal_curve({8, 8, 1, 1}, 2, 2), ElementsAre("  8.000 ⠉⠀", "  1.000 ⠀⣀"));
}

TEST(TerminalCurve, ManyValuesAreAveraged) {
  // Two values a column: 5 and 1.
  EXPECT_THAT(terminal_curve({4, 6, 2, 0}, 1, 1), ElementsAre("  5.000 ⢁"));
}

TEST(TerminalCurve, OneLevelLiesInTheMiddleAndWhatIsNoNumberIsLeftOut) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(terminal_curve({2, nan, 2, INFINITY}, 1, 1), ElementsAre("  2.000 ⠤"));
  EXPECT_THAT(terminal_curve({nan}, 4, 4), IsEmpty());
  EXPECT_THAT(terminal_curve({}, 4, 4), IsEmpty());
  EXPECT_THAT(terminal_curve({1, 2}, 0, 4), IsEmpty());
  EXPECT_THAT(terminal_curve({1, 2}, 4, 0), IsEmpty());
}

TEST(StatusLine, SaysWhereTheTrainingIs) {
  TrainStatus s;
  s.step = 1200;
  s.tokens = 4'920'000;
  s.total = 40'000'000;
  s.loss = 1.25;
  s.tokens_per_second = 5000;
  s.gflops = 180;
  const std::string line = status_line(s);
  EXPECT_THAT(line, HasSubstr("step 1,200, 4.92M of 40.00M tokens (12.3 %): loss 1.250"));
  EXPECT_THAT(line, HasSubstr("to go"));
  EXPECT_THAT(line, Not(HasSubstr("peak"))) << "not known";
  EXPECT_THAT(line, Not(HasSubstr("QAT")));
  s.peak_gflops = 900;
  s.qat = true;
  EXPECT_THAT(status_line(s), HasSubstr("(20 % of peak), QAT"));
}

}  // namespace
}  // namespace triax::cli
