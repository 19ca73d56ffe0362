// What the kernel tests share: every table that runs here, random rows, a reference in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "triax/core/rng.h"
#include "triax/kernels/kernels.h"

namespace triax {

// Runs each test once for every instruction set of this machine.
class EveryIsa : public testing::TestWithParam<Isa> {
 protected:
  const KernelTable& table() const { return kernel_table(GetParam()); }
};

inline std::vector<Isa> isas_here() {
  std::vector<Isa> out;
  for (int i = 0; i < kIsaCount; ++i) {
    if (isa_available(static_cast<Isa>(i))) out.push_back(static_cast<Isa>(i));
  }
  return out;
}

inline std::string isa_label(const testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

// Uniform in [-span, span).
inline std::vector<float> random_floats(Rng& rng, std::size_t n, double span = 1.0) {
  std::vector<float> out(n);
  for (float& v : out) v = static_cast<float>((2.0 * rng.uniform() - 1.0) * span);
  return out;
}

inline std::vector<bf16> random_bf16(Rng& rng, std::size_t n) {
  std::vector<bf16> out(n);
  for (bf16& v : out) v = to_bf16(static_cast<float>(2.0 * rng.uniform() - 1.0));
  return out;
}

inline void expect_relative(double found, double expected, double tolerance, double floor = 0.0) {
  EXPECT_LE(std::fabs(found - expected), tolerance * std::fabs(expected) + floor)
      << "found " << found << ", expected " << expected;
}

inline double sigmoid_of(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

}  // namespace triax

#define TRIAX_EVERY_ISA(Suite) \
  INSTANTIATE_TEST_SUITE_P(All, Suite, testing::ValuesIn(isas_here()), isa_label)
