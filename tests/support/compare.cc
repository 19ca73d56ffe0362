// See compare.h.
#include "support/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "triax/core/rng.h"

namespace triax::test {

testing::AssertionResult close(std::span<const float> got, std::span<const double> want,
                               double limit) {
  if (got.size() != want.size()) {
    return testing::AssertionFailure() << got.size() << " elements, expected " << want.size();
  }
  double largest = 0, worst = 0;
  for (double w : want) largest = std::max(largest, std::abs(w));
  std::size_t at = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    if (!(error <= worst)) worst = error, at = i;
    if (std::isnan(error)) break;
  }
  if (worst <= limit * largest) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "element " << at << " of " << got.size() << " is " << got[at] << ", expected "
         << want[at] << ": off by " << worst / largest << " of the largest magnitude " << largest
         << ", limit " << limit;
}

testing::AssertionResult close(std::span<const float> got, std::span<const float> want,
                               double limit) {
  return close(got, widen(want), limit);
}

testing::AssertionResult same_bits(std::span<const float> got, std::span<const float> want) {
  if (got.size() != want.size()) {
    return testing::AssertionFailure() << got.size() << " elements, expected " << want.size();
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(want[i])) {
      return testing::AssertionFailure() << "element " << i << " of " << got.size() << " is "
                                         << got[i] << ", expected exactly " << want[i];
    }
  }
  return testing::AssertionSuccess();
}

std::vector<float> normal(std::uint64_t seed, std::size_t count, double scale) {
  Rng rng(seed);
  std::vector<float> out(count);
  for (float& x : out) {
    const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
    x = static_cast<float>(scale * radius * std::cos(2 * std::numbers::pi * rng.uniform()));
  }
  return out;
}

std::vector<float> uniform(std::uint64_t seed, std::size_t count, double low, double high) {
  Rng rng(seed);
  std::vector<float> out(count);
  for (float& x : out) x = static_cast<float>(low + (high - low) * rng.uniform());
  return out;
}

std::vector<double> widen(std::span<const float> x) {
  return {x.begin(), x.end()};
}

std::vector<bf16> narrow(std::span<const float> x) {
  std::vector<bf16> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = to_bf16(x[i]);
  return out;
}

void round_all(std::vector<float>& x) {
  for (float& v : x) v = round_to_bf16(v);
}

}  // namespace triax::test
