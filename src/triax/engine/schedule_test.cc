#include "triax/engine/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace triax {
namespace {

TEST(PromptShares, AShortPromptGoesBeforeALongOne) {
  PromptShares shares;
  std::vector<WaitingPrompt> w{{512, 16384, 0, 0, 1}};
  for (int pass = 0; pass < 4; ++pass)
    EXPECT_EQ(shares.choose(w, 512), (std::vector<std::size_t>{0}));
  w.push_back({100, 120, 0, 0, 2});
  EXPECT_EQ(shares.choose(w, 512), (std::vector<std::size_t>{1}));
  w[1] = {20, 20, 0, 0, 2};
  EXPECT_EQ(shares.choose(w, 512), (std::vector<std::size_t>{1}));
}

TEST(PromptShares, APassTakesAsManyAsFit) {
  PromptShares shares;
  const std::vector<WaitingPrompt> w{
      {200, 200, 0, 0, 1}, {300, 300, 0, 0, 2}, {12, 400, 0, 0, 3}, {100, 500, 0, 0, 4}};
  EXPECT_EQ(shares.choose(w, 512), (std::vector<std::size_t>{0, 1, 2}));
}

// Many short ones that never end: the long one still gets its quarter.
TEST(PromptShares, ALongPromptIsNotStarved) {
  PromptShares shares;
  std::size_t long_tokens = 0, short_tokens = 0;
  for (std::uint64_t pass = 0; pass < 400; ++pass) {
    const std::vector<WaitingPrompt> w{
        {512, 16384, 0, pass, 1}, {250, 250, 0, 0, 2 * pass}, {250, 250, 0, 0, 2 * pass + 1}};
    for (const std::size_t i : shares.choose(w, 512)) {
      (i == 0 ? long_tokens : short_tokens) += w[i].piece;
    }
  }
  const double part =
      static_cast<double>(long_tokens) / static_cast<double>(long_tokens + short_tokens);
  EXPECT_NEAR(part, 0.25, 0.02);
}

TEST(PromptShares, NobodyWaitsForEverWithinAClass) {
  PromptShares shares;
  std::uint64_t waited = 0;
  for (std::uint64_t pass = 0; pass < 100; ++pass) {
    const std::vector<WaitingPrompt> w{{512, 2000, 0, waited, 1}, {500, 500, 0, 0, 10 + pass}};
    const auto got = shares.choose(w, 512);
    ++waited;
    if (got[0] == 0) break;
  }
  EXPECT_LT(waited, 20u);
}

TEST(PromptShares, PriorityMovesUp) {
  PromptShares shares;
  const std::vector<WaitingPrompt> w{{400, 900, 0, 0, 1}, {400, 1000, 1, 0, 2}};
  EXPECT_EQ(shares.choose(w, 512), (std::vector<std::size_t>{1}));
}

// A class that was alone for long owes nothing to the other, which saved nothing up.
TEST(PromptShares, NothingIsSavedUp) {
  PromptShares shares;
  const std::vector<WaitingPrompt> alone{{500, 500, 0, 0, 1}};
  for (int i = 0; i < 1000; ++i) shares.choose(alone, 512);
  const std::vector<WaitingPrompt> both{{500, 500, 0, 0, 1}, {512, 9000, 0, 0, 2}};
  int long_first = 0;
  for (int i = 0; i < 8; ++i) long_first += shares.choose(both, 512)[0] == 1 ? 1 : 0;
  EXPECT_LE(long_first, 3);
  EXPECT_GE(long_first, 1);
}

}  // namespace
}  // namespace triax
