// Exported values, a stretch of rows at a time.
#include "triax/train/qat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "triax/core/mxfp4.h"

namespace triax::train {
namespace {

constexpr std::size_t kItemNumbers = 16384;

struct Item {
  const ParameterLayout::Tensor* tensor;
  std::size_t begin, end;  // rows
};

// 32 numbers to the grid of their scale, as mxfp4_encode() and the decoding do, but in loops that
// the compiler makes vectors of. False where the scale is at an end of its range or a number is not
// finite: those are left to the encoder.
bool group_through_mxfp4(const float* from, float* to) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < kMxfp4Group; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(from[i]) & 0x7FFFFFFFu);
  }
  const std::uint32_t exponent = largest >> 23;
  if (exponent < 8 || exponent > 246) return false;
  // the "even" rule: two below the largest number's exponent, one more from a mantissa of 1.75 on
  const std::uint32_t e = exponent - 2 + ((largest & 0x7FFFFFu) >= 0x600000u ? 1 : 0);
  const float scale = std::bit_cast<float>(e << 23),
              inverse = std::bit_cast<float>((254 - e) << 23);
  for (std::size_t i = 0; i < kMxfp4Group; ++i) {
    const float a = std::fabs(from[i]) * inverse;
    // Codes lie 0.5 apart below 2, 1 below 4, then 2; adding a number with that unit in the last
    // place rounds to them, a tie to the even code.
    const float unit = a < 2.0f ? 0x1.8p22f : a < 4.0f ? 0x1.8p23f : 0x1.8p24f;
    const float rounded = (a + unit) - unit;
    to[i] = std::copysign(std::min(rounded, 6.0f) * scale, from[i]);
  }
  return true;
}

// One row through MXFP4 and back. packed [cols / 2], scale [cols / 32].
void through_mxfp4(const float* from, std::size_t cols, std::uint8_t* packed, std::uint8_t* scale,
                   float* to) {
  bool done = true;
  for (std::size_t c = 0; done && c < cols; c += kMxfp4Group) {
    done = group_through_mxfp4(from + c, to + c);
  }
  if (done) return;
  mxfp4_encode(Mat<const float>(from, {1, cols}), packed, scale);
  mxfp4_decode_row({packed, scale, 1, cols}, 0, {to, cols});
}

}  // namespace

void exported_values(Context& ctx, const Parameters<float>& masters, Exported what,
                     Parameters<float>& out) {
  TRIAX_CHECK(&masters.layout() == &out.layout());
  std::vector<Item> items;
  std::size_t widest = 0;
  for (const ParameterLayout::Tensor& t : out.layout().tensors()) {
    const std::size_t cols = t.cols();
    if (t.id.row->role == TensorRole::expert_packed) {
      if (what.experts && cols % kMxfp4Group != 0) {
        fail("{}: {} columns; MXFP4 needs a multiple of {}", t.name, cols, kMxfp4Group);
      }
      widest = std::max(widest, cols);
    }
    const std::size_t rows =
        std::max<std::size_t>(kItemNumbers / std::max<std::size_t>(cols, 1), 1);
    for (std::size_t r = 0; r < t.rows(); r += rows) {
      items.push_back({&t, r, std::min(t.rows(), r + rows)});
    }
  }
  const Arena::Scope scope(ctx.arena);
  const Mat<std::uint8_t> scratch = ctx.arena.take_mat<std::uint8_t>(ctx.pool.threads(), widest);
  ctx.pool.parallel_for(items.size(), [&](std::size_t i, std::size_t worker) {
    const auto& [t, begin, end] = items[i];
    const std::size_t cols = t->cols();
    const float* from = masters[*t].data();
    float* to = out[*t].data();
    const bool expert = t->id.row->role == TensorRole::expert_packed;
    if (expert && what.experts) {
      std::uint8_t* packed = scratch[worker].data;  // codes, then scales: 17 bytes for 32 columns
      for (std::size_t r = begin; r < end; ++r) {
        through_mxfp4(from + r * cols, cols, packed, packed + cols / 2, to + r * cols);
      }
    } else if (!expert && what.trunk && t->id.row->dtype == DType::BF16) {
      for (std::size_t j = begin * cols; j < end * cols; ++j) to[j] = round_to_bf16(from[j]);
    } else {
      std::copy(from + begin * cols, from + end * cols, to + begin * cols);
    }
  });
}

}  // namespace triax::train
