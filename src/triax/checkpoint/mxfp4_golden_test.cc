// The MXFP4 codec on every routed expert of the golden checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/mxfp4.h"

namespace triax {
namespace {

struct Encoded {
  std::vector<std::uint8_t> packed, scale;
  Mxfp4View view(std::size_t rows, std::size_t cols) const {
    return {packed.data(), scale.data(), rows, cols};
  }
};

std::vector<float> decode(const Mxfp4View& m) {
  std::vector<float> out(m.rows * m.cols);
  for (std::size_t r = 0; r < m.rows; ++r) {
    mxfp4_decode_row(m, r, std::span(out).subspan(r * m.cols, m.cols));
  }
  return out;
}

Encoded encode(const std::vector<float>& values, std::size_t rows, std::size_t cols) {
  Encoded out{std::vector<std::uint8_t>(rows * cols / 2),
              std::vector<std::uint8_t>(rows * cols / kMxfp4Group)};
  mxfp4_encode(Mat<const float>(values.data(), {rows, cols}), out.packed.data(), out.scale.data());
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class GoldenExperts : public testing::TestWithParam<const char*> {};

TEST_P(GoldenExperts, CodecKeepsValuesAndThenBytes) {
  const auto c = Checkpoint::open(std::filesystem::path(TRIAX_GOLDEN_DIR "/text") / GetParam());
  constexpr std::string_view kPacked = ".weight_packed";
  std::size_t matrices = 0, zero_scales = 0;
  for (const TensorEntry& packed : c->tensors()) {
    if (!packed.name.ends_with(kPacked)) continue;
    ++matrices;
    const std::string stem(packed.name.substr(0, packed.name.size() - kPacked.size()));
    const TensorEntry* scale = c->find(stem + ".weight_scale");
    ASSERT_NE(scale, nullptr) << stem;
    const std::size_t rows = packed.shape[0], cols = 2 * packed.shape[1];
    ASSERT_EQ(scale->shape, (std::vector<std::size_t>{rows, cols / kMxfp4Group}));
    const Mxfp4View stored{reinterpret_cast<const std::uint8_t*>(c->data(packed).data()),
                           reinterpret_cast<const std::uint8_t*>(c->data(*scale).data()), rows,
                           cols};
    std::size_t nan_row = 0;
    EXPECT_FALSE(mxfp4_find_nan_scale(stored, nan_row)) << stem;
    zero_scales += static_cast<std::size_t>(
        std::count(stored.scale, stored.scale + rows * cols / kMxfp4Group, 0));

    const std::vector<float> values = decode(stored);
    const Encoded once = encode(values, rows, cols);
    const std::vector<float> again = decode(once.view(rows, cols));
    EXPECT_TRUE(same_bits(values, again)) << stem;
    const Encoded twice = encode(again, rows, cols);
    EXPECT_EQ(once.packed, twice.packed) << stem;
    EXPECT_EQ(once.scale, twice.scale) << stem;
  }
  EXPECT_GT(matrices, 50u);
  EXPECT_GT(zero_scales, 0u);  // the golden experts do hold the smallest scale
}

INSTANTIATE_TEST_SUITE_P(Text, GoldenExperts, testing::Values("tiny-a", "tiny-b", "tiny-c"),
                         [](const auto& instance) {
                           return std::string(1, std::string_view(instance.param).back());
                         });

}  // namespace
}  // namespace triax
