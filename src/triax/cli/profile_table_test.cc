// Arithmetic of the profile's table.
#include "triax/cli/profile_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace triax::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ProfileTable, AmountsArePerTokenAndSumUp) {
  Profile profile;
  profile.start();
  profile.enter(Family::router);
  profile.count(3'000'000, 6'000'000);
  profile.enter(Family::lm_head);
  profile.count(1'000'000, 0);
  profile.enter(Family::other);
  profile.stop();
  Profiled p(profile, profile.total().seconds, 2);
  p += Profiled(p);
  EXPECT_EQ(p.total().bytes, 8'000'000u);
  const std::string table = profile_table(p);
  EXPECT_THAT(table, HasSubstr("\n  router "));
  EXPECT_THAT(table, HasSubstr("\n  sum "));
  EXPECT_THAT(table, HasSubstr(" 1.500 "));  // MB of the router
  EXPECT_THAT(table, HasSubstr(" 3.000 "));  // MFLOP
  EXPECT_THAT(table, HasSubstr(" 2.000 "));  // MB in all
  EXPECT_THAT(table, Not(HasSubstr("kda"))) << "families that did nothing have no line";

  const nlohmann::ordered_json json = profile_json(p);
  std::uint64_t bytes = 0, operations = 0;
  double share = 0;
  for (const auto& family : json["families"]) {
    bytes += family["bytes"].get<std::uint64_t>();
    operations += family["operations"].get<std::uint64_t>();
    share += family["share"].get<double>();
  }
  EXPECT_EQ(bytes, 8'000'000u);
  EXPECT_EQ(operations, 12'000'000u);
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_EQ(json["tokens"], 4);
}

TEST(ProfileTable, WhatLiesBetweenTheFamiliesExplainsNothing) {
  Profiled p;
  p.families[static_cast<std::size_t>(Family::other)].seconds = 1;
  p.seconds = 1;
  EXPECT_EQ(explained_part(p), 0);
  p.families[static_cast<std::size_t>(Family::norms)].seconds = 2;
  p.families[static_cast<std::size_t>(Family::router)].seconds = 0.5;
  p.seconds = 4;
  EXPECT_DOUBLE_EQ(explained_part(p), 2.5 / 4);
  EXPECT_THAT(profile_table(p), HasSubstr("62.5 %"));
}

TEST(ProfileTable, NothingMeasuredIsAllZero) {
  const Profiled nothing;
  EXPECT_EQ(explained_part(nothing), 0);
  EXPECT_THAT(profile_table(nothing), HasSubstr("0.0 %"));
  EXPECT_TRUE(profile_json(nothing)["families"].empty());
}

}  // namespace
}  // namespace triax::cli
