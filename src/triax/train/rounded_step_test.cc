// Training with rounded products: gradients follow the float32 ones, are the same for any number of
// threads, and empty experts get exact zeros.
#include <gtest/gtest.h>

#include <cmath>

#include "support/gradient.h"
#include "triax/checkpoint/checkpoint.h"
#include "triax/train/init.h"
#include "triax/train/optimizer.h"
#include "triax/train/step.h"

namespace triax::train {
namespace {

using namespace triax::test;  // NOLINT
using Tensor = ParameterLayout::Tensor;

constexpr StepOptions kRounded{ops::Products::bf16};

// A model of a golden configuration, from scratch, and random documents. Queries, keys and
// convolutions of KDA are random here: as training starts them, alike, the gradients of the decays
// nearly cancel, and their rounding says nothing.
struct Fixture {
  K3Config config;
  ParameterLayout layout;
  Parameters<float> weights;
  std::vector<std::int32_t> ids, targets;
  std::vector<Segment> documents;

  explicit Fixture(const std::string& variant, const std::vector<std::size_t>& lengths)
      : config(K3Config::load(std::string(TRIAX_GOLDEN_DIR) + "/text/tiny-" + variant)),
        layout(config),
        weights(layout) {
    init_parameters(7, weights);
    for (const Tensor& t : layout.tensors()) {
      // init_parameters fits these to one another; independent ones do not cancel in a gradient.
      const bool fitted =
          t.id.row->role == TensorRole::head || t.name.find("self_attn.") != std::string::npos;
      const bool matrix =
          t.id.row->role == TensorRole::matrix || t.id.row->role == TensorRole::head;
      if (!(fitted && matrix) && t.id.row->role != TensorRole::conv) continue;
      const float deviation = t.id.row->role == TensorRole::head ? 0.1f : 1.0f;  // as it begins
      const float reach = matrix ? deviation * std::sqrt(3 / static_cast<float>(t.cols())) : 0.5f;
      std::uint64_t at = t.offset;
      for (float& x : weights[t]) {
        x = reach * (static_cast<float>(splitmix64_at(3, at++) >> 40) * 0x1p-23f - 1);
      }
    }
    for (const std::size_t n : lengths) {
      documents.push_back({ids.size(), n});
      for (std::size_t i = 0; i < n; ++i) {
        ids.push_back(static_cast<std::int32_t>(splitmix64_at(1, ids.size()) % config.vocab_size));
        targets.push_back(
            static_cast<std::int32_t>(splitmix64_at(2, ids.size()) % config.vocab_size));
      }
    }
  }
  TrainBatch batch() const { return {ids, targets, documents}; }
};

// |got - want| / |want| over a tensor.
double distance(std::span<const float> got, std::span<const float> want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double w = static_cast<double>(want[i]), g = static_cast<double>(got[i]);
    error += (g - w) * (g - w);
    size += w * w;
  }
  return size == 0 ? std::sqrt(error) : std::sqrt(error / size);
}

// Where two experts' scores nearly tie, rounding chooses another one, and that token's gradient is
// another; so a bias holds the choice here. Measured: 2.3 % of
// the whole gradient, 5.2 % of the worst tensor (a decay's scale).
TEST(RoundedStep, GradientsFollowFloat32WhereTheChoiceOfExpertsIsTheSame) {
  for (const std::string variant : {"b", "c"}) {
    Fixture m(variant, {90, 3, 41});
    for (std::size_t l = 0; l < m.config.num_hidden_layers; ++l) {
      if (m.config.ffn(l) != Ffn::moe) continue;
      const Vec<float> bias =
          m.weights.vector(m.layout.names().layers[l].moe.e_score_correction_bias);
      for (std::size_t e = 0; e < bias.size(); ++e) bias[e] = 2 * static_cast<float>(e);
    }
    Runner runner(2);
    Parameters<float> want(m.layout);
    const StepLoss exact = loss_and_gradient<float>(runner, m.weights, m.batch(), 1.0f, want);
    for_each_isa([&] {
      Parameters<float> got(m.layout);
      const StepLoss loss =
          loss_and_gradient<float>(runner, m.weights, m.batch(), 1.0f, got, nullptr, {}, kRounded);
      EXPECT_NEAR(loss.sum, exact.sum, 1e-3 * exact.sum);
      double worst = 0;
      std::string name;
      for (const Tensor& t : m.layout.tensors()) {
        const double d = distance(got[t], want[t]);
        if (d > worst) worst = d, name = t.name;
      }
      const double whole = distance(got.all(), want.all());
      RecordProperty("worst_" + variant, std::to_string(worst) + " " + name);
      RecordProperty("whole_" + variant, std::to_string(whole));
      EXPECT_LT(whole, 0.03) << variant;
      EXPECT_LT(worst, 0.08) << variant << " " << name;
    });
  }
}

TEST(RoundedStep, IsTheSameForAnyNumberOfThreads) {
  const Fixture m("c", {90, 3, 141});
  for_each_isa([&] {
    Runner one(1);
    Parameters<float> want(m.layout);
    loss_and_gradient<float>(one, m.weights, m.batch(), 1.0f, want, nullptr, {}, kRounded);
    for (const std::size_t threads : {2u, 3u}) {
      Runner several(threads);
      Parameters<float> got(m.layout);
      loss_and_gradient<float>(several, m.weights, m.batch(), 1.0f, got, nullptr, {}, kRounded);
      EXPECT_TRUE(same_bits(got.all(), want.all())) << threads << " threads";
    }
  });
}

TEST(RoundedStep, EmptyExpertsAndTheRoutersBiasGetExactZeros) {
  const Fixture m("c", {2});  // at most 6 of 11 experts a layer
  Runner runner(2);
  Parameters<float> gradients(m.layout);
  std::vector<std::vector<bool>> used(m.config.num_hidden_layers,
                                      std::vector<bool>(m.config.num_experts));
  StepWatch<float> watch;
  watch.routed = [&](std::size_t layer, Mat<const float>, Mat<const std::int32_t> ids) {
    for (std::size_t t = 0; t < ids.shape[0]; ++t) {
      for (std::int32_t id : ids[t]) used[layer][static_cast<std::size_t>(id)] = true;
    }
  };
  loss_and_gradient<float>(runner, m.weights, m.batch(), 1.0f, gradients, &watch, {}, kRounded);
  std::size_t empty = 0;
  for (const Tensor& t : m.layout.tensors()) {
    const auto g = gradients[t];
    const bool zero = std::all_of(g.begin(), g.end(), [](float x) { return x == 0.0f; });
    if (t.id.row->role == TensorRole::expert_packed) {
      EXPECT_EQ(zero, !used[t.id.layer][t.id.expert]) << t.name;
      empty += zero;
    }
    if (t.id.row->role == TensorRole::router_bias) {
      EXPECT_TRUE(zero) << t.name;
    }
  }
  EXPECT_GT(empty, 0u);
}

TEST(RoundedStep, LearnsAsFloat32Does) {
  const Fixture m("c", {40, 40});
  const auto last_loss = [&](ops::Products products) {
    Parameters<float> weights(m.layout), gradients(m.layout);
    std::copy(m.weights.all().begin(), m.weights.all().end(), weights.all().begin());
    OptimizerSettings settings;
    settings.muon_products = products;
    Optimizer optimizer(m.layout, settings);
    Runner runner(2);
    double loss = 0;
    for (int n = 0; n < 30; ++n) {
      std::fill(gradients.all().begin(), gradients.all().end(), 0.0f);
      loss = loss_and_gradient<float>(runner, weights, m.batch(), 1.0f / 80, gradients, nullptr, {},
                                      {products})
                 .mean();
      optimizer.step(runner, 1e-2, gradients, weights);
    }
    return loss;
  };
  const double exact = last_loss(ops::Products::f32), rounded = last_loss(ops::Products::bf16);
  EXPECT_LT(exact, 1.0);
  EXPECT_NEAR(rounded, exact, 0.2 * exact + 0.05);
}

}  // namespace
}  // namespace triax::train
