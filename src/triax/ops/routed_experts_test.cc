// The routed experts against the double-precision reference; grouping, batches, thread counts.
#include <gtest/gtest.h>

#include <deque>

#include "support/golden.h"
#include "support/settings.h"
#include "triax/core/mxfp4.h"
#include "triax/ops/moe.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

struct Packed {
  std::vector<std::uint8_t> packed, scale;
  Mxfp4View view;
  Packed(std::uint64_t seed, std::size_t rows, std::size_t cols)
      : packed(rows * cols / 2), scale(rows * cols / 32) {
    const auto values = normal(seed, rows * cols, 0.3);
    mxfp4_encode(as_mat(values, cols), packed.data(), scale.data());
    view = {packed.data(), scale.data(), rows, cols};
  }
};

// E experts of [width, latent] and random choices of k of them for T tokens.
struct Layer {
  std::size_t E, latent, width, T, k;
  std::deque<Packed> weights;
  std::vector<std::int32_t> experts, ids;
  std::vector<ExpertView> views;
  std::vector<float> z, w;

  Layer(std::size_t experts_, std::size_t latent_, std::size_t width_, std::size_t tokens,
        std::size_t top)
      : E(experts_), latent(latent_), width(width_), T(tokens), k(top), ids(T * k) {
    for (std::size_t e = 0; e < E; ++e) {
      const Mxfp4View& w1 = weights.emplace_back(3 * e, width, latent).view;
      const Mxfp4View& w2 = weights.emplace_back(3 * e + 1, latent, width).view;
      const Mxfp4View& w3 = weights.emplace_back(3 * e + 2, width, latent).view;
      views.push_back({w1, w2, w3});
      experts.push_back(static_cast<std::int32_t>(3 * e + 1));  // ids need not be dense
    }
    z = normal(1000, T * latent);
    w = uniform(1001, T * k, 0.1, 1);
    for (std::size_t t = 0; t < T; ++t) {
      for (std::size_t i = 0; i < k; ++i) {  // ascending, and expert 0 much wanted
        const std::size_t e = i == 0 ? 0
                                     : 1 + (t * 5 + t / 3 + i * ((E - 1) / k)) % ((E - 1) / k) +
                                           (i - 1) * ((E - 1) / k);
        ids[t * k + i] = experts[e];
      }
    }
  }

  std::vector<float> run(Context& ctx, const Activation& a = {}) const {
    std::vector<float> y(T * latent, 99.0f);
    routed_experts(ctx, as_mat(z, latent), as_mat(ids, k), as_mat(w, k), experts, views, a,
                   as_mat(y, latent));
    return y;
  }

  std::vector<double> expected(const std::vector<float>& input,
                               const ref::Activation& a = {}) const {
    const auto wide = widen(input);
    std::vector<double> y(T * latent, 0.0);
    for (std::size_t p = 0; p < T * k; ++p) {
      const std::size_t e = static_cast<std::size_t>(ids[p] - 1) / 3, t = p / k;
      const auto out = ref::expert(views[e], as_mat(wide, latent)[t], a);
      for (std::size_t c = 0; c < latent; ++c)
        y[t * latent + c] += static_cast<double>(w[p]) * out[c];
    }
    return y;
  }
};

TEST(RoutedExperts, EqualReference) {
  const Layer layers[] = {{7, 64, 96, 9, 2}, {5, 96, 160, 1, 3}, {3, 32, 32, 40, 1}};
  for (const Layer& layer : layers) {
    const auto want = layer.expected(layer.z);
    for_each_setting(
        Precision::f32, [&](Context& ctx) { return layer.run(ctx); },
        [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, 1e-5)); });
  }
}

TEST(RoutedExperts, ManyTokensOfOneExpertComeInBlocks) {
  const Layer layer(3, 32, 32, 600, 1);
  const auto want = layer.expected(layer.z);
  for_each_setting(
      Precision::f32, [&](Context& ctx) { return layer.run(ctx); },
      [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, 1e-5)); });
}

TEST(RoutedExperts, OtherActivations) {
  const Layer layer(5, 64, 64, 6, 2);
  const auto swiglu = layer.expected(layer.z, {false, 0, 0});
  const auto uncapped = layer.expected(layer.z, {true, 4, 0});
  for_each_isa([&] {
    Runner run(2);
    EXPECT_TRUE(close(layer.run(run, {false, 0, 0}), swiglu, 1e-5));
    EXPECT_TRUE(close(layer.run(run, {true, 4, 0}), uncapped, 1e-5));
  });
}

TEST(RoutedExperts, Bf16ModeRoundsOnlyTheInputsOfProducts) {
  const Layer layer(7, 64, 96, 9, 2);
  auto rounded = layer.z;
  round_all(rounded);
  const auto want = layer.expected(rounded);
  for_each_setting(
      Precision::bf16, [&](Context& ctx) { return layer.run(ctx); },
      [&](const std::vector<float>& y) {
        EXPECT_TRUE(close(y, want, 4e-3));  // the activation's output has 8 bits
        EXPECT_FALSE(close(y, want, 1e-6));
      });
}

TEST(RoutedExperts, ATokenIsTheSameAloneAndInABatch) {
  const Layer layer(7, 64, 96, 33, 3);
  for (const Precision mode : {Precision::f32, Precision::bf16}) {
    for_each_isa([&] {
      Runner run(3, mode);
      const auto all = layer.run(run);
      for (const std::size_t t : {0u, 5u, 32u}) {
        Layer one = layer;
        one.T = 1;
        one.z.assign(layer.z.begin() + t * 64, layer.z.begin() + (t + 1) * 64);
        one.ids.assign(layer.ids.begin() + t * 3, layer.ids.begin() + (t + 1) * 3);
        one.w.assign(layer.w.begin() + t * 3, layer.w.begin() + (t + 1) * 3);
        EXPECT_TRUE(same_bits(one.run(run), as_mat(all, 64)[t].span())) << "token " << t;
      }
    });
  }
}

TEST(RoutedExperts, AChosenExpertThatIsNotGivenIsRefused) {
  Layer layer(5, 32, 32, 2, 2);
  layer.ids[1] = 2;
  Runner run(1);
  EXPECT_THROW(layer.run(run), LogicError);
}

TEST(Mxfp4Reference, EqualsGoldenExactly) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  const auto& values = golden["mxfp4.values"];  // [3, 64]
  const Mxfp4View view{golden["mxfp4.packed"].u8.data(), golden["mxfp4.scale"].u8.data(), 3, 64};
  for (std::size_t c = 0; c < 64; ++c) {
    std::vector<double> unit(64, 0.0);
    unit[c] = 1;
    const auto column = ref::linear(view, unit);
    for (std::size_t r = 0; r < 3; ++r)
      EXPECT_EQ(column[r], static_cast<double>(values.f32[r * 64 + c]));
  }
}

}  // namespace
}  // namespace triax::ops
