// All parts together: other configurations have right gradients, a model from scratch begins at
// ln vocabulary and learns, and a training is the same for any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/gradient.h"
#include "triax/train/init.h"
#include "triax/train/optimizer.h"
#include "triax/train/quantile_balancing.h"
#include "triax/train/step.h"

namespace triax::train {
namespace {

using namespace triax::test;  // NOLINT
using Tensor = ParameterLayout::Tensor;

// tiny-c's configuration, smaller: KDA, MLA, KDA; `changes` go on top.
K3Config small_config(const nlohmann::json& changes) {
  auto file = nlohmann::json::parse(std::ifstream(TRIAX_GOLDEN_DIR "/text/tiny-c/config.json"));
  nlohmann::json& text = file["text_config"];
  text.merge_patch({{"hidden_size", 64},
                    {"vocab_size", 60},
                    {"num_hidden_layers", 3},
                    {"attn_res_block_size", 2},
                    {"linear_attn_config", {{"kda_layers", {1, 3}}, {"full_attn_layers", {2}}}}});
  if (!changes.is_null()) text.update(changes, true);
  for (const char* id : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    file.erase(id);
    text.erase(id);
  }
  return K3Config::parse(file.dump(), "test");
}

std::vector<std::int32_t> some_ids(std::uint64_t seed, std::size_t n, std::size_t vocab) {
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < n; ++i) {
    out.push_back(static_cast<std::int32_t>(splitmix64_at(seed, i) % vocab));
  }
  return out;
}

void check_slopes(const K3Config& config, const std::vector<float>& row_weights = {}) {
  const ParameterLayout layout(config);
  Parameters<float> start(layout);
  init_parameters(3, start);
  Parameters<double> weights(layout), gradients(layout);
  std::copy(start.all().begin(), start.all().end(), weights.all().begin());
  for (const Tensor& t : layout.tensors()) {  // nothing special about zeros and ones
    if (t.shape.size() == 2 && t.shape[0] > 1) continue;
    const auto noise = normal(t.offset, t.size, 0.2);
    for (std::size_t i = 0; i < t.size; ++i) weights[t][i] += noise[i];
  }
  const auto ids = some_ids(1, 12, 60), targets = some_ids(2, 12, 60);
  const std::vector<Segment> documents{{0, 8}, {8, 4}};
  TrainBatch batch{ids, targets, documents};
  if (!row_weights.empty()) batch.weights = Vec<const float>(row_weights);
  Runner runner(1);
  const double sum = loss_and_gradient<double>(runner, weights, batch, 1.0, gradients).sum;
  std::vector<double> losses(12);
  for (const Tensor& t : layout.tensors()) {
    if (t.id.row->update == Update::none || t.id.expert > 2) continue;
    const std::vector<double> along = widen(normal(t.offset + 1, t.size));
    const std::span<double> w = weights[t];
    const std::vector<double> before(w.begin(), w.end());
    const auto at = [&](double sign) {
      for (std::size_t i = 0; i < t.size; ++i) w[i] = before[i] + sign * 1e-6 * along[i];
      loss_only<double>(runner, weights, batch, losses);
      std::copy(before.begin(), before.end(), w.begin());
      long double total = 0;
      for (std::size_t i = 0; i < losses.size(); ++i) {
        total += losses[i] * (row_weights.empty() ? 1.0 : static_cast<double>(row_weights[i]));
      }
      return total;
    };
    const double want = static_cast<double>((at(1) - at(-1)) / 2e-6);
    const double got = static_cast<double>(weighted(gradients[t], along));
    const double size = std::sqrt(static_cast<double>(weighted(gradients[t], gradients[t])));
    EXPECT_LE(std::abs(want - got), 1e-6 * size + difference_noise(sum, 1e-6))
        << t.name << ": difference " << want << ", gradient " << got;
  }
}

TEST(OtherConfigurations, HaveRightGradients) {
  const nlohmann::json none = nullptr;
  const std::pair<const char*, nlohmann::json> cases[] = {
      {"ordinary residuals, softplus decay, SwiGLU",
       {{"attn_res_block_size", none},
        {"hidden_act", "silu"},
        {"linear_attn_config", {{"gate_lower_bound", none}}}}},
      {"low-rank gate, no query latent, no output gate, uncapped SiTU",
       {{"linear_attn_config", {{"use_full_rank_gate", false}}},
        {"q_lora_rank", none},
        {"mla_use_output_gate", false},
        {"activation_situ_linear_beta", none}}},
      {"no latent space, no shared experts, raw scores, tied head",
       {{"routed_expert_hidden_size", none},
        {"num_shared_experts", 0},
        {"moe_renormalize", false},
        {"tie_word_embeddings", true}}},
      {"latent space without norm, blocks of one layer",
       {{"latent_moe_use_norm", false}, {"attn_res_block_size", 1}}},
      {"dense", {{"num_experts", 0}}},
  };
  for (const auto& [what, changes] : cases) {
    SCOPED_TRACE(what);
    check_slopes(small_config(changes));
  }
}

TEST(WeightedRows, HaveRightGradients) {
  check_slopes(small_config({}), {1, -2, 0, 0.5f, 3, -0.25f, 1, 1, 0, 2, -1, 4});
}

// Ones are no weights, and a power of two is a larger scale: bit for bit, in both forms of
// products.
TEST(WeightedRows, OfOneChangeNoBit) {
  const K3Config config = small_config({});
  const ParameterLayout layout(config);
  Parameters<float> weights(layout), plain(layout), ones(layout), halves(layout);
  init_parameters(3, weights);
  const auto ids = some_ids(1, 40, 60), targets = some_ids(2, 40, 60);
  const std::vector<Segment> documents{{0, 25}, {25, 15}};
  const std::vector<float> one(40, 1.0f), half(40, 0.5f);
  Runner runner(2);
  for (const ops::Products products : {ops::Products::f32, ops::Products::bf16}) {
    const auto pass = [&](Vec<const float> rows, float scale, Parameters<float>& to) {
      std::fill(to.all().begin(), to.all().end(), 0.0f);
      return loss_and_gradient<float>(runner, weights, {ids, targets, documents, rows}, scale, to,
                                      nullptr, {}, {products});
    };
    const double sum = pass({}, 1, plain).sum;
    EXPECT_EQ(pass(Vec<const float>(one), 1, ones).sum, sum);
    EXPECT_TRUE(same_bits(ones.all(), plain.all()));
    EXPECT_DOUBLE_EQ(pass(Vec<const float>(half), 2, halves).sum, sum / 2);
    EXPECT_TRUE(same_bits(halves.all(), plain.all()));
  }
}

// One step of everything, as a trainer does it.
struct Training {
  ParameterLayout layout;
  Parameters<float> weights, gradients;
  Optimizer optimizer;
  std::vector<std::unique_ptr<QuantileBalancer>> balancers;
  ExpertLoad load;

  explicit Training(const K3Config& config)
      : layout(config),
        weights(layout),
        gradients(layout),
        optimizer(layout, {}),
        balancers(config.num_hidden_layers),
        load(config.num_experts) {
    init_parameters(1, weights);
    for (std::size_t l = 0; l < config.num_hidden_layers; ++l) {
      if (config.ffn(l) != Ffn::moe) continue;
      balancers[l] =
          std::make_unique<QuantileBalancer>(config.num_experts, config.num_experts_per_token);
    }
  }
  std::span<float> bias(std::size_t layer) {
    return weights.vector(layout.names().layers[layer].moe.e_score_correction_bias).span();
  }
  double step(Context& ctx, const TrainBatch& batch, double rate) {
    std::fill(gradients.all().begin(), gradients.all().end(), 0.0f);
    load = ExpertLoad(load.tokens.size());
    for (std::size_t l = 0; l < balancers.size(); ++l) {
      if (balancers[l]) balancers[l]->begin_step(bias(l));
    }
    StepWatch<float> watch;
    watch.routed = [&](std::size_t layer, Mat<const float> scores, Mat<const std::int32_t> ids) {
      balancers[layer]->count(ctx, scores);
      load.count(ids);
    };
    const float scale = 1 / static_cast<float>(batch.ids.size());
    const StepLoss loss = loss_and_gradient<float>(ctx, weights, batch, scale, gradients, &watch);
    optimizer.step(ctx, rate, gradients, weights);
    qk_clip(optimizer.settings().qk_clip_tau, watch.max_logits, weights);
    for (std::size_t l = 0; l < balancers.size(); ++l) {
      if (balancers[l]) balancers[l]->end_step(bias(l));
    }
    return loss.mean();
  }
};

TEST(Learning, BeginsAtLnVocabularyAndLearnsTwoDocuments) {
  const K3Config config = small_config({});
  const auto ids = some_ids(5, 48, 60);
  std::vector<std::int32_t> targets(ids.begin() + 1, ids.end());
  targets.push_back(0);
  const std::vector<Segment> documents{{0, 24}, {24, 24}};
  Training training(config);
  Runner runner(2);
  const Schedule schedule{1e-2, 0.05, 0.1, 60};
  double first = 0, last = 0;
  for (std::size_t n = 0; n < schedule.steps; ++n) {
    last = training.step(runner, {ids, targets, documents}, schedule.rate(n));
    if (n == 0) first = last;
  }
  EXPECT_NEAR(first, std::log(60.0), 0.01 * std::log(60.0));
  EXPECT_LT(last, 0.2);
  EXPECT_EQ(training.load.dead_fraction(), 0.0);
}

// Tokens drawn from the student, weighted with the clipped log-ratio to a teacher: the reverse KL
// falls, though no draw sees more than one token of each row.
TEST(Learning, PolicyGradientBringsAStudentToItsTeacher) {
  constexpr std::size_t kRows = 48, kVocab = 60;
  const K3Config config = small_config({});
  Training teacher(config), student(config);
  init_parameters(9, teacher.weights);
  const MatrixView& head = teacher.layout.names().lm_head;
  for (float& x : teacher.weights[teacher.layout.of(&head)]) x *= 15;
  const auto ids = some_ids(5, kRows, kVocab);
  std::vector<std::int32_t> targets = ids;
  const std::vector<Segment> documents{{0, 24}, {24, 24}};
  Runner runner(2);
  std::vector<float> logits(kRows * kVocab), losses(kRows);
  const auto probabilities = [&](const Training& of) {
    loss_only<float>(runner, of.weights, {ids, targets, documents}, losses, as_mat(logits, kVocab));
    std::vector<double> p(logits.begin(), logits.end());
    for (std::size_t t = 0; t < kRows; ++t) {
      const std::span<double> row = std::span(p).subspan(t * kVocab, kVocab);
      double sum = 0;
      for (double& x : row) sum += x = std::exp(x);
      for (double& x : row) x /= sum;
    }
    return p;
  };
  const std::vector<double> q = probabilities(teacher);
  double first = 0, last = 0;
  Rng rng(1);
  const Schedule schedule{1e-2, 0.05, 0.1, 150};
  for (std::size_t n = 0; n <= schedule.steps; ++n) {
    const std::vector<double> p = probabilities(student);
    double kl = 0;
    for (std::size_t i = 0; i < p.size(); ++i) kl += p[i] * std::log(p[i] / q[i]);
    last = kl / kRows;
    if (n == 0) first = last;
    std::vector<float> rewards(kRows);
    for (std::size_t t = 0; t < kRows; ++t) {
      double left = rng.uniform();
      std::size_t id = 0;
      while (id + 1 < kVocab && (left -= p[t * kVocab + id]) >= 0) ++id;
      targets[t] = static_cast<std::int32_t>(id);
      const double ratio = std::log(q[t * kVocab + id] / p[t * kVocab + id]);
      rewards[t] = static_cast<float>(std::clamp(ratio, -5.0, 5.0));
    }
    if (n == schedule.steps) break;
    student.step(runner, {ids, targets, documents, Vec<const float>(rewards)}, schedule.rate(n));
  }
  EXPECT_GT(first, 0.3);
  EXPECT_LT(last, 0.5 * first);
}

TEST(Learning, IsTheSameForAnyNumberOfThreads) {
  const K3Config config = small_config({});
  const auto ids = some_ids(6, 40, 60), targets = some_ids(7, 40, 60);
  const std::vector<Segment> documents{{0, 30}, {30, 10}};
  std::vector<float> want;
  for (const std::size_t threads : {1u, 2u, 3u}) {
    Training training(config);
    Runner runner(threads);
    for (int n = 0; n < 3; ++n) training.step(runner, {ids, targets, documents}, 5e-3);
    const std::vector<float> got(training.weights.all().begin(), training.weights.all().end());
    if (want.empty()) want = got;
    EXPECT_TRUE(same_bits(got, want)) << threads << " threads";
  }
}

TEST(InitParameters, FollowFromSeedAndNameAlone) {
  const ParameterLayout layout(small_config({}));
  Parameters<float> a(layout), b(layout), c(layout);
  init_parameters(1, a);
  init_parameters(1, b);
  init_parameters(2, c);
  EXPECT_TRUE(same_bits(a.all(), b.all()));
  for (const Tensor& t : layout.tensors()) {
    // Rows of MLA that pass a part on have one entry each: init_test.cc has them exactly.
    const K3Config& config = layout.config();
    const std::size_t nope = config.qk_nope_head_dim;
    const std::size_t head = t.name.ends_with("q_b_proj.weight")    ? nope + config.qk_rope_head_dim
                             : t.name.ends_with("kv_b_proj.weight") ? nope + config.v_head_dim
                                                                    : 0;
    double squares = 0, count = 0;
    bool differs = false;
    for (std::size_t i = 0; i < t.size; ++i) {
      differs = differs || a[t][i] != c[t][i];
      if (head != 0 && i / t.cols() % head >= nope) continue;
      squares += static_cast<double>(a[t][i]) * static_cast<double>(a[t][i]);
      ++count;
    }
    const double rms = std::sqrt(squares / count);
    const TensorRole role = t.id.row->role;
    if (role == TensorRole::matrix || role == TensorRole::expert_packed) {
      EXPECT_NEAR(rms * std::sqrt(static_cast<double>(t.cols())), 1, 0.1) << t.name;
      EXPECT_TRUE(differs) << t.name;
    }
    if (role == TensorRole::dt_bias) {
      for (float x : a[t]) {  // decay at input 0: 5 sigmoid(bias)
        const double rate = 5 / (1 + std::exp(-static_cast<double>(x)));
        EXPECT_GE(rate, 0.999e-3);
        EXPECT_LE(rate, 1.001e-1);
      }
    }
  }
}

}  // namespace
}  // namespace triax::train
