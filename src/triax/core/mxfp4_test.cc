// The MXFP4 codec: fixed blocks, the "even" exponent rule, and what encoding twice may change.
#include "triax/core/mxfp4.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "triax/core/error.h"
#include "triax/core/rng.h"

namespace triax {
namespace {

using Group = std::array<float, kMxfp4Group>;

struct Encoded {
  std::array<std::uint8_t, kMxfp4Group / 2> packed{};
  std::uint8_t scale = 0;
  friend bool operator==(const Encoded&, const Encoded&) = default;
};

Encoded encode(const Group& values) {
  Encoded out;
  mxfp4_encode(Mat<const float>(values.data(), {1, kMxfp4Group}), out.packed.data(), &out.scale);
  return out;
}

Group decode(const Encoded& e) {
  Group out{};
  mxfp4_decode_row({e.packed.data(), &e.scale, 1, kMxfp4Group}, 0, out);
  return out;
}

// A group whose first value is `first`, the rest zero.
Encoded encode_one(float first) {
  Group group{};
  group[0] = first;
  return encode(group);
}

constexpr std::array<std::uint8_t, 8> kBlock{0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed, 0x0f};
constexpr std::array<float, 16> kBlockValues{0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,  -0.0f,
                                             -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f, 0.0f};

Encoded fixed_block(std::uint8_t scale) {
  Encoded e;
  for (std::size_t i = 0; i < e.packed.size(); ++i) e.packed[i] = kBlock[i % kBlock.size()];
  e.scale = scale;
  return e;
}

TEST(Mxfp4, FixedBlock) {
  for (const auto& [scale, factor] : {std::pair{127, 1.0f}, {126, 0.5f}, {129, 4.0f}}) {
    const Encoded e = fixed_block(static_cast<std::uint8_t>(scale));
    const Group out = decode(e);
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(out[i], kBlockValues[i % 16] * factor) << i;
      EXPECT_EQ(mxfp4_at({e.packed.data(), &e.scale, 1, kMxfp4Group}, 0, i), out[i]);
    }
  }
}

TEST(Mxfp4, SmallestScaleIsTwoToMinus127) {
  const Group out = decode(fixed_block(0));
  EXPECT_EQ(out[1], std::ldexp(1.0f, -127));
  EXPECT_EQ(out[0], std::ldexp(1.0f, -128));
  EXPECT_EQ(out[6], std::ldexp(6.0f, -127));
}

TEST(Mxfp4, LargestScalesStayFinite) {
  EXPECT_EQ(decode(fixed_block(252))[6], std::ldexp(6.0f, 125));
  EXPECT_TRUE(std::isfinite(decode(fixed_block(252))[14]));
}

TEST(Mxfp4, NanScaleIsFoundWithItsRow) {
  std::vector<std::uint8_t> packed(4 * 32), scale(4 * 2, 127);
  const Mxfp4View m{packed.data(), scale.data(), 4, 64};
  std::size_t row = 99;
  EXPECT_FALSE(mxfp4_find_nan_scale(m, row));
  scale[5] = kMxfp4ScaleNan;
  EXPECT_TRUE(mxfp4_find_nan_scale(m, row));
  EXPECT_EQ(row, 2u);
}

// floor(log2 amax) - 2, one more from a mantissa of 1.75.
TEST(Mxfp4, EvenExponentRule) {
  struct Row {
    float amax;
    int exponent;
  };
  for (const Row& r : {Row{1.0f, -2},
                       {1.5f, -2},
                       {1.7499f, -2},
                       {1.75f, -1},
                       {1.99f, -1},
                       {2.0f, -1},
                       {4.0f, 0},
                       {6.0f, 0},
                       {6.9999f, 0},
                       {7.0f, 1},
                       {8.0f, 1},
                       {-6.0f, 0}}) {
    EXPECT_EQ(encode_one(r.amax).scale, 127 + r.exponent) << r.amax;
  }
  EXPECT_EQ(decode(encode_one(6.9f))[0], 6.0f);  // saturates below the threshold
  EXPECT_EQ(decode(encode_one(7.0f))[0], 8.0f);
}

TEST(Mxfp4, TiesGoToTheEvenCode) {
  Group group{};
  group[0] = 6.0f;  // scale 2^0
  const std::array<float, 7> ties{0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const std::array<float, 7> even{0.0f, 1.0f, 1.0f, 2.0f, 2.0f, 4.0f, 4.0f};
  for (std::size_t i = 0; i < ties.size(); ++i) {
    group[1 + 2 * i] = ties[i];
    group[2 + 2 * i] = -ties[i];
  }
  const Group out = decode(encode(group));
  for (std::size_t i = 0; i < ties.size(); ++i) {
    EXPECT_EQ(out[1 + 2 * i], even[i]) << ties[i];
    EXPECT_EQ(out[2 + 2 * i], -even[i]) << -ties[i];
  }
}

// Every value goes to one of its two neighbours on the grid, the nearer one.
TEST(Mxfp4, RoundsToNearest) {
  constexpr std::array<float, 8> kGrid{0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  for (int step = 0; step <= 6000; ++step) {
    const float x = static_cast<float>(step) / 1000.0f;
    Group group{};
    group[0] = 6.0f;
    group[1] = x;
    float best = 10.0f;
    for (const float g : kGrid) best = std::min(best, std::fabs(g - x));
    EXPECT_EQ(std::fabs(decode(encode(group))[1] - x), best) << x;
  }
}

TEST(Mxfp4, ZeroGroup) {
  const Encoded e = encode(Group{});
  EXPECT_EQ(e.scale, 0);
  for (const std::uint8_t byte : e.packed) EXPECT_EQ(byte, 0);
  for (const float x : decode(e)) EXPECT_EQ(x, 0.0f);
}

TEST(Mxfp4, SubnormalAndHugeGroups) {
  for (const float amax : {std::ldexp(1.0f, -130), std::numeric_limits<float>::denorm_min(),
                           std::numeric_limits<float>::min(), std::numeric_limits<float>::max()}) {
    const Encoded e = encode_one(amax);
    for (const float x : decode(e)) EXPECT_TRUE(std::isfinite(x)) << amax;
    EXPECT_EQ(encode(decode(e)), e) << amax;
    EXPECT_LE(e.scale, 252) << amax;
  }
}

TEST(Mxfp4, NotANumberIsAProgrammingError) {
  EXPECT_THROW(encode_one(std::numeric_limits<float>::quiet_NaN()), LogicError);
  EXPECT_THROW(encode_one(std::numeric_limits<float>::infinity()), LogicError);
  std::vector<float> row(33);
  std::array<std::uint8_t, 32> out{};
  EXPECT_THROW(mxfp4_encode(Mat<const float>(row.data(), {1, 33}), out.data(), out.data()),
               LogicError);
}

// Any finite float32 bit pattern as input: a second encoding gives the same bytes.
TEST(Mxfp4, EncodingADecodedEncodingChangesNoByte) {
  Rng rng(17);
  for (int round = 0; round < 20000; ++round) {
    const auto exponent = static_cast<int>(rng.next() % 250) - 125;
    Group group{};
    for (float& x : group) {
      x = std::ldexp(static_cast<float>(rng.uniform() * 2 - 1),
                     exponent - static_cast<int>(rng.next() % 6));
    }
    const Encoded e = encode(group);
    ASSERT_EQ(encode(decode(e)), e) << round;
  }
}

// Any stored bytes: the values survive, whatever exponent they were stored with.
TEST(Mxfp4, ValuesOfAnyBytesSurvive) {
  Rng rng(18);
  for (int round = 0; round < 20000; ++round) {
    Encoded e;
    for (std::uint8_t& byte : e.packed) byte = static_cast<std::uint8_t>(rng.next());
    e.scale = static_cast<std::uint8_t>(rng.next() % 253);
    const Group values = decode(e), again = decode(encode(values));
    ASSERT_EQ(std::memcmp(values.data(), again.data(), sizeof values), 0) << round;
  }
}

// A matrix whose groups all hold their own value: rows, columns and strides do not mix.
TEST(Mxfp4, GroupsOfAMatrixKeepTheirPlace) {
  for (const std::size_t rows : {1u, 5u, 17u}) {
    for (const std::size_t cols : {32u, 96u, 160u}) {
      const std::size_t stride = cols + 3, groups = cols / kMxfp4Group;
      std::vector<float> values(rows * stride, -1.0f);
      const auto value = [&](std::size_t r, std::size_t g) {
        return std::ldexp(1.5f, static_cast<int>(r * groups + g) - 20);
      };
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < cols; ++c) values[r * stride + c] = value(r, c / kMxfp4Group);
      }
      std::vector<std::uint8_t> packed(rows * cols / 2), scale(rows * groups);
      mxfp4_encode(Mat<const float>(values.data(), {rows, cols}, stride), packed.data(),
                   scale.data());
      const Mxfp4View m{packed.data(), scale.data(), rows, cols};
      std::vector<float> row(cols);
      for (std::size_t r = 0; r < rows; ++r) {
        mxfp4_decode_row(m, r, row);
        for (std::size_t c = 0; c < cols; ++c) {
          ASSERT_EQ(row[c], value(r, c / kMxfp4Group)) << r << " " << c;
          ASSERT_EQ(mxfp4_at(m, r, c), row[c]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace triax
