// The whole model in training: forward pass against golden logits, every tensor's gradient against
// central differences, float32 against float64, documents, threads, memory.
#include "triax/train/step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <thread>

#include "support/golden.h"
#include "support/gradient.h"
#include "triax/checkpoint/checkpoint.h"
#include "triax/experts/mapped_experts.h"
#include "triax/model/forward.h"
#include "triax/model/recorder.h"

namespace triax::train {
namespace {

using namespace triax::test;  // NOLINT
using Tensor = ParameterLayout::Tensor;

struct Tiny {
  std::string folder;
  K3Config config;
  ParameterLayout layout;
  Golden golden;
  Parameters<float> f32;
  Parameters<double> f64;
  std::vector<std::int32_t> ids;

  explicit Tiny(const std::string& variant)
      : folder(std::string(TRIAX_GOLDEN_DIR) + "/text/tiny-" + variant),
        config(K3Config::load(folder)),
        layout(config),
        golden(folder + "/golden.safetensors"),
        f32(layout),
        f64(layout),
        ids(golden["input_ids"].i32) {
    const auto checkpoint = Checkpoint::open(folder);
    load_parameters(*checkpoint, f32);
    load_parameters(*checkpoint, f64);
  }
  template <class F>
  const Parameters<F>& weights() const {
    if constexpr (std::is_same_v<F, float>) {
      return f32;
    } else {
      return f64;
    }
  }
};

const Tiny& tiny(const std::string& variant) {
  static std::map<std::string, std::unique_ptr<Tiny>> all;
  auto& slot = all[variant];
  if (!slot) slot = std::make_unique<Tiny>(variant);
  return *slot;
}

// The first `rows` golden ids, each row's target the next id, cut into documents.
struct Data {
  std::vector<std::int32_t> ids, targets;
  std::vector<Segment> documents;

  Data(const Tiny& m, const std::vector<std::size_t>& lengths) {
    std::size_t at = 0;
    for (std::size_t n : lengths) {
      documents.push_back({at, n});
      at += n;
    }
    TRIAX_CHECK(at < m.ids.size());
    ids.assign(m.ids.begin(), m.ids.begin() + static_cast<std::ptrdiff_t>(at));
    targets.assign(m.ids.begin() + 1, m.ids.begin() + static_cast<std::ptrdiff_t>(at + 1));
  }
  TrainBatch batch() const { return {ids, targets, documents}; }
};

template <class F>
long double total_loss(Context& ctx, const Parameters<F>& weights, const TrainBatch& batch) {
  std::vector<F> losses(batch.ids.size());
  loss_only<F>(ctx, weights, batch, losses);
  long double sum = 0;
  for (F l : losses) sum += l;
  return sum;
}

TEST(TrainForward, EqualsGoldenLogits) {
  for (const std::string variant : {"a", "b", "c"}) {
    const Tiny& m = tiny(variant);
    const std::size_t T = m.ids.size(), V = m.config.vocab_size;
    const Segment all{0, T};
    const std::vector<std::int32_t> none(T, ops::kNoTarget);
    Runner runner(2);
    std::vector<double> wide(T * V);
    loss_only<double>(runner, m.f64, {m.ids, none, {&all, 1}}, {}, as_mat(wide, V));
    const std::vector<float> rounded(wide.begin(), wide.end());
    EXPECT_TRUE(close(rounded, m.golden["logits"].f32, 2e-7)) << variant;
    for_each_isa([&] {
      std::vector<float> logits(T * V);
      loss_only<float>(runner, m.f32, {m.ids, none, {&all, 1}}, {}, as_mat(logits, V));
      EXPECT_TRUE(close(logits, m.golden["logits"].f32, 2e-5)) << variant;
    });
  }
}

// Row by row inference takes the recurrent form of KDA. tiny-a begins with three KDA layers, two of
// them with experts, in BF16 and MXFP4; training has the same values as float32. (Alone, a row's
// MLA takes the absorbed form, so layers behind MLA agree within a tolerance only.)
TEST(TrainForward, EqualsInferenceBitForBitWhereTheFormsAreTheSame) {
  const Tiny& m = tiny("a");
  const std::size_t T = m.ids.size(), V = m.config.vocab_size;
  const std::vector<std::int32_t> none(T, ops::kNoTarget);
  const Segment all{0, T};
  const auto wanted = [](std::string_view name) {
    return name.ends_with(".out") && name.find('.') == name.rfind('.');
  };
  const auto checkpoint = Checkpoint::open(m.folder);
  const K3Weights stored = K3Weights::load(m.config, checkpoint);
  const auto experts = open_mapped_experts(m.config, checkpoint);
  for_each_isa([&] {
    Recorder training(wanted), inference(wanted);
    Runner runner(2);
    runner.context().probe = &training;
    std::vector<float> logits(T * V);
    loss_only<float>(runner, m.f32, {m.ids, none, {&all, 1}}, {}, as_mat(logits, V));
    runner.context().probe = &inference;
    SequenceState state(m.config, Precision::f32);
    std::vector<float> stepped(T * V);
    for (std::size_t t = 0; t < T; ++t) {
      const BatchEntry entry{&state, std::span(m.ids).subspan(t, 1), LogitRows::all};
      forward(runner, {m.config, stored, experts.get()}, {&entry, 1},
              as_mat(stepped, V).slice(t, t + 1));
    }
    for (const char* name : {"layer0.out", "layer1.out", "layer2.out"}) {
      EXPECT_TRUE(same_bits(training.arrays().find(name)->second.values,
                            inference.arrays().find(name)->second.values))
          << name;
    }
    EXPECT_TRUE(close(logits, stepped, 1e-5));
  });
}

// 20 random entries of every tensor, step 1e-5, relative 1e-6, float64. tiny-c: KDA and MLA, two
// stored blocks, a dense layer, latent experts; two documents.
TEST(TrainGradient, EqualsCentralDifferencesForEveryTensor) {
  const Tiny& m = tiny("c");
  const Data data(m, {6, 1, 5});
  Runner runner(2);
  Parameters<double> gradients(m.layout);
  const double sum = loss_and_gradient<double>(runner, m.f64, data.batch(), 1.0, gradients).sum;
  // Two workers with weights of their own: the passes are too small to cut up.
  const auto tensors = m.layout.tensors();
  const auto work = [&](std::size_t first) {
    Runner own(1);
    Parameters<double> weights(m.layout);
    std::copy(m.f64.all().begin(), m.f64.all().end(), weights.all().begin());
    for (std::size_t i = first; i < tensors.size(); i += 2) {
      const Tensor& t = tensors[i];
      if (t.id.row->update == Update::none) continue;  // the router's bias steps, it has no slope
      const auto loss = [&] { return total_loss<double>(own, weights, data.batch()); };
      check_gradient(t.name, weights[t], gradients[t], loss, t.offset, difference_noise(sum));
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
}

// The larger shapes: the slope along a random direction of each tensor. The step is relative to the
// tensor's numbers, since tiny-a has projections of very small ones.
TEST(TrainGradient, EqualsDirectionalDifferencesForLargerShapes) {
  for (const std::string variant : {"a", "b"}) {
    const Tiny& m = tiny(variant);
    const Data data(m, {9, 4});
    Runner runner(2);
    Parameters<double> gradients(m.layout), weights(m.layout);
    std::copy(m.f64.all().begin(), m.f64.all().end(), weights.all().begin());
    const double sum = loss_and_gradient<double>(runner, weights, data.batch(), 1.0, gradients).sum;
    for (const Tensor& t : m.layout.tensors()) {
      if (t.id.row->update == Update::none || t.id.expert > 0) continue;
      const std::vector<double> along = widen(normal(t.offset, t.size));
      const std::span<double> w = weights[t];
      const std::vector<double> before(w.begin(), w.end());
      const double length = std::sqrt(static_cast<double>(weighted(before, before)));
      const double step = kGradientStep * length / std::sqrt(static_cast<double>(t.size));
      const auto at = [&](double sign) {
        for (std::size_t i = 0; i < t.size; ++i) w[i] = before[i] + sign * step * along[i];
        const long double loss = total_loss<double>(runner, weights, data.batch());
        std::copy(before.begin(), before.end(), w.begin());
        return loss;
      };
      const double want = static_cast<double>((at(1) - at(-1)) / (2 * step));
      const double got = static_cast<double>(weighted(gradients[t], along));
      const double size = std::sqrt(static_cast<double>(weighted(gradients[t], gradients[t])));
      EXPECT_LE(std::abs(want - got),
                1e-6 * std::max(std::abs(want), size) + difference_noise(sum, step))
          << variant << " " << t.name << ": difference " << want << ", gradient " << got;
    }
  }
}

// 2e-5 of each tensor's largest; tiny-a's small projections in front of norms amplify float32's
// rounding (its README: a wrong epsilon shows), so its limit is 2e-4.
TEST(TrainGradient, Float32EqualsFloat64ForAnyNumberOfThreads) {
  for (const std::string variant : {"a", "b", "c"}) {
    const Tiny& m = tiny(variant);
    const Data data(m, variant == "b" ? std::vector<std::size_t>{50, 3, 16}
                                      : std::vector<std::size_t>{3, 1, 16});
    Runner runner(2);
    Parameters<double> want(m.layout);
    loss_and_gradient<double>(runner, m.f64, data.batch(), 0.5, want);
    for_each_isa([&] {
      Runner one(1);
      Parameters<float> got(m.layout);
      loss_and_gradient<float>(one, m.f32, data.batch(), 0.5f, got);
      for (const Tensor& t : m.layout.tensors()) {
        const std::span<const double> expected = want[t];
        const double limit = variant == "a" ? 2e-4 : kFloatGradientLimit;
        EXPECT_TRUE(close(got[t], expected, limit)) << variant << " " << t.name;
      }
      for (const std::size_t threads : {2u, 3u}) {
        Runner several(threads);
        Parameters<float> again(m.layout);
        loss_and_gradient<float>(several, m.f32, data.batch(), 0.5f, again);
        EXPECT_TRUE(same_bits(again.all(), got.all())) << variant << ", " << threads << " threads";
      }
    });
  }
}

TEST(TrainGradient, DocumentsKnowNothingOfEachOther) {
  const Tiny& m = tiny("c");
  const Data both(m, {7, 9});
  Runner runner(2);
  std::vector<float> packed(16), alone(7);
  Parameters<float> all(m.layout), first(m.layout), second(m.layout);
  const StepLoss loss =
      loss_and_gradient<float>(runner, m.f32, both.batch(), 1.0f, all, nullptr, packed);
  const auto part = [&](std::size_t begin, std::size_t rows, Parameters<float>& out,
                        std::span<float> losses) {
    const Segment whole{0, rows};
    const TrainBatch batch{Vec<const std::int32_t>(both.ids).slice(begin, begin + rows),
                           Vec<const std::int32_t>(both.targets).slice(begin, begin + rows),
                           {&whole, 1}};
    return loss_and_gradient<float>(runner, m.f32, batch, 1.0f, out, nullptr, Vec<float>(losses));
  };
  std::vector<float> behind(9);
  const double sum = part(0, 7, first, alone).sum + part(7, 9, second, behind).sum;
  alone.insert(alone.end(), behind.begin(), behind.end());
  EXPECT_TRUE(same_bits(packed, alone));
  EXPECT_NEAR(loss.sum, sum, 1e-12 * sum);
  EXPECT_EQ(loss.counted, 16u);
  for (const Tensor& t : m.layout.tensors()) {
    std::vector<double> want;
    for (std::size_t i = 0; i < t.size; ++i) {
      want.push_back(static_cast<double>(first[t][i]) + static_cast<double>(second[t][i]));
    }
    EXPECT_TRUE(close(all[t], want, 1e-5)) << t.name;
  }
}

TEST(TrainGradient, RowsWithoutTargetCountNowhere) {
  const Tiny& m = tiny("c");
  Data data(m, {7, 9});
  Runner runner(2);
  Parameters<double> one(m.layout), padded(m.layout);
  const Segment first{0, 7};
  const TrainBatch short_batch{Vec<const std::int32_t>(data.ids).slice(0, 7),
                               Vec<const std::int32_t>(data.targets).slice(0, 7),
                               {&first, 1}};
  const StepLoss want = loss_and_gradient<double>(runner, m.f64, short_batch, 1.0, one);
  std::fill(data.targets.begin() + 7, data.targets.end(), ops::kNoTarget);
  const StepLoss got = loss_and_gradient<double>(runner, m.f64, data.batch(), 1.0, padded);
  EXPECT_EQ(got.sum, want.sum);
  EXPECT_EQ(got.counted, 7u);
  for (const Tensor& t : m.layout.tensors()) {
    double largest = 0;
    for (double g : one[t]) largest = std::max(largest, std::abs(g));
    for (std::size_t i = 0; i < t.size; ++i) {
      ASSERT_NEAR(padded[t][i], one[t][i], 1e-13 * largest) << t.name;
    }
  }
  std::fill(data.targets.begin(), data.targets.end(), ops::kNoTarget);
  Parameters<double> none(m.layout);
  EXPECT_EQ(loss_and_gradient<double>(runner, m.f64, data.batch(), 1.0, none).mean(), 0.0);
  for (double g : none.all()) ASSERT_EQ(g, 0.0);
}

TEST(TrainGradient, EmptyExpertsAndTheRoutersBiasGetExactZeros) {
  const Tiny& m = tiny("c");
  const Data data(m, {2});  // at most 6 of 11 experts a layer
  Runner runner(2);
  Parameters<float> gradients(m.layout);
  std::vector<std::vector<bool>> used(m.config.num_hidden_layers,
                                      std::vector<bool>(m.config.num_experts));
  StepWatch<float> watch;
  std::size_t calls = 0;
  watch.routed = [&](std::size_t layer, Mat<const float> scores, Mat<const std::int32_t> ids) {
    ++calls;
    EXPECT_EQ(scores.shape[1], m.config.num_experts);
    for (std::size_t t = 0; t < ids.shape[0]; ++t) {
      for (std::int32_t id : ids[t]) used[layer][static_cast<std::size_t>(id)] = true;
    }
  };
  loss_and_gradient<float>(runner, m.f32, data.batch(), 1.0f, gradients, &watch);
  EXPECT_EQ(calls, m.config.moe_layers());
  std::size_t empty = 0;
  for (const Tensor& t : m.layout.tensors()) {
    const auto zero = [&] {
      const auto g = gradients[t];
      return std::all_of(g.begin(), g.end(), [](float x) { return x == 0.0f; });
    };
    if (t.id.row->role == TensorRole::expert_packed) {
      EXPECT_EQ(zero(), !used[t.id.layer][t.id.expert]) << t.name;
      empty += zero();
    }
    if (t.id.row->role == TensorRole::router_bias) {
      EXPECT_TRUE(zero()) << t.name;
    }
  }
  EXPECT_GT(empty, 0u);
  for (std::size_t l = 0; l < m.config.num_hidden_layers; ++l) {
    EXPECT_EQ(watch.max_logits[l].size(), m.config.is_kda(l) ? 0 : m.config.num_attention_heads);
    for (float x : watch.max_logits[l]) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST(TrainGradient, MemoryIsWhatActivationNumbersSays) {
  const Tiny& m = tiny("a");
  std::vector<std::int32_t> ids(640), targets(640, 1);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i % 320);
  const std::vector<Segment> documents{{0, 300}, {300, 340}};
  ThreadPool pool(2);
  Arena arena;
  Context ctx{pool, arena, Precision::f32, nullptr};
  Parameters<float> gradients(m.layout);
  loss_and_gradient<float>(ctx, m.f32, {ids, targets, documents}, 1.0f, gradients);
  const std::size_t kept = activation_numbers(m.config, 640, 2) * sizeof(float);
  EXPECT_GT(arena.peak_bytes(), kept);
  EXPECT_LT(arena.peak_bytes(), kept + kept / 2);  // one module's temporaries
}

}  // namespace
}  // namespace triax::train
