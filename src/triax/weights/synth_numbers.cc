#include "triax/weights/synth_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "triax/core/hash.h"
#include "triax/core/mxfp4.h"
#include "triax/core/rng.h"

namespace triax::synth {
namespace {

// Of 128 code bytes, so many stand for the magnitude 0, .5, 1, 1.5, 2, 3, 4, 6; the other 128 are
// their negatives.
constexpr std::array<int, 8> kCodeCounts = {13, 25, 22, 19, 22, 17, 9, 1};

constexpr std::array<std::uint8_t, 256> make_codes() {
  std::array<std::uint8_t, 256> out{};
  std::size_t at = 0;
  for (int sign = 0; sign < 2; ++sign) {
    for (std::size_t code = 0; code < kCodeCounts.size(); ++code) {
      for (int n = 0; n < kCodeCounts[code]; ++n) {
        out[at++] = static_cast<std::uint8_t>(code + 8 * static_cast<std::size_t>(sign));
      }
    }
  }
  return out;
}
constexpr std::array<std::uint8_t, 256> kCodes = make_codes();

double code_rms() {
  double sum = 0;
  for (std::size_t code = 0; code < kCodeCounts.size(); ++code) {
    const double value = mxfp4_code_value(static_cast<std::uint8_t>(code));
    sum += kCodeCounts[code] * value * value;
  }
  return std::sqrt(sum / 128);
}

struct Normal {
  double mean, sigma;
  double operator()(std::uint64_t h) const {
    constexpr std::uint64_t kEven = 0x0000FFFF0000FFFFull;
    const std::uint64_t pairs = (h & kEven) + ((h >> 16) & kEven);
    const auto total = static_cast<std::int32_t>((pairs & 0xFFFFFFFFull) + (pairs >> 32)) - 131070;
    return mean + total * sigma;
  }
};

struct Uniform {
  double lo, width;
  double operator()(std::uint64_t h) const {
    return lo + (static_cast<double>(static_cast<std::int64_t>(h >> 11)) * 0x1p-53) * width;
  }
};

// Values [begin, end) through `draw`; BF16 or float32.
template <class Draw>
void fill_values(const Recipe& recipe, std::size_t begin, std::size_t end, const Draw& draw,
                 std::byte* out) {
  const std::size_t live = std::clamp(recipe.live, begin, end);
  std::uint64_t x = recipe.key + (begin + 1) * kSplitMixGamma;
  const std::size_t size = dtype_size(recipe.dtype);
  if (recipe.dtype == DType::BF16) {
    for (std::size_t i = begin; i < live; ++i, x += kSplitMixGamma, out += sizeof(bf16)) {
      const auto u = std::bit_cast<std::uint32_t>(static_cast<float>(draw(splitmix64_mix(x))));
      // finite by construction: round to nearest even without a test for NaN
      const auto bits = static_cast<std::uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
      std::memcpy(out, &bits, sizeof bits);
    }
  } else {
    for (std::size_t i = begin; i < live; ++i, x += kSplitMixGamma, out += sizeof(float)) {
      const auto value = static_cast<float>(draw(splitmix64_mix(x)));
      std::memcpy(out, &value, sizeof value);
    }
  }
  if (live < end) std::memset(out, 0, (end - live) * size);
}

// Four packed bytes a hash: codes of eight elements, the even one in the low nibble.
void fill_packed(const Recipe& recipe, std::size_t begin, std::size_t end, std::byte* out) {
  TRIAX_CHECK(begin % 4 == 0);
  std::uint64_t x = recipe.key + (begin / 4 + 1) * kSplitMixGamma;
  for (std::size_t at = begin; at < end; at += 4, x += kSplitMixGamma, out += 4) {
    std::uint64_t h = splitmix64_mix(x);
    std::array<std::uint8_t, 4> bytes;
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(kCodes[h & 255] | (kCodes[(h >> 8) & 255] << 4));
      h >>= 16;
    }
    std::memcpy(out, bytes.data(), std::min<std::size_t>(4, end - at));
  }
}

void fill_scale(const Recipe& recipe, double std, std::size_t begin, std::size_t end,
                std::byte* out) {
  static const double rms = code_rms();
  const int base = 127 + static_cast<int>(std::nearbyint(std::log2(std / rms)));
  constexpr std::array<int, 8> kStep = {-1, 0, 0, 0, 0, 0, 0, 1};
  for (std::size_t i = begin; i < end; ++i, ++out) {
    const int step = kStep[splitmix64_at(recipe.key, i) & 7];
    *out = static_cast<std::byte>(static_cast<std::uint8_t>(base + step));
  }
}

}  // namespace

std::uint64_t stream_key(std::uint64_t seed, std::string_view name) {
  const std::array<std::uint8_t, 32> digest = sha256(fmt::format("{}/{}", seed, name));
  std::uint64_t key = 0;
  for (std::size_t i = 8; i-- > 0;) key = (key << 8) | digest[i];
  return key;
}

void fill(const Recipe& recipe, std::size_t begin, std::size_t end, std::span<std::byte> out) {
  TRIAX_CHECK(out.size() == (end - begin) * dtype_size(recipe.dtype));
  static const double irwin_hall = std::sqrt(4 * (65536.0 * 65536.0 - 1) / 12);
  const Init init = init_of(recipe.role);
  const double by_columns = init.b / std::sqrt(static_cast<double>(recipe.inputs));
  switch (init.kind) {
    case Init::Kind::normal:
      return fill_values(recipe, begin, end, Normal{init.a, init.b / irwin_hall}, out.data());
    case Init::Kind::normal_by_columns:
      return fill_values(recipe, begin, end, Normal{init.a, by_columns / irwin_hall}, out.data());
    case Init::Kind::uniform:
      return fill_values(recipe, begin, end, Uniform{init.a, init.b - init.a}, out.data());
    case Init::Kind::mxfp4:
      if (recipe.role == TensorRole::expert_packed)
        return fill_packed(recipe, begin, end, out.data());
      return fill_scale(recipe, by_columns, begin, end, out.data());
  }
}

}  // namespace triax::synth
