// Drawing and packing: borders, shares, order, and going on from a position.
#include "triax/train/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/model_folder.h"

namespace triax::train {
namespace {

// Document d of a source has length 3 + d % 9 and ids that tell source, document and place.
DocumentSet made(std::size_t source, std::size_t documents, double weight) {
  DocumentSet out;
  out.name = fmt::format("source{}", source);
  out.weight = weight;
  for (std::size_t d = 0; d < documents; ++d) {
    for (std::size_t i = 0; i < 3 + d % 9; ++i) {
      out.ids.push_back(static_cast<std::int32_t>(source * 100000 + d * 100 + i));
      out.learn.push_back(i > 0 && i % 5 != 2);
    }
    out.begin.push_back(out.ids.size());
    out.whole.push_back(0);
  }
  return out;
}

TEST(Sampler, PacksWholeDocumentsWithTheirBorders) {
  const std::vector<DocumentSet> sources{made(0, 40, 1)};
  Sampler sampler(sources, 3);
  const Stage stage{0, 16, 200, 32};
  const std::vector<PackedBatch> batches = draw_step(sampler, stage);
  std::size_t rows = 0;
  for (const PackedBatch& b : batches) {
    EXPECT_LE(b.ids.size(), 32u);
    rows += b.ids.size();
    std::size_t at = 0, counted = 0;
    for (const triax::Segment& s : b.documents) {
      EXPECT_EQ(s.begin, at);
      at += s.rows;
      EXPECT_EQ(b.ids[s.begin] % 100, 0) << "a document begins at its first token";
      for (std::size_t t = s.begin; t < s.begin + s.rows; ++t) {
        EXPECT_EQ(b.ids[t] / 100, b.ids[s.begin] / 100) << "rows of one document only";
        const std::int32_t next = b.ids[t] + 1;
        const bool learned = next % 100 % 5 != 2;
        EXPECT_EQ(b.targets[t], learned ? next : ops::kNoTarget);
        counted += learned;
      }
    }
    EXPECT_EQ(at, b.ids.size());
    EXPECT_EQ(b.counted, counted);
  }
  EXPECT_GE(rows, 200u);
  EXPECT_EQ(sampler.positions()[0].tokens, rows);
}

TEST(Sampler, CutsDocumentsAtTheContext) {
  const std::vector<DocumentSet> sources{made(0, 9, 1)};
  Sampler sampler(sources, 3);
  std::map<std::int32_t, int> seen;  // id: times
  while (sampler.positions()[0].epoch == 0) {
    const Piece piece = sampler.peek(4);
    EXPECT_LE(piece.rows, 4u);
    for (std::size_t t = 0; t < piece.rows; ++t) ++seen[piece.ids[t]];
    sampler.pop(piece);
  }
  EXPECT_EQ(seen.size(), sources[0].rows());  // each input row once, the last token of none
  for (const auto& [id, times] : seen) EXPECT_EQ(times, 1) << id;
}

TEST(Sampler, SkipsWhatMayNotBeCutUntilItFits) {
  std::vector<DocumentSet> sources{made(0, 30, 1)};
  std::fill(sources[0].whole.begin(), sources[0].whole.end(), std::uint8_t{1});
  EXPECT_LT(sources[0].drawable(5), 30u);
  EXPECT_EQ(sources[0].drawable(10), 30u);
  Sampler sampler(sources, 3);
  for (const std::size_t context : {5u, 10u}) {
    std::size_t longest = 0;
    for (int n = 0; n < 60; ++n) {
      const Piece piece = sampler.peek(context);
      EXPECT_EQ(piece.ids[0] % 100, 0) << "whole documents";
      longest = std::max(longest, piece.rows);
      sampler.pop(piece);
    }
    EXPECT_EQ(longest, context);
  }
  EXPECT_THAT(test::error_of([&] { sampler.peek(1); }),
              testing::HasSubstr("longer than the context of 1"));
}

TEST(Sampler, GivesEachSourceItsShare) {
  const std::vector<DocumentSet> sources{made(0, 30, 1), made(1, 50, 3), made(2, 20, 0.5)};
  Sampler sampler(sources, 5);
  std::vector<std::uint64_t> rows(3);
  for (int n = 0; n < 3000; ++n) {
    const Piece piece = sampler.peek(100);
    rows[piece.source] += piece.rows;
    sampler.pop(piece);
  }
  const double total = static_cast<double>(rows[0] + rows[1] + rows[2]);
  const double shares[] = {1 / 4.5, 3 / 4.5, 0.5 / 4.5};
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_NEAR(static_cast<double>(rows[s]) / total, shares[s], 0.002);
    EXPECT_EQ(sampler.positions()[s].tokens, rows[s]);
  }
}

TEST(Sampler, OrderFollowsFromSeedAndEpoch) {
  const std::vector<DocumentSet> sources{made(0, 60, 1)};
  const auto epoch = [&](Sampler& s) {
    std::vector<std::int32_t> out;
    const auto now = s.positions()[0].epoch;
    while (s.positions()[0].epoch == now) {
      const Piece piece = s.peek(100);
      out.push_back(piece.ids[0] / 100);
      s.pop(piece);
    }
    return out;
  };
  Sampler a(sources, 1), b(sources, 1), c(sources, 2);
  const auto first = epoch(a);
  EXPECT_EQ(first, epoch(b));
  EXPECT_NE(first, epoch(c));
  EXPECT_NE(first, epoch(a));
  EXPECT_EQ(std::set<std::int32_t>(first.begin(), first.end()).size(), 60u);
}

TEST(Sampler, GoesOnFromAPosition) {
  const std::vector<DocumentSet> sources{made(0, 30, 1), made(1, 7, 1)};
  Sampler whole(sources, 5);
  const Stage stage{0, 5, 100, 25};
  for (int n = 0; n < 7; ++n) draw_step(whole, stage);
  Sampler other(sources, 5);
  other.set_positions(whole.positions());
  for (int n = 0; n < 7; ++n) {
    const auto a = draw_step(whole, stage), b = draw_step(other, stage);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].ids, b[i].ids);
      EXPECT_EQ(a[i].targets, b[i].targets);
    }
  }
  const std::vector<SourcePosition> wrong(1);
  EXPECT_THAT(test::error_of([&] { other.set_positions(wrong); }),
              testing::HasSubstr("1 data sources, the configuration 2"));
}

}  // namespace
}  // namespace triax::train
