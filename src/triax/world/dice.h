// Random choices of the generator. Same seed, same choices, on any machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "triax/core/error.h"
#include "triax/core/rng.h"

namespace triax::world {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : rng_(seed) {}

  // 0..n-1; n > 0.
  std::size_t below(std::size_t n) {
    TRIAX_CHECK(n > 0);
    return static_cast<std::size_t>(rng_.next() % n);
  }
  // low..high, both possible.
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::size_t>(high - low + 1)));
  }
  bool chance(double p) { return rng_.uniform() < p; }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  // Index by weight; at least one weight is positive.
  std::size_t weighted(std::span<const double> weights) {
    double sum = 0;
    for (const double w : weights) sum += w;
    TRIAX_CHECK(sum > 0);
    double at = rng_.uniform() * sum;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      at -= weights[i];
      if (at < 0 && weights[i] > 0) return i;
    }
    for (std::size_t i = weights.size(); i > 0; --i) {
      if (weights[i - 1] > 0) return i - 1;
    }
    return 0;
  }

 private:
  Rng rng_;
};

}  // namespace triax::world
