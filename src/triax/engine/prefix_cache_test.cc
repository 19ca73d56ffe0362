#include "triax/engine/prefix_cache.h"

#include "support/compare.h"
#include "triax/engine/engine_testing.h"

namespace triax {
namespace {

using test::random_ids;
using test::Runner;
using test::same_bits;
using test::tiny;
using Ids = std::vector<std::int32_t>;

// A state after `ids`, fed in the pieces of its plan.
std::shared_ptr<const Snapshot> snapshot(Runner& runner, const Ids& ids, std::size_t chunk = 64) {
  const CutPlan plan(ids.size(), {}, chunk);
  SequenceState state(tiny().config, runner.ctx.precision);
  Trail trail;
  std::vector<std::size_t> pieces;
  for (const std::size_t end : plan.ends()) {
    pieces.push_back(end - trail.length());
    trail.piece(end);
  }
  const std::vector<float> logits = runner.run(tiny(), state, ids, pieces);
  const auto last = std::span<const float>(logits).last(tiny().config.vocab_size);
  return std::make_shared<const Snapshot>(std::move(state), trail, kNone,
                                          std::vector<float>(last.begin(), last.end()));
}

class PrefixCacheTest : public testing::Test {
 protected:
  std::shared_ptr<const Snapshot> find(const Ids& prompt, CacheUse use = CacheUse::exact) {
    return cache.find(prompt, CutPlan(prompt.size(), {}, 64), use);
  }
  std::shared_ptr<const Snapshot> add(const Ids& ids) {
    auto s = snapshot(runner, ids);
    cache.insert(s);
    return s;
  }
  Runner runner{Precision::f32, 1};
  PrefixCache cache{tiny().config, Precision::f32};
  StateCost cost = state_cost(tiny().config, Precision::f32);
};

Ids first(const Ids& ids, std::size_t n) {
  return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)};
}

TEST_F(PrefixCacheTest, TheLongestStateThatBeginsThePrompt) {
  const Ids ids = random_ids(1, 300, 320);
  add(first(ids, 64));
  add(first(ids, 192));
  Ids other = first(ids, 128);
  other[100] ^= 1;
  add(other);
  EXPECT_EQ(find(ids)->tokens(), 192u);
  EXPECT_EQ(find(first(ids, 191))->tokens(), 64u);
  EXPECT_EQ(find(first(ids, 192))->tokens(), 192u);  // with its last logits
  EXPECT_EQ(find(first(ids, 63)), nullptr);
  EXPECT_EQ(find(random_ids(2, 300, 320)), nullptr);
  EXPECT_EQ(cache.common(ids), 192u);
  EXPECT_EQ(cache.common(other), 128u);
}

// Every stored beginning, looked up among many alike.
TEST(PrefixIndex, AgreesWithLookingAtAll) {
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    PrefixIndex index;
    std::vector<std::shared_ptr<const Prefix>> all;
    for (int i = 0; i < 30; ++i) {
      auto p = std::make_shared<Prefix>();
      p->ids.resize(1 + rng.next() % 8);
      for (auto& id : p->ids) id = static_cast<std::int32_t>(rng.next() % 2);
      p->free_from = rng.next() % 3;
      all.push_back(p);
      index.insert(p);
    }
    for (int i = 0; i < 20; ++i) {
      Ids prompt(1 + rng.next() % 10);
      for (auto& id : prompt) id = static_cast<std::int32_t>(rng.next() % 2);
      const auto accept = [](const Prefix& p) { return p.free_from != 0; };
      std::size_t want = 0, common = 0;
      for (const auto& p : all) {
        const std::size_t l = common_tokens(p->ids, prompt);
        common = std::max(common, l);
        if (l == p->tokens() && accept(*p)) want = std::max(want, l);
      }
      const auto got = index.longest(prompt, accept);
      EXPECT_EQ(got == nullptr ? 0 : got->tokens(), want);
      EXPECT_EQ(index.common(prompt), common);
    }
  }
}

TEST_F(PrefixCacheTest, AStateOfOtherPiecesIsForThoseWhoAllowIt) {
  const Ids ids = random_ids(1, 300, 320);
  add(first(ids, 100));  // its last piece ends at 100, no cut of a longer prompt
  EXPECT_EQ(find(ids, CacheUse::exact), nullptr);
  EXPECT_EQ(find(ids, CacheUse::turns), nullptr);
  EXPECT_EQ(find(ids, CacheUse::any)->tokens(), 100u);
  EXPECT_EQ(find(ids, CacheUse::none), nullptr);
  EXPECT_EQ(find(first(ids, 100), CacheUse::exact)->tokens(), 100u);
}

TEST_F(PrefixCacheTest, SharedPagesCountOnce) {
  const Ids ids = random_ids(1, 130, 320);
  auto a = snapshot(runner, first(ids, 128));
  SequenceState state = a->state.fork();
  Trail trail = a->trail;
  runner.run(tiny(), state, Ids(ids.begin() + 128, ids.end()), {2});
  trail.piece(130);
  cache.insert(a);
  EXPECT_EQ(cache.bytes(), cost.fixed + 2 * cost.page_bytes);
  cache.insert(
      std::make_shared<const Snapshot>(std::move(state), trail, kNone, std::vector<float>()));
  EXPECT_EQ(cache.bytes(), 2 * cost.fixed + 3 * cost.page_bytes);
  cache.shrink(2 * cost.fixed + 2 * cost.page_bytes);
  EXPECT_LE(cache.bytes(), 2 * cost.fixed + 2 * cost.page_bytes);
  cache.shrink(0);
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(cache.entries(), 0u);
}

TEST_F(PrefixCacheTest, WhatSavesLeastForItsBytesGoesFirst) {
  const Ids a = random_ids(1, 640, 320), b = random_ids(2, 64, 320);
  add(a);
  add(b);
  cache.shrink(cache.bytes() - 1);
  EXPECT_NE(find(a), nullptr);
  EXPECT_EQ(find(b), nullptr);
}

TEST_F(PrefixCacheTest, UseKeepsAStateAndTimeTakesItAway) {
  const Ids a = random_ids(1, 128, 320), b = random_ids(2, 128, 320);
  add(a);
  add(b);
  for (int i = 0; i < 3; ++i) EXPECT_NE(find(a), nullptr);
  cache.shrink(cache.bytes() - 1);
  EXPECT_NE(find(a), nullptr);
  EXPECT_EQ(find(b), nullptr);
  // New states that are never used push one another out, and at last the old favourite.
  bool gone = false;
  for (std::uint64_t seed = 10; seed < 80 && !gone; ++seed) {
    add(random_ids(seed, 128, 320));
    cache.shrink(2 * (cost.fixed + 2 * cost.page_bytes));
    gone = cache.common(a) < 128;
  }
  EXPECT_TRUE(gone);
}

TEST_F(PrefixCacheTest, TheSameStateStandsOnceAndLogitsAreAdded) {
  const Ids ids = random_ids(1, 64, 320);
  const auto with = snapshot(runner, ids);
  cache.insert(std::make_shared<const Snapshot>(with->state.fork(), with->trail, kNone,
                                                std::vector<float>()));
  EXPECT_EQ(find(ids), nullptr);  // nothing to draw a first token from
  cache.insert(with);
  EXPECT_EQ(cache.entries(), 1u);
  EXPECT_NE(find(ids), nullptr);
  cache.insert(snapshot(runner, ids));
  EXPECT_EQ(cache.entries(), 1u);
}

// Making room may drop the very state that was just found: its user has it all the same.
TEST_F(PrefixCacheTest, AHitOutlivesItsEviction) {
  const Ids ids = random_ids(1, 128, 320), rest = random_ids(2, 5, 320);
  Runner other(Precision::f32);
  SequenceState straight(tiny().config, Precision::f32);
  other.run(tiny(), straight, ids, {64, 64});
  const auto want = other.run(tiny(), straight, rest, {5});
  add(ids);
  const auto hit = find(test::joined(ids, rest));
  cache.shrink(0);
  for (std::uint64_t s = 5; s < 8; ++s) add(random_ids(s, 128, 320));  // memory is used again
  SequenceState state = hit->state.fork();
  EXPECT_TRUE(same_bits(runner.run(tiny(), state, rest, {5}), want));
}

// Going on from a state writes to a page of its own, never to that of the state.
TEST_F(PrefixCacheTest, APartialPageIsCopiedBeforeItGrows) {
  const Ids ids = random_ids(1, 100, 320);
  const auto kept = snapshot(runner, ids);
  const auto again = snapshot(runner, ids);
  SequenceState one = kept->state.fork(), two = kept->state.fork();
  runner.run(tiny(), one, random_ids(2, 20, 320), {20});
  const auto got = runner.run(tiny(), two, random_ids(3, 20, 320), {20});
  SequenceState fresh = again->state.fork();
  EXPECT_TRUE(same_bits(got, runner.run(tiny(), fresh, random_ids(3, 20, 320), {20})));
}

}  // namespace
}  // namespace triax
