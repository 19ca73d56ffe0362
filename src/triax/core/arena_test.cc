// Scratch memory and owned buffers: alignment, scopes, growth, refusal of sizes that overflow.
#include "triax/core/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "triax/core/buffer.h"
#include "triax/core/error.h"

namespace triax {
namespace {

bool aligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % kAlignment == 0;
}

TEST(Arena, TakesAreAlignedAndApart) {
  Arena arena;
  const auto a = arena.take<float>(3);
  const auto b = arena.take<std::uint8_t>(1);
  const auto c = arena.take<double>(100);
  EXPECT_TRUE(aligned(a.data()) && aligned(b.data()) && aligned(c.data()));
  std::memset(a.data(), 1, a.size_bytes());
  std::memset(b.data(), 2, b.size_bytes());
  std::memset(c.data(), 3, c.size_bytes());
  EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(a.data())[11], 1);
  EXPECT_EQ(b[0], 2);
}

TEST(Arena, ScopesGiveBack) {
  Arena arena;
  const Arena::Scope whole(arena);
  const float* first = arena.take<float>(10).data();
  const float* inner = nullptr;
  {
    const Arena::Scope scope(arena);
    inner = arena.take<float>(10).data();
    EXPECT_NE(inner, first);
  }
  EXPECT_EQ(arena.take<float>(10).data(), inner);
}

TEST(Arena, GrowingKeepsWhatWasTaken) {
  Arena arena;
  std::vector<std::span<std::uint32_t>> taken;
  {
    const Arena::Scope scope(arena);
    for (std::uint32_t i = 0; i < 40; ++i) {
      taken.push_back(arena.take<std::uint32_t>(50000));
      std::fill(taken.back().begin(), taken.back().end(), i);
    }
    for (std::uint32_t i = 0; i < 40; ++i) {
      EXPECT_EQ(taken[i].front(), i);
      EXPECT_EQ(taken[i].back(), i);
    }
  }
  EXPECT_GE(arena.peak_bytes(), 40u * 50000u * 4u);
  // After the outermost scope the chunks are one: the same again lies in one piece.
  const Arena::Scope scope(arena);
  const auto a = arena.take<std::uint8_t>(4000000), b = arena.take<std::uint8_t>(4000000);
  EXPECT_EQ(b.data() - a.data(), 4000000);
}

TEST(Arena, TakesAMatrix) {
  Arena arena;
  const Mat<float> m = arena.take_mat<float>(3, 5);
  EXPECT_EQ(m.shape[0], 3u);
  EXPECT_EQ(m.stride, 5u);
  EXPECT_EQ(&m[2][4] - m.data, 14);
}

TEST(Arena, SizesThatOverflowAreRefused) {
  Arena arena;
  EXPECT_THROW(arena.take<float>(SIZE_MAX / 2), Error);
  EXPECT_THROW(arena.take<std::uint8_t>(SIZE_MAX), Error);
  EXPECT_THROW(arena.take_mat<float>(SIZE_MAX / 2, 4), Error);
}

TEST(Buffer, StartsAtZeroAndIsAligned) {
  const Buffer<float> b(1000);
  EXPECT_TRUE(aligned(b.data()));
  EXPECT_EQ(b.bytes(), 4000u);
  for (const float x : b.span()) EXPECT_EQ(x, 0.0f);
}

TEST(Buffer, ClonesAreApart) {
  Buffer<int> a(4);
  a[2] = 7;
  Buffer<int> b = a.clone();
  EXPECT_EQ(b[2], 7);
  b[2] = 8;
  EXPECT_EQ(a[2], 7);
  a.clear();
  EXPECT_EQ(a[2], 0);
  EXPECT_EQ(Buffer<int>().clone().size(), 0u);
}

TEST(Buffer, SizesThatCannotBeAreRefused) {
  EXPECT_THROW(Buffer<double>(SIZE_MAX / 4), Error);
}

}  // namespace
}  // namespace triax
