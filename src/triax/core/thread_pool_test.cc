// Every item once, whatever the number of threads; subnormals flushed inside and only there.
#include "triax/core/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <numeric>
#include <vector>

namespace triax {
namespace {

class Pools : public testing::TestWithParam<std::size_t> {};

TEST_P(Pools, EachItemRunsOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), std::max<std::size_t>(GetParam(), 1));
  for (const std::size_t items : {0u, 1u, 2u, 3u, 7u, 1000u}) {
    std::vector<std::atomic<int>> runs(items);
    std::atomic<bool> worker_in_range{true};
    pool.parallel_for(items, [&](std::size_t item, std::size_t worker) {
      runs[item].fetch_add(1);
      if (worker >= pool.threads()) worker_in_range = false;
    });
    for (std::size_t i = 0; i < items; ++i) EXPECT_EQ(runs[i].load(), 1) << i << " of " << items;
    EXPECT_TRUE(worker_in_range.load());
  }
}

// What the items wrote is there when the call returns, call after call.
TEST_P(Pools, ManyShortCalls) {
  ThreadPool pool(GetParam());
  std::vector<std::size_t> out(64);
  for (std::size_t round = 0; round < 3000; ++round) {
    pool.parallel_for(out.size(), [&](std::size_t i, std::size_t) { out[i] = i * round; });
    const std::size_t sum = std::accumulate(out.begin(), out.end(), std::size_t{0});
    ASSERT_EQ(sum, round * 64 * 63 / 2);
  }
}

TEST_P(Pools, SubnormalsAreFlushedInsideOnly) {
  ThreadPool pool(GetParam());
  volatile float tiny = std::numeric_limits<float>::min();
  volatile float half = 0.5f;
  std::vector<float> inside(200, 1.0f);
  pool.parallel_for(inside.size(), [&](std::size_t i, std::size_t) { inside[i] = tiny * half; });
  for (const float x : inside) EXPECT_EQ(x, 0.0f);
  const float outside = tiny * half;
  EXPECT_GT(outside, 0.0f);
}

// Workers own scratch of their own: no two items of one worker run at the same time.
TEST_P(Pools, AWorkerRunsOneItemAtATime) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> busy(pool.threads());
  std::atomic<int> clashes{0};
  pool.parallel_for(5000, [&](std::size_t, std::size_t worker) {
    if (busy[worker].fetch_add(1) != 0) clashes.fetch_add(1);
    busy[worker].fetch_sub(1);
  });
  EXPECT_EQ(clashes.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, Pools, testing::Values(0, 1, 2, 3, 8));

TEST(ThreadPool, ManyPoolsComeAndGo) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(3);
    std::atomic<int> n{0};
    if (i % 2 == 0) pool.parallel_for(10, [&](std::size_t, std::size_t) { n.fetch_add(1); });
    EXPECT_EQ(n.load(), i % 2 == 0 ? 10 : 0);
  }
}

TEST(ThreadPool, AvailableCores) {
  EXPECT_GE(ThreadPool::available_cores(), 1u);
  EXPECT_LE(ThreadPool::available_cores(), 65536u);
}

}  // namespace
}  // namespace triax
