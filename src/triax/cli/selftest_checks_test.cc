// That the self-test sees a model that is computed wrongly.
#include "triax/cli/selftest_checks.h"

#include <gtest/gtest.h>

namespace triax::cli {
namespace {

TEST(SelftestChecks, RightModelPasses) {
  const GoldenModel golden("tiny-c");
  ThreadPool pool(1);
  EXPECT_TRUE(check_f32(golden, pool).passed);
  EXPECT_TRUE(check_bf16(golden, pool).passed);
  EXPECT_TRUE(check_tokenizer().passed);
}

TEST(SelftestChecks, SmallFaultInOneLayerIsSeenAndNamed) {
  GoldenModel golden("tiny-c");
  ThreadPool pool(1);
  for (float& a : golden.loaded().weights.layers[2].kda.A) a *= 1.01f;
  const CheckResult result = check_f32(golden, pool);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.detail.rfind("layer2.", 0), 0u) << result.detail;
  EXPECT_NE(result.detail.find("the first in the pass"), std::string::npos) << result.detail;
}

TEST(SelftestChecks, OtherExpertsAreSeen) {
  GoldenModel golden("tiny-a");
  ThreadPool pool(1);
  for (LayerWeights& layer : golden.loaded().weights.layers) {
    if (!layer.moe.e_score_correction_bias.empty()) layer.moe.e_score_correction_bias[0] += 10;
  }
  EXPECT_FALSE(check_f32(golden, pool).passed);
  const CheckResult rounded = check_bf16(golden, pool);
  EXPECT_FALSE(rounded.passed);
  EXPECT_NE(rounded.detail.find("other experts"), std::string::npos) << rounded.detail;
}

}  // namespace
}  // namespace triax::cli
