// Exported values, a stretch of rows at a time.
#include "triax/train/qat.h"

#include <algorithm>
#include <vector>

#include "triax/core/mxfp4.h"

namespace triax::train {
namespace {

constexpr std::size_t kItemNumbers = 16384;

struct Item {
  const ParameterLayout::Tensor* tensor;
  std::size_t begin, end;  // rows
};

// One row through MXFP4 and back. packed [cols / 2], scale [cols / 32].
void through_mxfp4(const float* from, std::size_t cols, std::uint8_t* packed, std::uint8_t* scale,
                   float* to) {
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
