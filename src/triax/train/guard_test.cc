// The guard names what is wrong, skips, gives up, and learns from healthy steps alone.
#include "triax/train/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/model_folder.h"
#include "triax/train/shapes.h"

namespace triax::train {
namespace {

using testing::HasSubstr;

struct Guarded : testing::Test {
  ParameterLayout layout{K3Config::parse(model_config_text("nano", "{}", {600, 1, 2, 3}), "nano")};
  Parameters<float> weights{layout}, gradients{layout};
  GuardSettings settings;
  Guarded() { settings.healthy_first = 3; }
};

TEST_F(Guarded, NumbersThatAreNotFiniteAreNamed) {
  Guard guard(settings, 4);
  EXPECT_EQ(guard.judge(3, 1, weights, gradients), "");
  gradients.all()[layout.tensors()[7].offset] = std::numeric_limits<float>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(guard.judge(nan, nan, weights, gradients), HasSubstr(layout.tensors()[7].name));
  weights.all()[layout.tensors()[3].offset] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(test::error_of([&] { guard.judge(nan, nan, weights, gradients); }),
              HasSubstr(layout.tensors()[3].name));
}

TEST_F(Guarded, SpikesAreSkippedAndDoNotMoveTheMean) {
  Guard guard(settings, 4);
  gradients[layout.tensors()[5]][0] = 2;
  EXPECT_EQ(guard.judge(50, 1, weights, gradients), "") << "too early to judge";
  for (int n = 0; n < 5; ++n) guard.healthy(3, 1);
  const std::string why = guard.judge(4.5, 1, weights, gradients);
  EXPECT_THAT(why, HasSubstr("loss 4.500 is a spike"));
  EXPECT_THAT(why, HasSubstr(layout.tensors()[5].name));
  EXPECT_THAT(guard.judge(3, 11, weights, gradients), HasSubstr("gradient norm 11 is a spike"));
  EXPECT_EQ(guard.judge(3.9, 9, weights, gradients), "");
  for (int n = 0; n < 4; ++n) guard.skipped(why);
  EXPECT_EQ(guard.state().loss, 3);
  EXPECT_EQ(guard.state().skipped, 4u);
  EXPECT_THAT(test::error_of([&] { guard.skipped(why); }), HasSubstr("5 steps in a row"));
}

TEST_F(Guarded, LoadsAreHeldAgainstTheirLimit) {
  Guard guard(settings, 2);
  guard.loads({1.2, 5}, {0, 0});
  EXPECT_EQ(guard.judge_loads(9, {1, 2}), "") << "too early";
  EXPECT_THAT(guard.judge_loads(10, {1, 2}), HasSubstr("layer 2: the busiest expert gets 5.00"));
  for (int n = 0; n < 20; ++n) guard.loads({1.2, 1.3}, {0, 0});
  EXPECT_EQ(guard.judge_loads(30, {1, 2}), "");
  for (int n = 0; n < 20; ++n) guard.loads({1.2, 1.3}, {0.25, 0});
  EXPECT_THAT(guard.judge_loads(50, {1, 2}), HasSubstr("layer 1: 24."));
}

}  // namespace
}  // namespace triax::train
