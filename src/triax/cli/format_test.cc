// Numbers as people read them.
#include "triax/cli/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace triax::cli {
namespace {

TEST(Format, Grouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(2779484478208), "2,779,484,478,208");
}

TEST(Format, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1500), "1.5 kB");
  EXPECT_EQ(human_bytes(42973120), "43 MB");
  EXPECT_EQ(human_bytes(999'700), "1.0 MB");
  EXPECT_EQ(human_bytes(1'560'860'324'864), "1.6 TB");
}

TEST(Format, Seconds) {
  EXPECT_EQ(human_seconds(0.42), "0.42 s");
  EXPECT_EQ(human_seconds(42.2), "42 s");
  EXPECT_EQ(human_seconds(185), "3:05 min");
  EXPECT_EQ(human_seconds(7800), "2:10:00 h");
  EXPECT_EQ(human_seconds(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(human_seconds(std::numeric_limits<double>::quiet_NaN()), "?");
}

TEST(Format, Rate) {
  EXPECT_EQ(human_rate(0.04211), "0.0421");
  EXPECT_EQ(human_rate(3.14159), "3.14");
  EXPECT_EQ(human_rate(1250.4), "1,250");
  EXPECT_EQ(human_rate(std::numeric_limits<double>::quiet_NaN()), "?");
}

TEST(Format, OneLine) {
  EXPECT_EQ(one_line("a\n\t\\\x01z"), "a\\n\\t\\\\\\x01z");
  EXPECT_EQ(one_line("世"), "世");
}

}  // namespace
}  // namespace triax::cli
