// The 8-bit quantiser: scales, bounds, ties, zeros, tiny and infinite numbers, the error it makes.
#include "triax/weights/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "triax/core/rng.h"
#include "triax/core/thread_pool.h"

namespace triax {
namespace {

struct Quantized {
  std::vector<std::int8_t> codes;
  std::vector<bf16> scales;
  bool finite = false;
};

template <class T>
Quantized quantized(const std::vector<T>& weights, std::size_t rows, std::size_t cols) {
  Quantized out;
  out.codes.resize(rows * cols);
  out.scales.resize(rows * cols / kQuantGroup);
  out.finite = quantize_rows(weights.data(), rows, cols, out.codes.data(), out.scales.data());
  return out;
}

// Numbers of very different size from group to group.
std::vector<float> sample(std::uint64_t seed, std::size_t n) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = static_cast<double>(splitmix64_at(seed, i) >> 11) * 0x1p-53 - 0.5;
    const int power = static_cast<int>(splitmix64_at(seed + 1, i / kQuantGroup) % 40) - 20;
    out[i] = static_cast<float>(std::ldexp(u, power));
  }
  return out;
}

TEST(Quantize, ScaleIsTheSmallestBf16ThatKeepsCodesWithin127) {
  for (const float largest : sample(5, 4096)) {
    const float magnitude = std::fabs(largest);
    const bf16 scale = quant_scale(magnitude);
    EXPECT_GE(static_cast<double>(to_float(scale)) * 127.0, static_cast<double>(magnitude));
    const bf16 below{static_cast<std::uint16_t>(scale.bits - 1)};
    EXPECT_LT(static_cast<double>(to_float(below)) * 127.0, static_cast<double>(magnitude));
  }
  EXPECT_EQ(to_float(quant_scale(127.0f)), 1.0f);
  EXPECT_EQ(to_float(quant_scale(0.0f)), 1.0f);
  EXPECT_EQ(to_float(quant_scale(0x1p-130f)), 1.0f);
  EXPECT_EQ(to_float(quant_scale(0x1p-126f)), 0x1p-126f);
  EXPECT_TRUE(std::isfinite(to_float(quant_scale(std::numeric_limits<float>::max()))));
}

TEST(Quantize, TiesGoToEvenAndTheLargestGets127) {
  std::vector<float> w(kQuantGroup, 0.0f);
  const float given[] = {127.0f, -127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.49f, 126.5f};
  const int expected[] = {127, -127, 0, 2, 2, 0, -2, -2, 0, 126};
  std::copy(std::begin(given), std::end(given), w.begin());
  const Quantized q = quantized(w, 1, kQuantGroup);
  ASSERT_TRUE(q.finite);
  EXPECT_EQ(to_float(q.scales[0]), 1.0f);
  for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(q.codes[i], expected[i]) << i;
}

template <class T>
void expect_close(const std::vector<T>& w, std::size_t rows, std::size_t cols) {
  const Quantized q = quantized(w, rows, cols);
  ASSERT_TRUE(q.finite);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const auto scale = static_cast<double>(to_float(q.scales[i / kQuantGroup]));
    ASSERT_GE(q.codes[i], -127);
    const double back = q.codes[i] * scale;
    // Half a step; a hair more for float32 weights, whose quotient is rounded first.
    ASSERT_LE(std::fabs(back - static_cast<double>(to_float(w[i]))), scale / 2 * (1 + 1e-5)) << i;
  }
}

TEST(Quantize, NoWeightMovesByMoreThanHalfAStep) {
  const std::vector<float> w = sample(11, 16 * 320);
  expect_close(w, 16, 320);
  std::vector<bf16> narrow(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) narrow[i] = to_bf16(w[i]);
  expect_close(narrow, 16, 320);
}

TEST(Quantize, GroupsOfZerosAndOfSubnormalNumbersAreZeros) {
  std::vector<float> w(2 * kQuantGroup, 0.0f);
  for (std::size_t i = 0; i < kQuantGroup; ++i) w[kQuantGroup + i] = 0x1.8p-127f;
  const Quantized q = quantized(w, 1, 2 * kQuantGroup);
  ASSERT_TRUE(q.finite);
  for (const std::int8_t code : q.codes) EXPECT_EQ(code, 0);
  for (const bf16 scale : q.scales) EXPECT_EQ(to_float(scale), 1.0f);
}

TEST(Quantize, WhatIsNotFiniteIsTold) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> w(3 * kQuantGroup, 1.0f);
    w[2 * kQuantGroup + 5] = bad;
    EXPECT_FALSE(quantized(w, 1, w.size()).finite);
  }
  EXPECT_TRUE(quantized(std::vector<float>(32, std::numeric_limits<float>::max()), 1, 32).finite);
}

// A pool's threads count subnormal numbers as zero; codes do not depend on it.
TEST(Quantize, SameInsideAPoolAndOutside) {
  std::vector<float> w = sample(3, 8 * 64);
  for (std::size_t i = 0; i < w.size(); i += 3) w[i] = 0x1p-125f * (i % 2 == 0 ? 0.4f : -1.0f);
  for (std::size_t i = 0; i < 64; ++i) w[i] = 0x1p-126f * static_cast<float>(i) / 64.0f;
  const Quantized outside = quantized(w, 8, 64);
  ThreadPool pool(2);
  Quantized inside;
  pool.parallel_for(1, [&](std::size_t, std::size_t) { inside = quantized(w, 8, 64); });
  EXPECT_EQ(inside.codes, outside.codes);
  EXPECT_EQ(inside.scales, outside.scales);
}

}  // namespace
}  // namespace triax
