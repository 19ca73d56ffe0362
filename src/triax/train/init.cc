// Initialisation by role.
#include "triax/train/init.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>
#include <string>

#include "triax/core/error.h"
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

// The hidden vector in three parts by rotation: what a token is stays where the embedding puts it,
// what may come next is written one third further, what came before two thirds. The head reads the
// second one. So a head of KDA or MLA that finds the place where the present token stood before
// makes what followed there likelier, whichever token it is. It is a lean, not a skill: training
// sharpens it, for the tokens that it has, sooner than from a random start.
enum class Part { itself, next, before };

std::size_t rotated(std::size_t column, Part part, std::size_t hidden) {
  return (column + hidden - static_cast<std::size_t>(part) * (hidden / 3)) % hidden;
}

// Element i of a tensor that is made to fit another one.
class Fitted {
 public:
  Fitted(std::uint64_t seed, const ParameterLayout::Tensor& t, const K3Config& c, std::size_t i)
      : seed_(seed), t_(t), c_(c), row_(i / t.cols()), column_(i % t.cols()) {}

  // The element, where it follows from another tensor's random numbers.
  std::optional<double> value() const {
    if (t_.id.row->role == TensorRole::head) {
      return 0.1 *
             numbers("model.embed_tokens.weight", row_, rotated(column_, Part::next, hidden())) /
             std::sqrt(static_cast<double>(hidden()));
    }
    if (t_.id.row->role != TensorRole::matrix) return std::nullopt;
    return c_.is_kda(t_.id.layer) ? kda() : mla();
  }

 private:
  std::size_t hidden() const { return c_.hidden_size; }
  bool is(std::string_view end) const { return t_.name.ends_with(end); }

  // Number (row, column) of the matrix `end` of this layer, which reads the hidden vector.
  double numbers(std::string_view end, std::size_t row, std::size_t column) const;
  double scaled(std::string_view end, std::size_t row, std::size_t column) const {
    return numbers(end, row, column) / std::sqrt(static_cast<double>(t_.cols()));
  }

  // Keys look as queries do. What a head has found it writes as it read it, into another part.
  std::optional<double> kda() const {
    if (is("self_attn.k_proj.weight")) return scaled("self_attn.q_proj.weight", row_, column_);
    if (!is("self_attn.o_proj.weight")) return std::nullopt;
    const Lags lags = lags_of(t_.id.layer, column_ / c_.kda_head_dim);
    const Part part = lags.key == 0 ? Part::before : Part::next;
    return scaled("self_attn.v_proj.weight", column_, rotated(row_, part, hidden()));
  }

  // Queries carry what the token is, the part of the keys that all heads share what came before it,
  // seen through the same matrix; values carry what the token is.
  std::optional<double> mla() const {
    const std::size_t nope = c_.qk_nope_head_dim, rope = c_.qk_rope_head_dim, v = c_.v_head_dim;
    if (is("self_attn.kv_a_proj_with_mqa.weight") && row_ >= c_.kv_lora_rank) {
      const std::size_t r = row_ - c_.kv_lora_rank;
      if (r >= c_.q_lora_rank) return std::nullopt;
      return scaled("self_attn.q_a_proj.weight", r, rotated(column_, Part::before, hidden()));
    }
    if (is("self_attn.q_b_proj.weight") && row_ % (nope + rope) >= nope) {
      return row_ % (nope + rope) - nope == column_ ? kMatchGain : 0;
    }
    if (is("self_attn.kv_b_proj.weight") && row_ % (nope + v) >= nope) {
      return row_ % (nope + v) - nope == column_ ? 1 : 0;
    }
    if (is("self_attn.o_proj.weight") && column_ % v < c_.kv_lora_rank) {
      return scaled("self_attn.kv_a_proj_with_mqa.weight", column_ % v,
                    rotated(row_, Part::next, hidden()));
    }
    return std::nullopt;
  }

  static constexpr double kMatchGain = 3;
  std::uint64_t seed_;
  const ParameterLayout::Tensor& t_;
  const K3Config& c_;
  std::size_t row_, column_;
};

double Fitted::numbers(std::string_view end, std::size_t row, std::size_t column) const {
  std::string name = t_.name;
  const std::size_t at =
      t_.id.row->role == TensorRole::head ? name.find("lm_head") : name.find("self_attn.");
  TRIAX_CHECK(at != std::string::npos);
  name.replace(at, std::string::npos, end);
  return normal(key_of(seed_, name), row * hidden() + column);
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
    default:
      return normal(key, i) / std::sqrt(inputs);
  }
}

}  // namespace

void init_parameters(std::uint64_t seed, Parameters<float>& out) {
  for (const ParameterLayout::Tensor& t : out.layout().tensors()) {
    const std::uint64_t key = key_of(seed, t.name);
    const K3Config& config = out.layout().config();
    const std::span<float> numbers = out[t];
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::optional<double> fitted = Fitted(seed, t, config, i).value();
      numbers[i] = static_cast<float>(fitted ? *fitted : value(t, config, key, i));
    }
  }
}

}  // namespace triax::train
