// Memory in huge pages: aligned, zero, writable to its end, refused when it cannot be.
#include "triax/core/huge_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "triax/core/error.h"

namespace triax {
namespace {

TEST(HugeBuffer, IsAlignedZeroAndWritableToItsEnd) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, kHugePage, kHugePage + 1}) {
    HugeBuffer buffer(bytes);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kHugePage, 0u);
    EXPECT_EQ(buffer.data()[0], std::byte{0});
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{0});
    buffer.data()[0] = std::byte{1};
    buffer.data()[bytes - 1] = std::byte{2};
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{2});
  }
}

TEST(HugeBuffer, EmptyHoldsNothing) {
  const HugeBuffer none(0);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.size(), 0u);
}

TEST(HugeBuffer, MovesKeepTheMemory) {
  HugeBuffer a(100);
  a.data()[7] = std::byte{42};
  HugeBuffer b(std::move(a));
  EXPECT_EQ(b.data()[7], std::byte{42});
  HugeBuffer c;
  c = std::move(b);
  EXPECT_EQ(c.data()[7], std::byte{42});
  EXPECT_EQ(c.size(), 100u);
}

TEST(HugeBuffer, SizesBeyondTheMachineAreErrors) {
  EXPECT_THROW(HugeBuffer{std::numeric_limits<std::size_t>::max()}, Error);
  EXPECT_THROW(HugeBuffer(std::numeric_limits<std::size_t>::max() - kHugePage), Error);
  EXPECT_THROW(HugeBuffer(std::size_t{1} << 60), Error);
}

}  // namespace
}  // namespace triax
