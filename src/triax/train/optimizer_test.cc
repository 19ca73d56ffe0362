// The optimiser: blocks of Muon, its scale, AdamW by hand, what decays, QK-clip, the schedule.
#include "triax/train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/settings.h"
#include "triax/ops/backward/newton_schulz.h"

namespace triax::train {
namespace {

using namespace triax::test;  // NOLINT
using Tensor = ParameterLayout::Tensor;

const K3Config& config() {
  static const K3Config c = K3Config::load(TRIAX_GOLDEN_DIR "/text/tiny-c");  // KMKM, 3 and 5 heads
  return c;
}

const ParameterLayout& layout() {
  static const ParameterLayout l(config());
  return l;
}

const Tensor& tensor(const std::string& name) {
  for (const Tensor& t : layout().tensors()) {
    if (t.name == name) return t;
  }
  throw Error("no tensor " + name);
}

void fill(Parameters<float>& p, std::uint64_t seed, double scale) {
  for (const Tensor& t : layout().tensors()) {
    const std::vector<float> values = normal(seed + t.offset, t.size, scale);
    std::copy(values.begin(), values.end(), p[t].begin());
  }
}

double rms(std::span<const float> x) {
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// Singular values of NS5 lie near 1: O O^T is near the unit matrix for a well-conditioned block.
TEST(NewtonSchulz, OrthogonalisesEitherShapeInBothNumberTypes) {
  for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{24, 80}, {80, 24}, {1, 9}}) {
    const auto u = normal(3, rows * cols);
    const std::vector<double> wide = widen(u);
    std::vector<double> o(u.size()), scratch(ops::newton_schulz_scratch(rows, cols));
    ops::newton_schulz<double>(as_mat(wide, cols), as_mat(o, cols), scratch.data());
    const std::size_t small = std::min(rows, cols);
    double largest = 0;
    for (std::size_t i = 0; i < small; ++i) {
      for (std::size_t j = 0; j < small; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < std::max(rows, cols); ++k) {
          sum +=
              rows <= cols ? o[i * cols + k] * o[j * cols + k] : o[k * cols + i] * o[k * cols + j];
        }
        largest = std::max(largest, std::abs(sum - (i == j ? 1 : 0)));
      }
    }
    EXPECT_LT(largest, 0.55) << rows << " x " << cols;
    for_each_isa([&] {
      std::vector<float> got(u.size()), own(scratch.size());
      ops::newton_schulz<float>(as_mat(u, cols), as_mat(got, cols), own.data());
      EXPECT_TRUE(close(got, o, 2e-5));
    });
  }
}

TEST(MuonBlocks, AreTheHeadsOfTheSpec) {
  const auto blocks = [](const std::string& name) { return muon_blocks(tensor(name), config()); };
  const auto kda = blocks("model.layers.0.self_attn.q_proj.weight");
  ASSERT_EQ(kda.size(), 3u);
  EXPECT_EQ(kda[2].begin, 64u);
  EXPECT_EQ(kda[2].rows, 32u);
  const auto q = blocks("model.layers.1.self_attn.q_b_proj.weight");
  ASSERT_EQ(q.size(), 5u);  // MLA's own number of heads, nope and rope rows together
  EXPECT_EQ(q[4].begin, 4 * 32u);
  EXPECT_EQ(q[4].rows, 32u);
  const auto kv = blocks("model.layers.1.self_attn.kv_b_proj.weight");
  ASSERT_EQ(kv.size(), 10u);
  EXPECT_EQ(kv[2].begin, 40u);
  EXPECT_EQ(kv[2].rows, 24u);
  EXPECT_EQ(kv[3].begin, 64u);
  EXPECT_EQ(kv[3].rows, 16u);
  for (const std::string name :
       {"self_attn.o_proj", "self_attn.g_proj", "self_attn.f_a_proj", "self_attn.f_b_proj"}) {
    EXPECT_EQ(blocks("model.layers.2." + name + ".weight").size(), 1u) << name;
  }
  for (const std::string name :
       {"model.embed_tokens.weight", "lm_head.weight", "model.layers.0.self_attn.b_proj.weight",
        "model.layers.0.self_attn.q_conv1d.weight", "model.norm.weight",
        "model.layers.1.mlp_res_proj.weight"}) {
    EXPECT_TRUE(blocks(name).empty()) << name;
  }
  EXPECT_EQ(update_text(tensor("model.layers.0.self_attn.q_proj.weight"), config()),
            "Muon, 3 heads of 32 x 80");
  EXPECT_EQ(update_text(tensor("model.layers.1.self_attn.kv_b_proj.weight"), config()),
            "Muon, 5 heads of 24 x 48 (keys) and 16 x 48 (values)");
  EXPECT_EQ(update_text(tensor("model.layers.1.block_sparse_moe.experts.3.w1.weight"), config()),
            "Muon, 96 x 32");
  EXPECT_EQ(update_text(tensor("lm_head.weight"), config()), "AdamW");
}

// The arms of the ablation: no heads, and no Muon.
TEST(MuonBlocks, WholeMatricesAndAdamwAreChoices) {
  const auto& q = tensor("model.layers.0.self_attn.q_proj.weight");
  const auto& head = tensor("lm_head.weight");
  ASSERT_EQ(muon_blocks(q, config(), Matrices::muon_whole).size(), 1u);
  EXPECT_EQ(muon_blocks(q, config(), Matrices::muon_whole)[0].rows, q.rows());
  EXPECT_TRUE(muon_blocks(q, config(), Matrices::adamw).empty());
  EXPECT_EQ(update_text(q, config(), Matrices::muon_whole), "Muon, 96 x 80");
  EXPECT_EQ(update_text(q, config(), Matrices::adamw), "AdamW");
  EXPECT_EQ(update_text(head, config(), Matrices::muon_whole), "AdamW");
}

// Every block's update is Newton-Schulz of that block alone and has RMS 0.2 times the rate.
TEST(Optimizer, MuonUpdatesEachHeadAlone) {
  OptimizerSettings s;
  s.weight_decay = 0;
  s.clip_norm = 0;
  Parameters<float> weights(layout()), gradients(layout());
  fill(gradients, 7, 1e-3);
  // heads of very different scale: together the small ones would vanish
  const Tensor& q = tensor("model.layers.0.self_attn.q_proj.weight");
  for (std::size_t i = 0; i < 32 * 80; ++i) gradients[q][i] *= 1e4f;
  Runner runner(2);
  Optimizer optimizer(layout(), s);
  const double rate = 0.5;
  optimizer.step(runner, rate, gradients, weights);
  for (const Tensor& t : layout().tensors()) {
    for (const MuonBlock& b : muon_blocks(t, config())) {
      const std::size_t cols = t.cols(), at = b.begin * cols, n = b.rows * cols;
      std::vector<float> u(n), o(n), scratch(ops::newton_schulz_scratch(b.rows, cols));
      for (std::size_t i = 0; i < n; ++i)
        u[i] = gradients[t][at + i] + 0.95f * gradients[t][at + i];
      ops::newton_schulz<float>(as_mat<float>(u, cols), as_mat(o, cols), scratch.data());
      const double scale = -rate * 0.2 * std::sqrt(static_cast<double>(std::max(b.rows, cols)));
      std::vector<double> want;
      for (float x : o) want.push_back(scale * static_cast<double>(x));
      const auto got = std::span<const float>(weights[t]).subspan(at, n);
      ASSERT_TRUE(close(got, want, 1e-6)) << t.name << " rows from " << b.begin;
      // NS5 leaves singular values between 0.7 and 1.2
      EXPECT_NEAR(rms(got) / rate, 0.2, 0.05) << t.name << " rows from " << b.begin;
    }
  }
}

TEST(Optimizer, MomentumIsNesterov) {
  OptimizerSettings s;
  s.weight_decay = 0;
  s.clip_norm = 0;
  Parameters<float> weights(layout()), first(layout()), second(layout());
  fill(first, 1, 1);
  fill(second, 2, 1);
  Runner runner(2);
  Optimizer optimizer(layout(), s);
  optimizer.step(runner, 0.0, first, weights);  // rate 0: only the momentum moves
  for (float w : weights.all()) ASSERT_EQ(w, 0.0f);
  optimizer.step(runner, 1.0, second, weights);
  const Tensor& t = tensor("model.layers.1.self_attn.o_proj.weight");
  std::vector<float> u(t.size), o(t.size), scratch(ops::newton_schulz_scratch(t.rows(), t.cols()));
  for (std::size_t i = 0; i < t.size; ++i) {
    const float m = 0.95f * first[t][i] + second[t][i];
    u[i] = second[t][i] + 0.95f * m;
  }
  ops::newton_schulz<float>(as_mat<float>(u, t.cols()), as_mat(o, t.cols()), scratch.data());
  std::vector<double> want;
  const double scale = -0.2 * std::sqrt(static_cast<double>(std::max(t.rows(), t.cols())));
  for (float x : o) want.push_back(scale * static_cast<double>(x));
  EXPECT_TRUE(close(weights[t], want, 1e-5));
}

TEST(Optimizer, AdamwByHandAndWhatDecays) {
  OptimizerSettings s;
  s.clip_norm = 0;
  Parameters<float> weights(layout()), gradients(layout());
  for (float& w : weights.all()) w = 2;
  const double g[] = {0.5, -0.25, 0.125}, rate = 0.01;
  Runner runner(2);
  Optimizer optimizer(layout(), s);
  double m = 0, v = 0, decayed = 2, plain = 2;
  for (int n = 0; n < 3; ++n) {
    for (float& x : gradients.all()) x = static_cast<float>(g[n]);
    optimizer.step(runner, rate, gradients, weights);
    m = 0.9 * m + 0.1 * g[n];
    v = 0.95 * v + 0.05 * g[n] * g[n];
    const double change = rate * (m / (1 - std::pow(0.9, n + 1))) /
                          (std::sqrt(v / (1 - std::pow(0.95, n + 1))) + 1e-8);
    decayed = decayed * (1 - rate * 0.1) - change;
    plain -= change;
  }
  for (const Tensor& t : layout().tensors()) {
    const Update update = t.id.row->update;
    if (update == Update::none) {
      for (float w : weights[t]) ASSERT_EQ(w, 2.0f) << t.name;  // the router's bias
    } else if (update == Update::adamw || update == Update::adamw_no_decay) {
      const double want = update == Update::adamw ? decayed : plain;
      for (float w : weights[t]) ASSERT_NEAR(w, want, 1e-6) << t.name;
      EXPECT_EQ(update == Update::adamw, t.shape.size() == 2 && t.shape[0] > 1) << t.name;
    }
  }
}

TEST(Optimizer, WeightDecayShrinksMuonsMatrices) {
  Parameters<float> weights(layout()), zero(layout());
  for (float& w : weights.all()) w = 1;
  Runner runner(1);
  Optimizer optimizer(layout(), {});
  optimizer.step(runner, 0.5, zero, weights);  // no gradient: NS5(0) = 0
  const Tensor& t = tensor("model.layers.0.self_attn.k_proj.weight");
  for (float w : weights[t]) ASSERT_FLOAT_EQ(w, 0.95f);
}

TEST(Optimizer, ClipsTheWholeGradientAndIsTheSameForAnyNumberOfThreads) {
  Parameters<float> gradients(layout()), scaled(layout());
  fill(gradients, 3, 0.01);
  std::vector<float> results;
  double norm = 0;
  for (const std::size_t threads : {1u, 2u, 5u}) {
    Runner runner(threads);
    Parameters<float> weights(layout());
    fill(weights, 4, 1);
    Optimizer optimizer(layout(), {});
    norm = optimizer.step(runner, 1e-2, gradients, weights);
    const std::vector<float> got(weights.all().begin(), weights.all().end());
    if (results.empty()) results = got;
    EXPECT_TRUE(same_bits(got, results));
  }
  double squares = 0;
  for (float g : gradients.all()) squares += static_cast<double>(g) * static_cast<double>(g);
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-9 * norm);
  ASSERT_GT(norm, 1);
  for (std::size_t i = 0; i < scaled.all().size(); ++i) {
    scaled.all()[i] = gradients.all()[i] * static_cast<float>(1 / norm);
  }
  OptimizerSettings unclipped;
  unclipped.clip_norm = 0;
  Parameters<float> weights(layout());
  fill(weights, 4, 1);
  Runner runner(2);
  Optimizer optimizer(layout(), unclipped);
  optimizer.step(runner, 1e-2, scaled, weights);
  EXPECT_TRUE(close(results, weights.all(), 1e-6));
}

TEST(QkClip, ScalesTheRowsOfTheHeadsThatPassedTau) {
  Parameters<float> weights(layout());
  for (float& w : weights.all()) w = 1;
  std::vector<std::vector<float>> logits(4);
  logits[1] = {50, 400, 100, 0, 25};
  logits[3] = {0, 0, 0, 0, 0};
  EXPECT_EQ(qk_clip(100, logits, weights), 1u);
  const std::size_t head = 32, nope = 24, both = 40;
  for (const Tensor& t : layout().tensors()) {
    const bool q = t.name == "model.layers.1.self_attn.q_b_proj.weight";
    const bool kv = t.name == "model.layers.1.self_attn.kv_b_proj.weight";
    for (std::size_t i = 0; i < t.size; ++i) {
      const std::size_t row = i / t.cols();
      float want = 1;
      if (q && row / head == 1) want = row % head < nope ? 0.5f : 0.25f;
      if (kv && row / both == 1 && row % both < nope) want = 0.5f;
      ASSERT_EQ(weights[t][i], want) << t.name << " row " << row;
    }
  }
  EXPECT_EQ(qk_clip(0, logits, weights), 0u);
}

TEST(Schedule, WarmsUpAndFallsAsACosine) {
  const Schedule s{1.0, 0.01, 0.1, 1000};
  EXPECT_DOUBLE_EQ(s.rate(0), 0.1);
  EXPECT_DOUBLE_EQ(s.rate(9), 1.0);
  EXPECT_DOUBLE_EQ(s.rate(10), 1.0);
  EXPECT_NEAR(s.rate(505), 0.55, 1e-12);
  EXPECT_NEAR(s.rate(1000), 0.1, 1e-12);
  EXPECT_NEAR(s.rate(5000), 0.1, 1e-12);
  for (std::size_t n = 10; n < 1000; ++n) EXPECT_LE(s.rate(n + 1), s.rate(n));
  EXPECT_DOUBLE_EQ((Schedule{2.0, 0.01, 0.1, 1}).rate(0), 2.0);
}

}  // namespace
}  // namespace triax::train
