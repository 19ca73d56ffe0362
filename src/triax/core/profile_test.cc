#include "triax/core/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace triax {
namespace {

void pass_time() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST(Profile, InnerScopesAreChargedOnce) {
  Profile profile;
  profile.start();
  const auto begin = std::chrono::steady_clock::now();
  {
    const ProfileScope outer(&profile, Family::router);
    pass_time();
    profile.count(3, 5);
    {
      const ProfileScope inner(&profile, Family::latent);
      pass_time();
      profile.count(10, 20);
    }
    profile.count(1, 1);
  }
  profile.stop();
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_EQ(profile[Family::router].bytes, 4u);
  EXPECT_EQ(profile[Family::router].operations, 6u);
  EXPECT_EQ(profile[Family::latent].bytes, 10u);
  EXPECT_GE(profile[Family::router].seconds, 0.002);
  EXPECT_GE(profile[Family::latent].seconds, 0.002);
  EXPECT_LE(profile.total().seconds, wall + 1e-3);
  EXPECT_EQ(profile.total().operations, 26u);
}

TEST(Profile, NothingIsChargedWhileStopped) {
  Profile profile;
  {
    const ProfileScope scope(&profile, Family::lm_head);
    pass_time();
  }
  EXPECT_EQ(profile.total().seconds, 0.0);
  const ProfileScope nobody(nullptr, Family::lm_head);  // costs nothing, does nothing
}

TEST(Profile, EveryFamilyHasItsName) {
  for (std::size_t i = 0; i < kFamilies; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_NE(family_name(static_cast<Family>(i)), family_name(static_cast<Family>(j)));
    }
  }
}

}  // namespace
}  // namespace triax
