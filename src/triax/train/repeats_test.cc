// Exercises in repeating hold what they promise.
#include "triax/train/repeats.h"

#include <gtest/gtest.h>

#include <map>

#include "support/model_folder.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax::train {
namespace {

constexpr std::size_t kDocuments = 200, kLength = 96;

struct Repeats : testing::Test {
  DocumentSet make(std::uint64_t seed, std::size_t length = kLength) const {
    DataSource source;
    source.name = "again";
    source.kind = SourceKind::repeats;
    source.documents = kDocuments;
    source.length = length;
    source.weight = 2;
    return make_repeats(source, tokenizer, seed);
  }
  static Tokenizer bytes(const test::TempFolder& folder) {
    write_byte_tokenizer(folder / "tokenizer", 40);
    return Tokenizer::load(folder / "tokenizer");
  }
  test::TempFolder folder;
  Tokenizer tokenizer = bytes(folder);
};

TEST_F(Repeats, EveryTargetIsWhatFollowedTheFirstTime) {
  const DocumentSet set = make(1);
  ASSERT_EQ(set.documents(), kDocuments);
  ASSERT_EQ(set.learn.size(), set.ids.size());
  EXPECT_EQ(set.name, "again");
  EXPECT_EQ(set.weight, 2);
  std::size_t targets = 0, new_tokens = 0;
  for (std::size_t d = 0; d < set.documents(); ++d) {
    const std::size_t begin = set.begin[d], end = set.begin[d + 1];
    EXPECT_GE(end - begin, 8u);
    EXPECT_LE(end - begin, kLength);
    std::map<std::int32_t, std::int32_t> follows;  // of the part that is new
    bool again = false;
    std::size_t here = 0;
    for (std::size_t t = begin; t < end; ++t) {
      ASSERT_GE(set.ids[t], 0);
      ASSERT_LT(set.ids[t], tokenizer.rank_count());
      if (set.learn[t] != 0) {
        again = true;
        ++here;
        ASSERT_TRUE(follows.contains(set.ids[t - 1]));
        ASSERT_EQ(follows[set.ids[t - 1]], set.ids[t])
            << "document " << d << ", token " << t - begin;
      }
      // a run's first token stands before the first target: it follows nothing that is asked for
      if (!again && (t + 1 == end || set.learn[t + 1] == 0)) {
        ++new_tokens;
        if (t > begin) follows.emplace(set.ids[t - 1], set.ids[t]);
      }
    }
    EXPECT_GT(here, 0u) << "document " << d;
    targets += here;
  }
  EXPECT_GT(targets, new_tokens) << "most of it is there to be learned";
}

TEST_F(Repeats, ExercisesFollowFromTheSeed) {
  EXPECT_EQ(make(1).ids, make(1).ids);
  EXPECT_NE(make(1).ids, make(2).ids);
}

TEST_F(Repeats, ShortAndLongerThanTheVocabulary) {
  EXPECT_EQ(make(1, 8).rows(), kDocuments * 7);
  const DocumentSet set = make(1, 2000);  // the new part is at most every token once
  for (std::size_t d = 0; d < set.documents(); ++d) EXPECT_LE(set.rows(d), 1999u);
}

}  // namespace
}  // namespace triax::train
