// Depthwise causal convolution. Channels are independent, so an item is a block of channels of one
// sequence: it widens its piece of the tail, runs over the rows, and writes the tail back.
#include "triax/ops/short_conv.h"

#include <algorithm>
#include <cstring>

#include "triax/kernels/kernels.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

constexpr std::size_t kMaxTaps = 8;        // what the kernel takes
constexpr std::size_t kWideBlock = 2048;   // channels of an item when there are few rows
constexpr std::size_t kNarrowBlock = 256;  // and when there are many
constexpr std::size_t kManyRows = 16;

struct Block {
  std::size_t begin, size;  // channels
};

void load_tail(const ConvTail& tail, std::size_t rows, std::size_t C, Block b, float* out) {
  for (std::size_t j = 0; j < rows; ++j) {
    const std::size_t at = j * C + b.begin;
    if (tail.dtype == DType::F32) {
      std::memcpy(out + j * b.size, static_cast<const float*>(tail.data) + at,
                  b.size * sizeof(float));
    } else {
      kernels().from_bf16(static_cast<const bf16*>(tail.data) + at, b.size, out + j * b.size);
    }
  }
}

// Row `j` of the tail takes the inputs at `x`.
void store_tail(const ConvTail& tail, std::size_t j, std::size_t C, Block b, const float* x) {
  const std::size_t at = j * C + b.begin;
  if (tail.dtype == DType::F32) {
    std::memcpy(static_cast<float*>(tail.data) + at, x, b.size * sizeof(float));
  } else {
    kernels().to_bf16(x, b.size, static_cast<bf16*>(tail.data) + at);
  }
}

// All rows of one segment, channels of one block. `old` is scratch for the tail, [taps-1, b.size].
void convolve(Mat<const float> x, Mat<const float> w, const Segment& s, const ConvTail& tail,
              Block b, float* old, Mat<float> y) {
  const KernelTable& k = kernels();
  const std::size_t taps = w.shape[0], past = taps - 1;
  load_tail(tail, past, x.shape[1], b, old);
  // The input i places after the tail's first row.
  const auto input = [&](std::size_t i) -> const float* {
    return i < past ? old + i * b.size : x[s.begin + i - past].data + b.begin;
  };
  for (std::size_t t = 0; t < s.rows; ++t) {
    const float* rows[kMaxTaps];
    for (std::size_t j = 0; j < taps; ++j) rows[j] = input(t + j);
    k.conv_silu(rows, w.data + b.begin, w.stride, taps, b.size, y[s.begin + t].data + b.begin);
  }
  for (std::size_t j = 0; j < past; ++j) store_tail(tail, j, x.shape[1], b, input(s.rows + j));
}

}  // namespace

void short_conv(Context& ctx, Mat<const float> x, Mat<const float> w,
                std::span<const Segment> segments, std::span<const ConvTail> tails, Mat<float> y) {
  const std::size_t C = x.shape[1], taps = w.shape[0];
  TRIAX_CHECK(taps >= 1 && taps <= kMaxTaps && w.shape[1] == C, "w is [taps, C], at most 8 taps");
  TRIAX_CHECK(x.shape == y.shape && x.data != y.data, "y is [T, C] and not x itself");
  TRIAX_CHECK(segments.size() == tails.size(), "one tail a segment");
  for (std::size_t i = 0; i < segments.size(); ++i) {
    TRIAX_CHECK(segments[i].begin + segments[i].rows <= x.shape[0], "segment inside the batch");
    TRIAX_CHECK(taps == 1 || tails[i].data != nullptr, "a tail for the past inputs");
    TRIAX_CHECK(tails[i].dtype == DType::F32 || tails[i].dtype == DType::BF16,
                "tail is F32 or BF16");
  }
  const std::size_t width = x.shape[0] < kManyRows ? kWideBlock : kNarrowBlock;
  const std::size_t blocks = ceil_div(C, width);
  const Arena::Scope scope(ctx.arena);
  const std::size_t scratch_size = round_up(std::max<std::size_t>(taps - 1, 1) * width, 16);
  const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * scratch_size);
  ctx.pool.parallel_for(segments.size() * blocks, [&](std::size_t item, std::size_t worker) {
    const std::size_t i = item / blocks, begin = item % blocks * width;
    convolve(x, w, segments[i], tails[i], {begin, std::min(width, C - begin)},
             scratch.data() + worker * scratch_size, y);
  });
}

}  // namespace triax::ops
