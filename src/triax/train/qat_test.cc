// Exported values: what rounds and what does not, and that a checkpoint's own numbers stay.
#include "triax/train/qat.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/settings.h"
#include "triax/checkpoint/checkpoint.h"
#include "triax/core/mxfp4.h"
#include "triax/train/init.h"

namespace triax::train {
namespace {

using namespace triax::test;  // NOLINT
using Tensor = ParameterLayout::Tensor;

const std::string kFolder = TRIAX_GOLDEN_DIR "/text/tiny-a";

// The released form is a fixed point: nothing that was loaded changes. (One scale in a hundred of
// tiny-a is 2^-127: inside a step such numbers count as zero.)
TEST(ExportedValues, KeepACheckpointsNumbers) {
  const ParameterLayout layout(K3Config::load(kFolder));
  Parameters<float> stored(layout), exported(layout);
  load_parameters(*Checkpoint::open(kFolder), stored);
  Runner runner(2);
  exported_values(runner, stored, {}, exported);
  for (const Tensor& t : layout.tensors()) {
    std::vector<float> want(stored[t].begin(), stored[t].end());
    std::vector<float> got(exported[t].begin(), exported[t].end());
    for (std::vector<float>* x : {&want, &got}) {
      for (float& v : *x) v = std::abs(v) < 1e-37f ? 0.0f : v;
    }
    EXPECT_TRUE(same_bits(got, want)) << t.name;
  }
}

TEST(ExportedValues, RoundAsTheTableStoresEachTensor) {
  const ParameterLayout layout(K3Config::load(kFolder));
  Parameters<float> masters(layout), once(layout), twice(layout), copied(layout);
  init_parameters(1, masters);
  for (const Tensor& t : layout.tensors()) {  // ones and zeros would round to themselves
    const std::vector<float> noise = normal(t.offset, t.size, 0.01);
    for (std::size_t i = 0; i < t.size; ++i) masters[t][i] += noise[i];
  }
  Runner runner(3);
  exported_values(runner, masters, {}, once);
  exported_values(runner, once, {}, twice);
  exported_values(runner, masters, {false, false}, copied);
  EXPECT_TRUE(same_bits(twice.all(), once.all()));
  EXPECT_TRUE(same_bits(copied.all(), masters.all()));
  for (const Tensor& t : layout.tensors()) {
    const auto got = once[t], from = masters[t];
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < t.size; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(from[i])));
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(from[i])));
    }
    if (t.id.row->role == TensorRole::expert_packed) {
      EXPECT_GT(worst, 0.02 * largest) << t.name;
      EXPECT_LT(worst, 0.2 * largest) << t.name;
    } else if (t.id.row->dtype == DType::BF16) {
      EXPECT_GT(worst, 0.0) << t.name;
      EXPECT_LE(worst, largest / 256) << t.name;
    } else {
      EXPECT_EQ(worst, 0.0) << t.name;
    }
  }
}

// The quick way gives what the encoder and the decoder give, ties included.
TEST(ExportedValues, OfExpertsAreThoseOfTheEncoder) {
  const ParameterLayout layout(K3Config::load(kFolder));
  Parameters<float> masters(layout), got(layout);
  for (const Tensor& t : layout.tensors()) {
    const std::vector<float> values = normal(t.offset, t.size, std::pow(2.0, t.offset % 40) * 1e-6);
    std::copy(values.begin(), values.end(), masters[t].begin());
    if (t.id.row->role != TensorRole::expert_packed) continue;
    for (std::size_t i = 0; i < 64; ++i) {  // largest 6 or 7: every quarter up to there
      masters[t][i] = (i % 2 == 0 ? 0.25f : -0.25f) * static_cast<float>(i < 32 ? i % 25 : i % 29);
    }
    std::fill_n(masters[t].begin() + 64, 32, 0.0f);
  }
  Runner runner(2);
  exported_values(runner, masters, {}, got);
  for (const Tensor& t : layout.tensors()) {
    if (t.id.row->role != TensorRole::expert_packed) continue;
    const std::size_t rows = t.rows(), cols = t.cols();
    std::vector<std::uint8_t> packed(rows * cols / 2), scale(rows * cols / kMxfp4Group);
    mxfp4_encode(masters.as_matrix(t), packed.data(), scale.data());
    std::vector<float> want(t.size);
    for (std::size_t r = 0; r < rows; ++r) {
      mxfp4_decode_row({packed.data(), scale.data(), rows, cols}, r,
                       std::span(want).subspan(r * cols, cols));
    }
    EXPECT_TRUE(same_bits(got[t], want)) << t.name;
  }
}

}  // namespace
}  // namespace triax::train
