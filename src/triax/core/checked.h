// Size arithmetic that refuses to wrap: every size that comes from a file or a request goes through
// it.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "triax/core/error.h"

namespace triax {

inline std::size_t checked_mul(std::size_t a, std::size_t b) {
  std::size_t out;
  if (__builtin_mul_overflow(a, b, &out))
    fail("size overflow: {} * {} does not fit in 64 bits", a, b);
  return out;
}

inline std::size_t checked_add(std::size_t a, std::size_t b) {
  std::size_t out;
  if (__builtin_add_overflow(a, b, &out))
    fail("size overflow: {} + {} does not fit in 64 bits", a, b);
  return out;
}

template <class Range>
std::size_t checked_product(const Range& factors) {
  std::size_t out = 1;
  for (std::size_t f : factors) out = checked_mul(out, f);
  return out;
}

}  // namespace triax
