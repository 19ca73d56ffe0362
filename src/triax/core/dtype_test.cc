// BF16 rounding over all bit patterns, and the names of the element types.
#include "triax/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace triax {
namespace {

float from_bits(std::uint32_t u) {
  return std::bit_cast<float>(u);
}

TEST(Bf16, EveryPatternSurvivesWidening) {
  for (std::uint32_t b = 0; b <= 0xFFFF; ++b) {
    const bf16 x{static_cast<std::uint16_t>(b)};
    const float wide = to_float(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(round_to_bf16(wide)));
      EXPECT_EQ(std::signbit(round_to_bf16(wide)), std::signbit(wide));
    } else {
      ASSERT_EQ(to_bf16(wide).bits, x.bits) << b;
    }
  }
}

// Between each BF16 number and the next: below the middle down, above it up, the middle to even.
TEST(Bf16, EveryGapRoundsToNearestEven) {
  for (std::uint32_t b = 0; b <= 0xFFFF; ++b) {
    if ((b & 0x7F80) == 0x7F80) continue;  // infinities and NaN
    const std::uint32_t up = b + 1;        // next in magnitude; infinity after the largest
    EXPECT_EQ(to_bf16(from_bits(b << 16 | 0x0001)).bits, b);
    EXPECT_EQ(to_bf16(from_bits(b << 16 | 0x7FFF)).bits, b);
    EXPECT_EQ(to_bf16(from_bits(b << 16 | 0x8000)).bits, (b & 1) != 0 ? up : b);
    EXPECT_EQ(to_bf16(from_bits(b << 16 | 0x8001)).bits, up);
    EXPECT_EQ(to_bf16(from_bits(b << 16 | 0xFFFF)).bits, up);
  }
}

TEST(Bf16, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(round_to_bf16(inf), inf);
  EXPECT_EQ(round_to_bf16(-inf), -inf);
  EXPECT_EQ(round_to_bf16(std::numeric_limits<float>::max()), inf);
  EXPECT_TRUE(std::signbit(round_to_bf16(-0.0f)));
  // A NaN whose payload stands in the lower half only must not become infinity.
  EXPECT_TRUE(std::isnan(round_to_bf16(from_bits(0x7F800001))));
  EXPECT_TRUE(std::isnan(round_to_bf16(from_bits(0xFFFFFFFF))));
  EXPECT_EQ(to_bf16(1.0f).bits, 0x3F80);
}

TEST(Dtype, NamesAndSizes) {
  for (const auto& [name, type, size] : {std::tuple{"F64", DType::F64, 8u},
                                         {"F32", DType::F32, 4u},
                                         {"BF16", DType::BF16, 2u},
                                         {"F16", DType::F16, 2u},
                                         {"I64", DType::I64, 8u},
                                         {"I32", DType::I32, 4u},
                                         {"U8", DType::U8, 1u},
                                         {"F8_E8M0", DType::F8_E8M0, 1u}}) {
    EXPECT_EQ(dtype_name(type), name);
    EXPECT_EQ(dtype_size(type), size);
    DType found = DType::F64;
    EXPECT_TRUE(dtype_from_name(name, found));
    EXPECT_EQ(found, type);
  }
  DType unused = DType::F32;
  EXPECT_FALSE(dtype_from_name("F8_E4M3", unused));
  EXPECT_FALSE(dtype_from_name("", unused));
  EXPECT_FALSE(dtype_from_name("f32", unused));
}

}  // namespace
}  // namespace triax
