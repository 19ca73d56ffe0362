// Multi-head latent attention: shape checks, the choice of the path, the running softmax.
#include "triax/ops/mla.h"

#include <cmath>
#include <limits>

#include "triax/kernels/kernels.h"
#include "triax/ops/mla_tile.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

void check_shapes(const MlaShape& s, Mat<const float> q, const MatrixView& kv_b,
                  std::span<const Segment> segments, std::span<const LatentView> caches,
                  Mat<float> attended) {
  TRIAX_CHECK(q.shape[1] == s.heads * (s.nope + s.rope), "q is [T, H * (nope + rope)]");
  TRIAX_CHECK(attended.shape[0] == q.shape[0] && attended.shape[1] == s.heads * s.value,
              "attended is [T, H * value]");
  TRIAX_CHECK(kv_b.present() && kv_b.rows == s.heads * (s.nope + s.value) && kv_b.cols == s.latent,
              "kv_b is [H * (nope + value), latent]");
  TRIAX_CHECK(segments.size() == caches.size(), "one cache a segment");
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& g = segments[i];
    const LatentView& c = caches[i];
    if (g.rows == 0) continue;
    TRIAX_CHECK(g.begin + g.rows <= q.shape[0], "segment inside the batch");
    TRIAX_CHECK(c.width == s.latent + s.rope && c.page_tokens > 0,
                "cache rows are latent + rope wide");
    TRIAX_CHECK(c.dtype == DType::F32 || c.dtype == DType::BF16, "cache is F32 or BF16");
    TRIAX_CHECK(c.tokens >= g.rows && c.pages.size() >= ceil_div(c.tokens, c.page_tokens),
                "the cache holds the segment's rows");
  }
}

// Multiplications for each head, with n rows and a context of L tokens; pairs = visible (row,
// token):
//   absorbed: n (nope latent + latent value) + pairs (latent + rope + latent)
//   expanded: L (nope + value) latent        + pairs (nope + rope + value)
struct Cost {
  double absorbed, expanded;
};
Cost multiplications(const MlaShape& s, std::size_t rows, std::size_t context) {
  const double n = static_cast<double>(rows), L = static_cast<double>(context);
  const double pairs = n * L - n * (n - 1) / 2;
  const double block = static_cast<double>((s.nope + s.value) * s.latent);
  return {n * block + pairs * static_cast<double>(2 * s.latent + s.rope),
          L * block + pairs * static_cast<double>(s.nope + s.rope + s.value)};
}

// The matrix unit's multiplications, which the expanded form can use, are so much cheaper.
constexpr double kMatrixAdvantage = 4;

// One row is always absorbed: a step of generation is computed alike at every length.
bool choose_absorbed(const Cost& cost, std::size_t rows, bool matrix) {
  return rows == 1 || cost.absorbed <= cost.expanded / (matrix ? kMatrixAdvantage : 1);
}

}  // namespace

float mla_scale(const MlaShape& s) {
  return 1.0f / std::sqrt(static_cast<float>(s.nope + s.rope));
}

void softmax_tile(Running& state, float* scores, std::size_t count, float* acc, std::size_t n) {
  const KernelTable& k = kernels();
  const float largest = std::max(state.largest, k.max(scores, count));
  const float keep = std::exp(state.largest - largest);  // 0 at the first tile
  state.sum = state.sum * keep + k.exp_sum(scores, largest, count, scores);
  if (keep != 1.0f) k.scale(keep, acc, n, acc);
  state.largest = largest;
}

void causal_softmax(const MlaShape& shape, const MlaBlock& block, float* scores, std::size_t ld,
                    Running* state, float* acc) {
  for (std::size_t i = 0; i < block.rows; ++i) {
    float* p = scores + i * ld;
    const std::size_t row = block.first + i;
    const std::size_t visible = block.before + row + 1;  // tokens that the row sees
    const std::size_t count =
        visible <= block.begin ? 0 : std::min(visible, block.end) - block.begin;
    if (count != 0) {
      kernels().scale(mla_scale(shape), p, count, p);
      softmax_tile(state[row], p, count, acc + row * shape.value, shape.value);
    }
    std::fill(p + count, p + ld, 0.0f);
  }
}

void mla_attend(Context& ctx, const MlaShape& shape, Mat<const float> q, const MatrixView& kv_b,
                std::span<const Segment> segments, std::span<const LatentView> caches,
                Mat<float> attended, MlaPath path) {
  check_shapes(shape, q, kv_b, segments, caches, attended);
  const Arena::Scope scope(ctx.arena);
  // Segments by path: absorbed from the front, expanded from the back; by the matrix unit last.
  const std::span<std::size_t> index = ctx.arena.take<std::size_t>(segments.size());
  const std::span<std::size_t> by_matrix = ctx.arena.take<std::size_t>(segments.size());
  std::size_t absorbed = 0, expanded = segments.size(), matrix = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].rows == 0) continue;
    const bool suits = mla_suits_matrix(ctx, shape, kv_b, caches[i]);
    const Cost cost = multiplications(shape, segments[i].rows, caches[i].tokens);
    const bool a = path == MlaPath::absorbed ||
                   (path == MlaPath::automatic && choose_absorbed(cost, segments[i].rows, suits));
    ctx.count(caches[i].tokens * caches[i].width * dtype_size(caches[i].dtype),
              static_cast<std::uint64_t>(2 * (a ? cost.absorbed : cost.expanded)) * shape.heads);
    if (a) {
      index[absorbed++] = i;
    } else if (suits) {
      by_matrix[matrix++] = i;
    } else {
      index[--expanded] = i;
    }
  }
  ctx.count(kv_b.bytes(), 0);
  const auto part = [&](std::span<const std::size_t> chosen) {
    return MlaBatch{segments, caches, chosen};
  };
  if (absorbed != 0) mla_absorbed(ctx, shape, q, kv_b, part(index.first(absorbed)), attended);
  if (expanded != segments.size()) {
    mla_expanded(ctx, shape, q, kv_b, part(index.subspan(expanded)), attended);
  }
  if (matrix != 0) {
    mla_expanded_matrix(ctx, shape, q, kv_b, part(by_matrix.first(matrix)), attended);
  }
}

}  // namespace triax::ops
