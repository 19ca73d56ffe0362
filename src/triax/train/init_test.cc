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

// Equal inputs then meet: the query of a token finds the key that the same token left one later.
TEST(Init, KdaBeginsWithEqualQueriesAndKeysOneTokenApart) {
  const Fresh fresh;
  const std::string layer = "model.layers.1.self_attn.";
  EXPECT_EQ(fresh[layer + "q_proj.weight"], fresh[layer + "k_proj.weight"]);
  EXPECT_NE(fresh[layer + "q_proj.weight"], fresh[layer + "v_proj.weight"]);
  EXPECT_NE(fresh[layer + "q_proj.weight"], fresh["model.layers.2.self_attn.q_proj.weight"]);
  const std::vector<float> q = fresh[layer + "q_conv1d.weight"],
                           k = fresh[layer + "k_conv1d.weight"],
                           v = fresh[layer + "v_conv1d.weight"];
  const float want_q[] = {0, 0, 0.5f, 1}, want_k[] = {0, 0.5f, 1, 0}, want_v[] = {0, 0, 0, 1};
  ASSERT_EQ(q.size() % 4, 0u);
  for (std::size_t i = 0; i < q.size(); ++i) {
    EXPECT_NEAR(q[i], want_q[i % 4], 0.1f);
    EXPECT_NEAR(k[i], want_k[i % 4], 0.1f);
    EXPECT_NEAR(v[i], want_v[i % 4], 0.1f);
  }
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
