#include "triax/engine/capacity.h"

#include <gtest/gtest.h>

#include "triax/state/sequence_state.h"

namespace triax {
namespace {

K3Config k3() {
  return K3Config::load(std::string(TRIAX_GOLDEN_DIR) + "/k3");
}

// The published sizes: 428.6 MiB a state, 27,648 bytes a token, one state for 16,253 tokens.
TEST(StateCost, OfTheFullModel) {
  const StateCost cost = state_cost(k3(), Precision::bf16);
  EXPECT_EQ(cost.kda, 434110464u + 2 * 7630848u);
  EXPECT_EQ(cost.page_bytes, 64u * 27648u);
  EXPECT_EQ(cost.snapshot_in_tokens(), 16253u);
  EXPECT_EQ(cost.of(1), cost.fixed + cost.page_bytes);
  EXPECT_EQ(cost.of(65), cost.fixed + 2 * cost.page_bytes);
  EXPECT_EQ(cost.latent_of(0), 0u);
}

TEST(CapacityPlan, SaysHowManyFitAndWhatBinds) {
  const std::size_t bytes = std::size_t{64} << 30;
  const CapacityPlan plan = plan_capacity(k3(), Precision::bf16, bytes, 1 << 20, 256);
  ASSERT_GE(plan.lines.size(), 4u);
  EXPECT_EQ(plan.lines.front().context, 1024u);
  EXPECT_FALSE(plan.lines.front().latent_binds);
  EXPECT_EQ(plan.lines.back().context, std::size_t{1} << 20);
  EXPECT_TRUE(plan.lines.back().latent_binds);
  EXPECT_EQ(plan.lines.back().users, 2u);  // 27.4 GiB each
  for (const CapacityLine& line : plan.lines) {
    EXPECT_LE(line.users * plan.cost.of(line.context), bytes);
    EXPECT_GT((line.users + 1) * plan.cost.of(line.context), bytes);
  }
  const std::string text = plan.text();
  EXPECT_NE(text.find("16253 tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("the fixed KDA states bind"), std::string::npos) << text;
  EXPECT_NE(text.find("the growing latent cache binds"), std::string::npos) << text;
}

}  // namespace
}  // namespace triax
