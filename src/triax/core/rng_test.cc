// The random streams are part of the synthetic-checkpoint format: their values are fixed.
#include "triax/core/rng.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "triax/core/error.h"
#include "triax/core/hash.h"

namespace triax {
namespace {

// The published sequence for seed 1234567.
TEST(Rng, SplitMix64KnownValues) {
  Rng rng(1234567);
  const std::uint64_t want[] = {6457827717110365317ull, 3203168211198807973ull,
                                9817491932198370423ull, 4593380528125082431ull,
                                16408922859458223821ull};
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(rng.next(), want[i]);
    EXPECT_EQ(splitmix64_at(1234567, i), want[i]);
  }
}

TEST(Rng, UniformLiesInTheUnitInterval) {
  Rng rng(5);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

TEST(Hash, Sha256OfTheStandard) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Error, QuotesKeepMessagesOneLine) {
  EXPECT_EQ(in_quotes("model.norm"), "\"model.norm\"");
  EXPECT_EQ(in_quotes("a\nb\x7f"), "\"a\\x0ab\\x7f\"");
  EXPECT_EQ(in_quotes("\xe4\xb8\xad"), "\"\xe4\xb8\xad\"");
  EXPECT_EQ(in_quotes("\xe4\xb8"), "\"\\xe4\\xb8\"");
  EXPECT_EQ(in_quotes("\xff"), "\"\\xff\"");
  EXPECT_LT(in_quotes(std::string(100000, 'x')).size(), 300u);
}

TEST(Error, ChecksSayWhere) {
  try {
    TRIAX_CHECK(1 + 1 == 3, "arithmetic");
    FAIL() << "the check passed";
  } catch (const LogicError& e) {
    const std::string_view text = e.what();
    EXPECT_NE(text.find("1 + 1 == 3"), std::string_view::npos);
    EXPECT_NE(text.find("rng_test.cc"), std::string_view::npos);
    EXPECT_NE(text.find("arithmetic"), std::string_view::npos);
  }
  EXPECT_THROW(fail("{}: {}", "a", 1), Error);
}

}  // namespace
}  // namespace triax
