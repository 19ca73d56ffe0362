#include "triax/engine/cuts.h"

#include <gtest/gtest.h>

#include "triax/core/error.h"

namespace triax {
namespace {

std::vector<std::size_t> ends(std::size_t n, std::vector<std::size_t> cuts, std::size_t chunk) {
  const CutPlan plan(n, cuts, chunk);
  return {plan.ends().begin(), plan.ends().end()};
}

TEST(CutPlan, MultiplesOfThePieceFromTheLastCut) {
  EXPECT_EQ(ends(300, {}, 128), (std::vector<std::size_t>{128, 256, 300}));
  EXPECT_EQ(ends(300, {10, 200}, 128), (std::vector<std::size_t>{10, 138, 200, 300}));
  EXPECT_EQ(ends(256, {128}, 128), (std::vector<std::size_t>{128, 256}));
  EXPECT_EQ(ends(256, {256}, 128), (std::vector<std::size_t>{128, 256}));
  EXPECT_EQ(ends(1, {}, 64), (std::vector<std::size_t>{1}));
}

TEST(CutPlan, NextAndAtMost) {
  const CutPlan plan(300, std::vector<std::size_t>{10, 200}, 128);
  EXPECT_EQ(plan.next(0), 10u);
  EXPECT_EQ(plan.next(9), 10u);
  EXPECT_EQ(plan.next(10), 138u);
  EXPECT_EQ(plan.next(50), 138u);  // resumed off the cuts: the next cut is where it is
  EXPECT_EQ(plan.next(299), 300u);
  EXPECT_EQ(plan.at_most(9), 0u);
  EXPECT_EQ(plan.at_most(10), 10u);
  EXPECT_EQ(plan.at_most(299), 200u);
}

// A longer prompt with the same start has the same cuts, up to the shorter one's last piece.
TEST(CutPlan, DependsOnTheStartAlone) {
  const std::vector<std::size_t> cuts{70, 150};
  const auto shorter = ends(220, cuts, 64), longer = ends(500, {70, 150, 400}, 64);
  for (std::size_t i = 0; i + 1 < shorter.size(); ++i) EXPECT_EQ(shorter[i], longer[i]);
}

TEST(CutPlan, RefusesCutsThatDoNotAscendOrPassTheEnd) {
  EXPECT_THROW(ends(10, {5, 5}, 64), Error);
  EXPECT_THROW(ends(10, {6, 5}, 64), Error);
  EXPECT_THROW(ends(10, {0}, 64), Error);
  EXPECT_THROW(ends(10, {11}, 64), Error);
}

TEST(Trail, RowsJoinAndAPieceOfOneIsARow) {
  Trail t;
  t.piece(64);
  t.piece(65);
  t.rows(66);
  t.piece(70);
  EXPECT_EQ(t.steps(), (std::vector<TrailStep>{{64, false}, {66, true}, {70, false}}));
  EXPECT_EQ(t.length(), 70u);
}

TEST(Trail, OfAPlanIsWhatFeedingItGives) {
  const CutPlan plan(300, std::vector<std::size_t>{10, 11, 12, 200}, 128);
  Trail fed;
  for (const std::size_t end : plan.ends()) fed.piece(end);
  EXPECT_EQ(Trail::of(plan, 300), fed);
  EXPECT_EQ(Trail::of(plan, 200).length(), 200u);
}

TEST(Trail, CommonWithAPlan) {
  const CutPlan plan(300, std::vector<std::size_t>{10, 11, 12, 200}, 128);
  EXPECT_EQ(Trail::of(plan, 300).common(plan), 300u);
  EXPECT_EQ(Trail::of(plan, 12).common(plan), 12u);
  Trail decoded = Trail::of(plan, 10);
  decoded.rows(90);  // the plan's own rows 11 and 12 are part of it
  EXPECT_EQ(decoded.common(plan), 12u);
  Trail other;
  other.piece(11);
  EXPECT_EQ(other.common(plan), 0u);
  EXPECT_EQ(Trail{}.common(plan), 0u);
}

}  // namespace
}  // namespace triax
