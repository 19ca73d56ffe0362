// Initialisation by role.
#include "triax/train/init.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <string>

#include "triax/core/rng.h"

namespace triax::train {
namespace {

// FNV-1a: the stream of a tensor.
std::uint64_t key_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return splitmix64_mix(seed ^ hash);
}

// Number i of the stream, uniform in (0, 1) and standard normal (Box and Muller).
double uniform(std::uint64_t key, std::uint64_t i) {
  return (static_cast<double>(splitmix64_at(key, i) >> 11) + 0.5) * 0x1p-53;
}
double normal(std::uint64_t key, std::uint64_t i) {
  return std::sqrt(-2 * std::log(uniform(key, 2 * i))) *
         std::cos(2 * std::numbers::pi * uniform(key, 2 * i + 1));
}

// A bias at which the gate's decay at input 0 is exp(-rate), rate spread evenly in its logarithm.
double decay_bias(double where, const K3Config& c) {
  const double rate = std::exp(std::log(1e-3) + where * (std::log(1e-1) - std::log(1e-3)));
  if (!c.gate_lower_bound.has_value()) return std::log(std::expm1(rate));
  const double share = rate / -static_cast<double>(*c.gate_lower_bound);
  return std::log(share / (1 - share));
}

// What a head of KDA begins with: the lags, in tokens, at which its query, key and value look.
// Queries and keys are the same projection, so equal tokens meet.
struct Lags {
  std::size_t query, key, value;
};
Lags lags_of(std::size_t layer, std::size_t head) {
  // Three kinds answer "what came one token after this one", for the present token, the one before
  // (past a comma) and the one before that. The fourth reads its own row and so passes on the token
  // before, which is what MLA needs to do the same over any distance. From a random start a model
  // takes millions of tokens to find out that copying helps; from here it can at the first step.
  constexpr Lags kKinds[] = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {0, 0, 1}};
  return kKinds[(layer + head) % std::size(kKinds)];
}

double tap(const ParameterLayout::Tensor& t, const K3Config& c, std::size_t i) {
  const std::size_t taps = c.short_conv_kernel_size;
  const std::size_t lag = taps - 1 - i % taps;
  const Lags lags = lags_of(t.id.layer, i / taps / c.kda_head_dim);
  const std::size_t at = t.name.ends_with("q_conv1d.weight")   ? lags.query
                         : t.name.ends_with("k_conv1d.weight") ? lags.key
                                                               : lags.value;
  return lag == std::min(at, taps - 1) ? 1 : 0;
}

// Whose random numbers a tensor has: the keys of KDA those of the queries.
std::string stream_of(const ParameterLayout::Tensor& t, const K3Config& c) {
  std::string name = t.name;
  const std::string key = "self_attn.k_proj.";
  const std::size_t at = name.find(key);
  if (at != std::string::npos && c.is_kda(t.id.layer)) {
    name.replace(at, key.size(), "self_attn.q_proj.");
  }
  return name;
}

double value(const ParameterLayout::Tensor& t, const K3Config& c, std::uint64_t key,
             std::uint64_t i) {
  const double inputs = static_cast<double>(t.cols());
  switch (t.id.row->role) {
    case TensorRole::norm:
    case TensorRole::mix_norm:
      return 1;
    case TensorRole::a_log:
    case TensorRole::mix_proj:
    case TensorRole::router_bias:
      return 0;
    case TensorRole::dt_bias:
      return decay_bias(uniform(key, i), c);
    case TensorRole::conv:
      return tap(t, c, i) + 0.1 * (2 * uniform(key, i) - 1);
    case TensorRole::embedding:
      return 0.5 * normal(key, i);
    case TensorRole::head:
      return 0.1 * normal(key, i) / std::sqrt(inputs);
    default:
      return normal(key, i) / std::sqrt(inputs);
  }
}

}  // namespace

void init_parameters(std::uint64_t seed, Parameters<float>& out) {
  for (const ParameterLayout::Tensor& t : out.layout().tensors()) {
    const std::uint64_t key = key_of(seed, stream_of(t, out.layout().config()));
    const std::span<float> numbers = out[t];
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<float>(value(t, out.layout().config(), key, i));
    }
  }
}

}  // namespace triax::train
