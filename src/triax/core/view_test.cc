// Views: shapes, strides, slices and conversions; checked size arithmetic.
#include "triax/core/view.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

#include "triax/core/checked.h"

namespace triax {
namespace {

std::vector<int> counting(std::size_t n) {
  std::vector<int> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(View, RankThree) {
  std::vector<int> data = counting(24);
  const View<int, 3> v(data.data(), {2, 3, 4});
  EXPECT_EQ(v.size(), 24u);
  EXPECT_EQ(v.inner_size(), 12u);
  EXPECT_EQ(v[1][2][3], 23);
  EXPECT_EQ(v[1].shape[0], 3u);
  v[0][1][1] = -5;
  EXPECT_EQ(data[5], -5);
}

TEST(View, RowsWithAStride) {
  std::vector<int> data = counting(20);
  const Mat<int> m(data.data() + 1, {3, 2}, 6);
  EXPECT_EQ(m[0][0], 1);
  EXPECT_EQ(m[2][1], 14);
  EXPECT_FALSE(m.dense());
  EXPECT_THROW(m.span(), LogicError);
  const Mat<int> one = m.slice(1, 2);
  EXPECT_EQ(one.shape[0], 1u);
  EXPECT_EQ(one[0][0], 7);
  EXPECT_TRUE(one.dense());  // a single row has no gap
  EXPECT_EQ(one.span()[1], 8);
}

TEST(View, VectorsAndConversions) {
  std::vector<int> data = counting(5);
  const Vec<const int> a(data);
  EXPECT_EQ(a.shape[0], 5u);
  EXPECT_EQ(a.slice(2, 4)[0], 2);
  EXPECT_EQ(a.slice(2, 4).size(), 2u);
  const Mat<int> m(data.data(), {1, 5});
  const Mat<const int> c = m;
  EXPECT_EQ(c[0][4], 4);
  int sum = 0;
  for (const int x : a) sum += x;
  EXPECT_EQ(sum, 10);
}

TEST(View, EmptyShapes) {
  EXPECT_TRUE((View<int, 2>(nullptr, {0, 7}).empty()));
  EXPECT_TRUE((View<int, 2>(nullptr, {7, 0}).empty()));
  EXPECT_TRUE((View<int, 1>().empty()));
}

TEST(Checked, RefusesToWrap) {
  EXPECT_EQ(checked_mul(SIZE_MAX, 1), SIZE_MAX);
  EXPECT_EQ(checked_mul(std::size_t{1} << 32, (std::size_t{1} << 32) - 1), 0xFFFFFFFF00000000ull);
  EXPECT_THROW(checked_mul(std::size_t{1} << 32, std::size_t{1} << 32), Error);
  EXPECT_EQ(checked_add(SIZE_MAX - 1, 1), SIZE_MAX);
  EXPECT_THROW(checked_add(SIZE_MAX, 1), Error);
  EXPECT_EQ(checked_product(std::vector<std::size_t>{}), 1u);
  EXPECT_EQ(checked_product(std::vector<std::size_t>{3, 0, 5}), 0u);
  EXPECT_THROW(checked_product(std::vector<std::size_t>{SIZE_MAX, 2, 3}), Error);
}

}  // namespace
}  // namespace triax
