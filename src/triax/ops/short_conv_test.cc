// The short convolution: golden values, any split of a sequence, ragged batches, BF16 tails.
#include "triax/ops/short_conv.h"

#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/settings.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

std::vector<float> transpose(const std::vector<float>& x, std::size_t cols) {
  std::vector<float> out(x.size());
  const std::size_t rows = x.size() / cols;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) out[j * rows + i] = x[i * cols + j];
  }
  return out;
}

// y [T, C], w [taps, C], tail [taps - 1, C]
std::vector<double> expected(const std::vector<float>& tail, const std::vector<float>& x,
                             const std::vector<float>& w, std::size_t C) {
  std::vector<float> all = tail;
  all.insert(all.end(), x.begin(), x.end());
  const std::size_t taps = w.size() / C;
  std::vector<double> y(x.size()), taps_of(taps), inputs(taps);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < taps; ++j) {
      taps_of[j] = w[j * C + i % C];
      inputs[j] = all[(i / C + j) * C + i % C];
    }
    y[i] = ref::short_conv(taps_of, inputs);
  }
  return y;
}

TEST(ShortConv, EqualsGolden) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  const auto& x = golden["conv.x"];  // [9, 10]; w [10, 4] and state [10, 3] are channel first
  const std::size_t C = x.cols();
  const auto w = transpose(golden["conv.w"].f32, 4);
  const auto state = transpose(golden["conv.state"].f32, 3);
  const auto after = transpose(golden["conv.state_after"].f32, 3);
  for_each_setting(
      Precision::f32,
      [&](Context& ctx) {
        auto tail = state;
        std::vector<float> y(x.f32.size());
        const Segment segment{0, x.rows()};
        const ConvTail t{tail.data(), DType::F32};
        short_conv(ctx, as_mat(x.f32, C), as_mat(w, C), {&segment, 1}, {&t, 1}, as_mat(y, C));
        EXPECT_TRUE(same_bits(tail, after));
        return y;
      },
      [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, golden["conv.y"].f32, 1e-5)); });
}

// Several sequences in one batch, cut in all kinds of places, tails in either type: every row must
// have the bits of its own sequence computed whole.
class ShortConvSplit : public testing::TestWithParam<std::tuple<std::size_t, std::size_t, DType>> {
};

TEST_P(ShortConvSplit, AnySplitOfAnySequenceGivesTheSameBits) {
  const std::size_t C = std::get<0>(GetParam()), taps = std::get<1>(GetParam());
  const DType type = std::get<2>(GetParam());
  const std::size_t T = 23, sequences = 3;
  const auto w = normal(1, taps * C);
  for_each_isa([&] {
    Runner run(3);
    std::vector<std::vector<float>> x(sequences), y(sequences), tails(sequences);
    std::vector<std::vector<bf16>> half(sequences);
    for (std::size_t s = 0; s < sequences; ++s) {
      x[s] = normal(10 + s, T * C);
      if (type == DType::BF16) round_all(x[s]);
      y[s].resize(T * C);
      tails[s].assign(std::max<std::size_t>((taps - 1) * C, 1), 0.0f);
      half[s] = narrow(tails[s]);
      const ConvTail tail{type == DType::F32 ? static_cast<void*>(tails[s].data()) : half[s].data(),
                          type};
      const Segment whole{0, T};
      short_conv(run, as_mat(x[s], C), as_mat(w, C), {&whole, 1}, {&tail, 1}, as_mat(y[s], C));
      const std::vector<float> zeros((taps - 1) * C, 0.0f);
      EXPECT_TRUE(close(y[s], expected(zeros, x[s], w, C), 1e-6));
      std::fill(tails[s].begin(), tails[s].end(), 0.0f);
      half[s] = narrow(tails[s]);
    }
    std::vector<std::size_t> done(sequences, 0);
    const std::size_t cuts[] = {1, 2, 5, 1, 3, 11};  // 23 rows; sequence s begins with cut s
    for (std::size_t step = 0; step < 6; ++step) {
      std::vector<Segment> segments;
      std::vector<ConvTail> tail;
      std::vector<float> batch, want;
      for (std::size_t s = 0; s < sequences; ++s) {
        const std::size_t n = cuts[(step + s) % 6];
        segments.push_back({batch.size() / C, n});
        batch.insert(batch.end(), x[s].begin() + done[s] * C, x[s].begin() + (done[s] + n) * C);
        want.insert(want.end(), y[s].begin() + done[s] * C, y[s].begin() + (done[s] + n) * C);
        tail.push_back(
            {type == DType::F32 ? static_cast<void*>(tails[s].data()) : half[s].data(), type});
        done[s] += n;
      }
      std::vector<float> got(batch.size());
      short_conv(run, as_mat(batch, C), as_mat(w, C), segments, tail, as_mat(got, C));
      EXPECT_TRUE(same_bits(got, want)) << "step " << step;
    }
    for (std::size_t s = 0; s < sequences; ++s) {  // the newest inputs
      const std::vector<float> newest(x[s].end() - (taps - 1) * C, x[s].end());
      if (type == DType::F32) tails[s].resize((taps - 1) * C);
      std::vector<float> kept = tails[s];
      if (type == DType::BF16) {
        kept.resize((taps - 1) * C);
        for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = to_float(half[s][i]);
      }
      EXPECT_TRUE(same_bits(kept, newest));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ShortConvSplit,
                         testing::Values(std::tuple{std::size_t{10}, std::size_t{4}, DType::F32},
                                         std::tuple{std::size_t{300}, std::size_t{4}, DType::BF16},
                                         std::tuple{std::size_t{33}, std::size_t{2}, DType::F32},
                                         std::tuple{std::size_t{17}, std::size_t{1}, DType::F32},
                                         std::tuple{std::size_t{2100}, std::size_t{8},
                                                    DType::BF16}));

TEST(ShortConv, ASegmentWithoutRowsKeepsItsTail) {
  Runner run(1);
  std::vector<float> tail{1, 2, 3}, x, y, w(4, 1.0f);
  const Segment none{0, 0};
  const ConvTail t{tail.data(), DType::F32};
  float input = 0, output = 0;
  short_conv(run, Mat<const float>(&input, {0, 1}), as_mat(w, 1), {&none, 1}, {&t, 1},
             Mat<float>(&output, {0, 1}));
  EXPECT_EQ(tail, (std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace triax::ops
