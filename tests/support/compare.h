// Comparisons and random inputs of tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "triax/core/dtype.h"

namespace triax::test {

// Every element of `got` within `limit` times the largest magnitude of `want`; NaN fails. The
// message names the first and the worst element.
testing::AssertionResult close(std::span<const float> got, std::span<const float> want,
                               double limit);
testing::AssertionResult close(std::span<const float> got, std::span<const double> want,
                               double limit);
// Every bit equal (NaNs with equal bits count as equal).
testing::AssertionResult same_bits(std::span<const float> got, std::span<const float> want);

// Standard normal numbers times `scale`: the same for a seed on every machine with the same libm.
std::vector<float> normal(std::uint64_t seed, std::size_t count, double scale = 1.0);
std::vector<float> uniform(std::uint64_t seed, std::size_t count, double low, double high);
std::vector<double> widen(std::span<const float> x);
std::vector<bf16> narrow(std::span<const float> x);
void round_all(std::vector<float>& x);  // to BF16 and back

}  // namespace triax::test
