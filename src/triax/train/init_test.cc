// Initial numbers: what starts equal, what starts where, and that KDA starts as a memory.
#include "triax/train/init.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "support/gradient.h"
#include "triax/train/shapes.h"
#include "triax/train/step.h"

namespace triax::train {
namespace {

struct Fresh {
  ParameterLayout layout;
  Parameters<float> numbers{layout};
  explicit Fresh(const char* shape = "nano")
      : layout(K3Config::parse(model_config_text(shape, "{}", {600, 1, 2, 3}), shape)) {
    init_parameters(4, numbers);
  }

  std::vector<float> operator[](const std::string& name) const {
    for (const ParameterLayout::Tensor& t : layout.tensors()) {
      if (t.name != name) continue;
      const std::span<const float> found = numbers[t];
      return {found.begin(), found.end()};
    }
    ADD_FAILURE() << name;
    return {};
  }
};

// The lags at which a head looks: where its taps are 1 (the rest is noise of at most 0.1).
std::vector<std::size_t> lags(const Fresh& fresh, std::size_t layer, char what) {
  constexpr std::size_t kTaps = 4, kHead = 32;
  const std::vector<float> taps =
      fresh["model.layers." + std::to_string(layer) + ".self_attn." + what + "_conv1d.weight"];
  std::vector<std::size_t> out;
  for (std::size_t row = 0; row + kTaps <= taps.size(); row += kTaps) {
    std::size_t found = kTaps;
    for (std::size_t i = 0; i < kTaps; ++i) {
      const bool one = std::abs(taps[row + i] - 1) <= 0.1f;
      EXPECT_TRUE(one || std::abs(taps[row + i]) <= 0.1f);
      if (one) found = kTaps - 1 - i;
    }
    if (row / kTaps % kHead == 0) out.push_back(found);
    EXPECT_EQ(out.back(), found) << "one lag a head";
  }
  return out;
}

// Equal tokens then meet: what came behind the first is found again behind the second.
TEST(Init, KdaBeginsAsAMemoryOfWhatCameAfter) {
  const Fresh fresh;
  const std::string layer = "model.layers.1.self_attn.";
  EXPECT_EQ(fresh[layer + "q_proj.weight"], fresh[layer + "k_proj.weight"]);
  EXPECT_NE(fresh[layer + "q_proj.weight"], fresh[layer + "v_proj.weight"]);
  EXPECT_NE(fresh[layer + "q_proj.weight"], fresh["model.layers.2.self_attn.q_proj.weight"]);
  using Lags = std::vector<std::size_t>;
  EXPECT_EQ(lags(fresh, 0, 'q'), (Lags{0, 1}));
  EXPECT_EQ(lags(fresh, 0, 'k'), (Lags{1, 2}));
  EXPECT_EQ(lags(fresh, 0, 'v'), (Lags{0, 0}));
  EXPECT_EQ(lags(fresh, 2, 'q'), (Lags{2, 0}));
  EXPECT_EQ(lags(fresh, 2, 'k'), (Lags{3, 0}));
  EXPECT_EQ(lags(fresh, 2, 'v'), (Lags{0, 1}));
}

TEST(Init, MlaBeginsWithNumbersOfItsOwn) {
  const Fresh fresh;
  EXPECT_NE(fresh["model.layers.3.self_attn.q_a_proj.weight"],
            fresh["model.layers.3.self_attn.kv_a_proj_with_mqa.weight"]);
}

// Row i of the one is column i of the other, turned by `turn` places; times `scale`.
void expect_turned(const std::vector<float>& out, std::size_t outputs, std::size_t from_column,
                   const std::vector<float>& in, std::size_t from_row, std::size_t rows,
                   std::size_t turn) {
  const std::size_t hidden = 64;
  for (std::size_t i = 0; i < hidden; ++i) {
    for (std::size_t r = 0; r < rows; ++r) {
      ASSERT_EQ(out[i * outputs + from_column + r],
                in[(from_row + r) * hidden + (i + hidden - turn) % hidden])
          << i << ", " << r;
    }
  }
}

TEST(Init, WhatIsReadIsWrittenWhereTheHeadLooks) {
  const Fresh fresh;
  constexpr std::size_t kHidden = 64, kHead = 32, kThird = kHidden / 3;
  // Layer 0: both heads ask what came after. Layer 2: the second one passes on what came before.
  const auto v0 = fresh["model.layers.0.self_attn.v_proj.weight"];
  const auto o0 = fresh["model.layers.0.self_attn.o_proj.weight"];
  expect_turned(o0, kHidden, 0, v0, 0, 2 * kHead, kThird);
  const auto v2 = fresh["model.layers.2.self_attn.v_proj.weight"];
  const auto o2 = fresh["model.layers.2.self_attn.o_proj.weight"];
  expect_turned(o2, kHidden, 0, v2, 0, kHead, kThird);
  expect_turned(o2, kHidden, kHead, v2, kHead, kHead, 2 * kThird);
  const auto embedding = fresh["model.embed_tokens.weight"], head = fresh["lm_head.weight"];
  for (std::size_t i = 0; i < 600; ++i) {
    for (std::size_t j = 0; j < kHidden; ++j) {
      const float want = embedding[i * kHidden + (j + kHidden - kThird) % kHidden] * 0.2f / 8;
      ASSERT_NEAR(head[i * kHidden + j], want, 1e-6f);
    }
  }
}

// Queries see the token through the matrix that keys see the token before through.
TEST(Init, MlaFindsWhereTheTokenBeforeWasThisOne) {
  const Fresh fresh;
  const std::string layer = "model.layers.3.self_attn.";
  const K3Config& c = fresh.layout.config();
  const std::size_t hidden = c.hidden_size, rank = c.kv_lora_rank, nope = c.qk_nope_head_dim;
  const std::size_t rope = c.qk_rope_head_dim, value = c.v_head_dim;
  const auto q_a = fresh[layer + "q_a_proj.weight"];
  const auto kv_a = fresh[layer + "kv_a_proj_with_mqa.weight"];
  const auto q_b = fresh[layer + "q_b_proj.weight"], kv_b = fresh[layer + "kv_b_proj.weight"];
  const auto out = fresh[layer + "o_proj.weight"];
  ASSERT_LE(rope, c.q_lora_rank);
  for (std::size_t r = 0; r < rope; ++r) {
    for (std::size_t j = 0; j < hidden; ++j) {
      ASSERT_EQ(kv_a[(rank + r) * hidden + j],
                q_a[r * hidden + (j + hidden - 2 * (hidden / 3)) % hidden]);
    }
  }
  for (std::size_t h = 0; h < c.num_attention_heads; ++h) {
    for (std::size_t r = 0; r < rope; ++r) {
      for (std::size_t j = 0; j < c.q_lora_rank; ++j) {
        ASSERT_EQ(q_b[(h * (nope + rope) + nope + r) * c.q_lora_rank + j], r == j ? 3 : 0);
      }
    }
    for (std::size_t r = 0; r < value; ++r) {
      for (std::size_t j = 0; j < rank; ++j) {
        ASSERT_EQ(kv_b[(h * (nope + value) + nope + r) * rank + j], r == j ? 1 : 0);
      }
    }
    const std::size_t copied = std::min(value, rank);
    expect_turned(out, c.num_attention_heads * value, h * value, kv_a, 0, copied, hidden / 3);
  }
  // The rest of both is random, of the deviation of its inputs.
  double square = 0;
  std::size_t count = 0;
  for (std::size_t h = 0; h < c.num_attention_heads; ++h) {
    for (std::size_t i = 0; i < nope * c.q_lora_rank; ++i, ++count) {
      const auto x = static_cast<double>(q_b[h * (nope + rope) * c.q_lora_rank + i]);
      square += x * x;
    }
    for (std::size_t i = 0; i < nope * rank; ++i, ++count) {
      const auto x = static_cast<double>(kv_b[h * (nope + value) * rank + i]);
      square += x * x;
    }
  }
  ASSERT_EQ(c.q_lora_rank, rank);
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(count)),
              1 / std::sqrt(static_cast<double>(rank)), 0.01);
}

// Before any step, ids said twice are likelier the second time: any ids.
TEST(Init, WhatWasSaidIsLikelierTheSecondTime) {
  constexpr std::size_t kPeriod = 8, kTimes = 40;
  const Fresh fresh("mini");
  test::Runner runner(2);
  double first = 0, second = 0;
  for (std::uint64_t seed = 0; seed < kTimes; ++seed) {
    std::vector<std::int32_t> ids;
    std::set<std::int32_t> used;
    for (std::uint64_t i = 0; ids.size() < kPeriod; ++i) {
      const auto id = static_cast<std::int32_t>(splitmix64_at(seed, i) % 600);
      if (used.insert(id).second) ids.push_back(id);
    }
    for (std::size_t i = 0; i <= kPeriod; ++i) ids.push_back(ids[i]);
    const std::vector<std::int32_t> inputs(ids.begin(), ids.end() - 1);
    const std::vector<std::int32_t> targets(ids.begin() + 1, ids.end());
    const std::vector<Segment> documents{{0, inputs.size()}};
    std::vector<float> losses(inputs.size());
    loss_only<float>(runner, fresh.numbers, {inputs, targets, documents}, Vec<float>(losses));
    for (std::size_t t = 0; t < kPeriod; ++t) {
      first += static_cast<double>(losses[t]);
      second += static_cast<double>(losses[kPeriod + t]);
    }
  }
  const double gain = (first - second) / (kPeriod * kTimes);
  EXPECT_GT(gain, 0.05) << first << " and then " << second;
}

TEST(Init, MatricesHaveTheDeviationOfTheirInputs) {
  const Fresh fresh;
  const std::vector<float> w = fresh["model.layers.1.self_attn.v_proj.weight"];
  double square = 0;
  for (const float x : w) square += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(w.size())), 1 / std::sqrt(64.0), 0.005);
}

}  // namespace
}  // namespace triax::train
