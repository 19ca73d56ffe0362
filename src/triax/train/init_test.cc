// Initial numbers: what starts equal, what starts where, and that KDA starts as a memory.
#include "triax/train/init.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "triax/train/shapes.h"

namespace triax::train {
namespace {

struct Fresh {
  ParameterLayout layout{K3Config::parse(model_config_text("nano", "{}", {600, 1, 2, 3}), "nano")};
  Parameters<float> numbers{layout};
  Fresh() { init_parameters(4, numbers); }

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

TEST(Init, MatricesHaveTheDeviationOfTheirInputs) {
  const Fresh fresh;
  const std::vector<float> w = fresh["model.layers.1.self_attn.v_proj.weight"];
  double square = 0;
  for (const float x : w) square += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(w.size())), 1 / std::sqrt(64.0), 0.005);
}

}  // namespace
}  // namespace triax::train
