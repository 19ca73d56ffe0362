// The depth mix: golden values, an example by hand (acceptance case P06), aliasing, extreme scores.
#include "triax/ops/attn_res.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/golden.h"
#include "support/settings.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

// Sources as separate matrices, from [T, S, N].
std::vector<std::vector<float>> split_sources(const std::vector<float>& all, std::size_t S,
                                              std::size_t N) {
  std::vector<std::vector<float>> out(S);
  for (std::size_t i = 0; i < all.size() / N; ++i) {
    out[i % S].insert(out[i % S].end(), all.begin() + i * N, all.begin() + (i + 1) * N);
  }
  return out;
}

std::vector<Mat<const float>> views(const std::vector<std::vector<float>>& sources, std::size_t N) {
  std::vector<Mat<const float>> out;
  for (const auto& s : sources) out.push_back(as_mat(s, N));
  return out;
}

TEST(DepthMix, EqualsGolden) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  const auto& all = golden["attn_res.sources"];  // [5, 4, 24]
  const std::size_t T = all.shape[0], S = all.shape[1], N = all.shape[2];
  const auto sources = split_sources(all.f32, S, N);
  for_each_setting(
      Precision::bf16,  // float32 in both modes
      [&](Context& ctx) {
        std::vector<float> y(T * N), probs(T * S), scores(T * S);
        depth_mix(ctx, views(sources, N), golden["attn_res.w"].f32, 1e-5f, as_mat(y, N),
                  as_mat(probs, S), as_mat(scores, S));
        EXPECT_TRUE(close(probs, golden["attn_res.probs"].f32, 1e-5));
        EXPECT_TRUE(close(scores, golden["attn_res.scores"].f32, 1e-5));
        return y;
      },
      [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, golden["attn_res.y"].f32, 1e-5)); });
}

TEST(DepthMix, ThreeSourcesByHand) {
  const std::vector<std::vector<float>> sources{{1, 1}, {2, -2}, {0, 3}};
  const std::vector<float> w{1, 0.5f};
  for_each_isa([&] {
    Runner run(1);
    std::vector<float> y(2), probs(3);
    depth_mix(run, views(sources, 2), w, 1e-5f, as_mat(y, 2), as_mat(probs, 3));
    const double want_probs[] = {0.549324, 0.202086, 0.248589}, want[] = {0.953497, 0.890919};
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(probs[i], want_probs[i], 1e-6);
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(y[i], want[i], 1e-6);
  });
}

TEST(DepthMix, TheResultMayReplaceASource) {
  const std::size_t T = 3, N = 5000, S = 9;  // several stretches a row
  const auto sources = split_sources(normal(1, T * S * N), S, N);
  const auto w = normal(2, N);
  std::vector<double> want;
  for (std::size_t t = 0; t < T; ++t) {
    std::vector<double> row;
    for (const auto& s : sources) row.insert(row.end(), s.begin() + t * N, s.begin() + (t + 1) * N);
    const auto mixed = ref::depth_mix(as_mat(row, N), widen(w), 1e-5);
    want.insert(want.end(), mixed.y.begin(), mixed.y.end());
  }
  for (const std::size_t target : {std::size_t{0}, std::size_t{4}, S - 1}) {
    for_each_setting(
        Precision::f32,
        [&](Context& ctx) {
          auto own = sources;
          depth_mix(ctx, views(own, N), w, 1e-5f, as_mat(own[target], N));
          for (std::size_t i = 0; i < S; ++i) {
            if (i == target) continue;
            EXPECT_TRUE(same_bits(own[i], sources[i])) << "source " << i << " changed";
          }
          return own[target];
        },
        [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, 1e-5)); });
  }
}

TEST(DepthMix, ARowIsTheSameAloneAndInABatch) {
  const std::size_t T = 40, N = 300, S = 4;
  const auto sources = split_sources(normal(3, T * S * N), S, N);
  const auto w = normal(4, N);
  for_each_isa([&] {
    Runner run(2);
    std::vector<float> all(T * N), one(N);
    depth_mix(run, views(sources, N), w, 1e-5f, as_mat(all, N));
    for (const std::size_t t : {0u, 17u, 39u}) {
      std::vector<Mat<const float>> rows;
      for (const auto& s : sources) rows.push_back(as_mat(s, N).slice(t, t + 1));
      depth_mix(run, rows, w, 1e-5f, as_mat(one, N));
      EXPECT_TRUE(same_bits(one, as_mat(all, N)[t].span()));
    }
  });
}

TEST(DepthMix, LargeScoresDoNotOverflow) {
  const std::vector<std::vector<float>> sources{{1, 1}, {-1, -1}, {1, -1}};
  const std::vector<float> w{500, 500};
  for_each_isa([&] {
    Runner run(1);
    std::vector<float> y(2), probs(3);
    depth_mix(run, views(sources, 2), w, 1e-5f, as_mat(y, 2), as_mat(probs, 3));
    EXPECT_EQ(probs, (std::vector<float>{1, 0, 0}));
    EXPECT_EQ(y, (std::vector<float>{1, 1}));
  });
}

}  // namespace
}  // namespace triax::ops
