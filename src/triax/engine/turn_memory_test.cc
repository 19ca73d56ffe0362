#include "triax/engine/turn_memory.h"

#include <gtest/gtest.h>

namespace triax {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(TurnMemory, FindsTheIdsOfAText) {
  TurnMemory memory(100);
  memory.remember("hello", Ids{1}, Ids{5, 6});
  EXPECT_EQ(memory.find("hello", Ids{1}), (Ids{5, 6}));
  EXPECT_EQ(memory.find("hello", Ids{2}), (Ids{5, 6}));
  EXPECT_FALSE(memory.find("hell", Ids{1}));
}

TEST(TurnMemory, TheOneWithTheSamePastComesFirst) {
  TurnMemory memory(100);
  memory.remember("ok", Ids{1}, Ids{5});
  memory.remember("ok", Ids{2}, Ids{6});
  memory.remember("ok", Ids{3}, Ids{7});
  EXPECT_EQ(memory.find("ok", Ids{1}), (Ids{5}));
  EXPECT_EQ(memory.find("ok", Ids{2}), (Ids{6}));
  EXPECT_EQ(memory.find("ok", Ids{9}), (Ids{7}));  // the latest
}

TEST(TurnMemory, ANewTurnAtTheSamePlaceReplacesTheOld) {
  TurnMemory memory(100);
  memory.remember("ok", Ids{1}, Ids{5});
  memory.remember("ok", Ids{1}, Ids{6, 7});
  EXPECT_EQ(memory.find("ok", Ids{1}), (Ids{6, 7}));
  EXPECT_EQ(memory.turns(), 1u);
  EXPECT_EQ(memory.tokens(), 2u);
}

TEST(TurnMemory, ForgetsWhatWasUsedLongestAgo) {
  TurnMemory memory(4);
  memory.remember("a", Ids{}, Ids{1, 2});
  memory.remember("b", Ids{}, Ids{3, 4});
  EXPECT_TRUE(memory.find("a", Ids{}));
  memory.remember("c", Ids{}, Ids{5});
  EXPECT_TRUE(memory.find("a", Ids{}));
  EXPECT_FALSE(memory.find("b", Ids{}));
  EXPECT_EQ(memory.tokens(), 3u);
  memory.remember("d", Ids{}, Ids{1, 2, 3, 4, 5});  // more than all there is room for
  EXPECT_FALSE(memory.find("d", Ids{}));
}

}  // namespace
}  // namespace triax
