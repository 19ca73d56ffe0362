// Checks of gradients by central differences in double precision. Header only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "support/compare.h"
#include "support/settings.h"
#include "triax/core/rng.h"

namespace triax::test {

inline constexpr double kGradientStep = 1e-5;
inline constexpr double kGradientLimit = 1e-6;  // relative, float64
inline constexpr std::size_t kGradientEntries = 20;
inline constexpr double kFloatGradientLimit = 2e-5;  // of the largest, float32 against float64

// Compares `gradient` with central differences of loss() in up to kGradientEntries random entries
// of x, which loss() reads. The limit is relative to the larger of the two numbers, or, for entries
// that nearly cancel, to a thousandth of the largest of the whole gradient. `noise` comes on top:
// what a difference of losses cannot tell, rounding of the loss over the step.
template <class Loss>
void check_gradient(std::string_view name, std::span<double> x, std::span<const double> gradient,
                    Loss&& loss, std::uint64_t seed = 1, double noise = 0,
                    double limit = kGradientLimit) {
  ASSERT_EQ(x.size(), gradient.size()) << name;
  double largest = 0;
  for (double g : gradient) largest = std::max(largest, std::abs(g));
  Rng rng(seed * 1000003 + x.size());
  const std::size_t entries = std::min(kGradientEntries, x.size());
  for (std::size_t n = 0; n < entries; ++n) {
    const std::size_t i = x.size() <= kGradientEntries ? n : rng.next() % x.size();
    const double before = x[i];
    x[i] = before + kGradientStep;
    const long double above = loss();
    x[i] = before - kGradientStep;
    const long double below = loss();
    x[i] = before;
    const double want = static_cast<double>((above - below) / (2 * kGradientStep));
    const double scale = std::max({std::abs(want), std::abs(gradient[i]), 1e-3 * largest});
    EXPECT_LE(std::abs(want - gradient[i]), limit * scale + noise)
        << name << "[" << i << "]: central difference " << want << ", gradient " << gradient[i]
        << ", largest " << largest;
  }
}

// Of a central difference with that step: one unit in the last place of the loss above and below.
inline double difference_noise(double loss, double step = kGradientStep) {
  return std::numeric_limits<double>::epsilon() * std::abs(loss) / step;
}

// sum of y * dy: the loss whose gradient with respect to y is dy. Wide, so that differences of it
// do not drown in its own rounding.
inline long double weighted(std::span<const double> y, std::span<const double> dy) {
  long double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<long double>(y[i]) * dy[i];
  return sum;
}

// The number type's copy of float32 test data.
template <class F>
std::vector<F> cast(std::span<const float> x) {
  return std::vector<F>(x.begin(), x.end());
}
template <class F>
using Arrays = std::vector<std::vector<F>>;

// op<F>(Context&) -> Arrays<F>: every array the same for any number of threads in both number
// types, and float32 within kFloatGradientLimit of float64 under each instruction set. Returns the
// float64 arrays.
template <class Op>
Arrays<double> check_both_types(const Op& op, double limit = kFloatGradientLimit) {
  Runner one(1), three(3);
  const Arrays<double> want = op.template operator()<double>(one.context());
  EXPECT_EQ(op.template operator()<double>(three.context()), want) << "float64, 3 threads";
  for_each_isa([&] {
    Runner alone(1);
    const Arrays<float> got = op.template operator()<float>(alone.context());
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(close(got[i], want[i], limit)) << "array " << i;
    }
    for (const std::size_t threads : {2u, 5u}) {
      Runner several(threads);
      const Arrays<float> again = op.template operator()<float>(several.context());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(same_bits(again[i], got[i])) << "array " << i << ", " << threads << " threads";
      }
    }
  });
  return want;
}

}  // namespace triax::test
