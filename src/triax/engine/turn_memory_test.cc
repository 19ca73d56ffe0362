#include "triax/engine/turn_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

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

class TurnFile : public testing::Test {
 protected:
  test::TempFolder folder;
  const std::filesystem::path file = folder.path() / "turns";
};

TEST_F(TurnFile, OutlivesTheProgram) {
  {
    TurnMemory memory(100);
    memory.keep_in(file);
    memory.remember("a", Ids{1}, Ids{5, 6});
    memory.remember("b", Ids{2}, Ids{7});
    memory.remember("a", Ids{1}, Ids{8, 9});
  }
  TurnMemory memory(100);
  memory.keep_in(file);
  EXPECT_EQ(memory.find("a", Ids{1}), (Ids{8, 9}));
  EXPECT_EQ(memory.find("b", Ids{2}), (Ids{7}));
  EXPECT_EQ(memory.turns(), 2u);
}

TEST_F(TurnFile, ACutOrDamagedRecordEndsItAndLaterOnesFollow) {
  std::size_t whole = 0;
  {
    TurnMemory memory(100);
    memory.keep_in(file);
    memory.remember("a", Ids{1}, Ids{5, 6});
    whole = std::filesystem::file_size(file);
    memory.remember("b", Ids{2}, Ids{7});
  }
  const std::size_t all = std::filesystem::file_size(file);
  for (std::size_t cut = whole; cut < all; ++cut) {
    const auto copy = folder.path() / "cut";
    std::filesystem::copy_file(file, copy, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(copy, cut);
    {
      TurnMemory memory(100);
      memory.keep_in(copy);
      EXPECT_EQ(memory.turns(), 1u) << cut;
      memory.remember("c", Ids{3}, Ids{8});
    }
    TurnMemory memory(100);
    memory.keep_in(copy);
    EXPECT_EQ(memory.turns(), 2u) << cut;
    EXPECT_EQ(memory.find("c", Ids{3}), (Ids{8}));
  }
  {
    std::fstream damage(file, std::ios::in | std::ios::out | std::ios::binary);
    damage.seekp(static_cast<std::streamoff>(whole + 30)).put('x');
  }
  TurnMemory memory(100);
  memory.keep_in(file);
  EXPECT_EQ(memory.turns(), 1u);
}

}  // namespace
}  // namespace triax
