// Counter-based random numbers: SplitMix64 (Steele, Lea, Flood 2014).
#pragma once

#include <cstdint>

namespace triax {

inline constexpr std::uint64_t kSplitMixGamma = 0x9E3779B97F4A7C15ull;

inline std::uint64_t splitmix64_mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Number i of the stream `key`: any element can be computed alone.
inline std::uint64_t splitmix64_at(std::uint64_t key, std::uint64_t i) {
  return splitmix64_mix(key + (i + 1) * kSplitMixGamma);
}

// A sequential generator for sampling.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return splitmix64_mix(state_ += kSplitMixGamma); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)

 private:
  std::uint64_t state_;
};

}  // namespace triax
