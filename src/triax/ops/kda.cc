// KDA over a ragged batch: one item for each (segment, head), which owns that head's state.
#include "triax/ops/kda.h"

#include <algorithm>
#include <cmath>

#include "triax/kernels/kernels.h"
#include "triax/ops/kda_chunk.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

struct Dims {
  std::size_t heads, K, V;
  float q_scale;  // K^-1/2
};

void check_shapes(const KdaInputs& in, std::span<const Segment> segments,
                  std::span<float* const> states, View<float, 3> o) {
  TRIAX_CHECK(in.k.shape == in.q.shape && in.g.shape == in.q.shape, "q, k, g are [T, H, K]");
  TRIAX_CHECK(in.v.shape == o.shape, "v, o are [T, H, V]");
  TRIAX_CHECK(in.v.shape[0] == in.q.shape[0] && in.v.shape[1] == in.q.shape[1], "v is [T, H, V]");
  TRIAX_CHECK(in.beta.shape[0] == in.q.shape[0] && in.beta.shape[1] == in.q.shape[1],
              "beta is [T, H]");
  TRIAX_CHECK(segments.size() == states.size(), "one state a segment");
  for (std::size_t i = 0; i < segments.size(); ++i) {
    TRIAX_CHECK(segments[i].begin + segments[i].rows <= in.q.shape[0], "segment inside the batch");
    TRIAX_CHECK(segments[i].rows == 0 || states[i] != nullptr, "a state for the rows");
  }
}

// Rows [begin, begin + rows) of head h.
KdaRows rows_of(const KdaInputs& in, const Dims& d, std::size_t begin, std::size_t rows,
                std::size_t h) {
  return {in.q.data + begin * in.q.stride + h * d.K,
          in.k.data + begin * in.k.stride + h * d.K,
          in.v.data + begin * in.v.stride + h * d.V,
          in.g.data + begin * in.g.stride + h * d.K,
          in.beta.data + begin * in.beta.stride + h,
          in.q.stride,
          in.k.stride,
          in.v.stride,
          in.g.stride,
          in.beta.stride,
          rows};
}

// `scratch` holds 2 K + V values.
void recurrence(const KdaRows& in, const Dims& d, float* S, float* o, std::size_t ldo,
                float* scratch) {
  const KernelTable& k = kernels();
  for (std::size_t t = 0; t < in.rows; ++t) {
    k.scale(d.q_scale, in.q + t * in.ldq, d.K, scratch);
    k.kda_step(S, scratch, in.k + t * in.ldk, in.v + t * in.ldv, in.g + t * in.ldg,
               in.beta[t * in.ldbeta], d.K, d.V, o + t * ldo, scratch + d.K);
  }
}

}  // namespace

void kda(Context& ctx, const KdaInputs& in, std::span<const Segment> segments,
         std::span<float* const> states, bool bounded_decay, View<float, 3> o, KdaPath path) {
  check_shapes(in, segments, states, o);
  const Dims d{in.q.shape[1], in.q.shape[2], in.v.shape[2],
               1.0f / std::sqrt(static_cast<float>(in.q.shape[2]))};
  // States are read and written once a pass; decay, two products with S and one rank-one update.
  const std::size_t state_values = d.heads * d.K * d.V;
  ctx.count(segments.size() * state_values * 2 * sizeof(float), 7 * in.q.shape[0] * state_values);
  const Arena::Scope scope(ctx.arena);
  const std::size_t slice = round_up(std::max(KdaScratch::size(d.K, d.V), 2 * d.K + d.V), 16);
  const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * slice);
  ctx.pool.parallel_for(segments.size() * d.heads, [&](std::size_t item, std::size_t worker) {
    const std::size_t i = item / d.heads, h = item % d.heads;
    const Segment& segment = segments[i];
    float* S = states[i] + h * d.K * d.V;
    float* own = scratch.data() + worker * slice;
    const bool steps =
        path == KdaPath::recurrent || (path == KdaPath::automatic && segment.rows == 1);
    const std::size_t chunk = steps ? std::max<std::size_t>(segment.rows, 1) : kKdaChunk;
    for (std::size_t t = 0; t < segment.rows; t += chunk) {
      const std::size_t begin = segment.begin + t, rows = std::min(chunk, segment.rows - t);
      const KdaRows part = rows_of(in, d, begin, rows, h);
      float* out = o.data + begin * o.stride + h * d.V;
      if (steps) {
        recurrence(part, d, S, out, o.stride, own);
      } else {
        KdaScratch s(own, d.K, d.V);
        kda_chunk_terms(part, d.K, d.q_scale, bounded_decay, s);
        kda_chunk_apply(part, d.K, d.V, s, S, out, o.stride);
      }
    }
  });
}

}  // namespace triax::ops
