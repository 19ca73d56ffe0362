// Depth mix: scores of every (row, source), then the weighted sums. Two passes, so that one row (a
// step of generation) also has work for several threads.
#include "triax/ops/attn_res.h"

#include "triax/kernels/kernels.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

constexpr std::size_t kStretch = 2048;  // columns of a weighted sum in one item

void check_shapes(std::span<const Mat<const float>> sources, Vec<const float> w, Mat<float> y,
                  Mat<float> probs, Mat<float> scores) {
  TRIAX_CHECK(!sources.empty(), "at least one source");
  for (const Mat<const float>& s : sources)
    TRIAX_CHECK(s.shape == y.shape, "sources and y are [T, N]");
  TRIAX_CHECK(w.size() == y.shape[1], "w is [N]");
  const std::array<std::size_t, 2> small{y.shape[0], sources.size()};
  TRIAX_CHECK(probs.data == nullptr || probs.shape == small, "probs is [T, sources]");
  TRIAX_CHECK(scores.data == nullptr || scores.shape == small, "scores is [T, sources]");
}

// p = softmax(score), n elements. Plain sums in order: n is the number of sources.
void softmax(const float* score, std::size_t n, float* p) {
  const KernelTable& k = kernels();
  const float sum = k.exp_sum(score, k.max(score, n), n, p);
  for (std::size_t i = 0; i < n; ++i) p[i] /= sum;
}

}  // namespace

void depth_mix(Context& ctx, std::span<const Mat<const float>> sources, Vec<const float> w,
               float eps, Mat<float> y, Mat<float> probs, Mat<float> scores) {
  check_shapes(sources, w, y, probs, scores);
  const std::size_t T = y.shape[0], n = y.shape[1], S = sources.size();
  if (T == 0) return;
  ctx.count(0, 6 * T * n * S);  // score: norm and product; then the weighted sum
  const Arena::Scope scope(ctx.arena);
  const KernelTable& k = kernels();
  const Mat<float> score = ctx.arena.take_mat<float>(T, S);  // [T, S]
  const Mat<float> p = ctx.arena.take_mat<float>(T, S);      // [T, S]
  for_row_blocks(ctx, T * S, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      score.data[i] = k.mix_score(sources[i % S][i / S].data, w.data, eps, n);
    }
  });
  ctx.pool.parallel_for(1, [&](std::size_t, std::size_t) {
    for (std::size_t t = 0; t < T; ++t) softmax(score[t].data, S, p[t].data);
  });

  const std::size_t stretches = ceil_div(n, kStretch), threads = ctx.pool.threads();
  const std::span<const float*> rows = ctx.arena.take<const float*>(threads * S);
  ctx.pool.parallel_for(T * stretches, [&](std::size_t item, std::size_t worker) {
    const std::size_t t = item / stretches, c = item % stretches * kStretch;
    const float** row = rows.data() + worker * S;
    for (std::size_t i = 0; i < S; ++i) row[i] = sources[i][t].data + c;
    k.weighted_sum(row, p[t].data, S, std::min(kStretch, n - c), y[t].data + c);
  });
  for (std::size_t t = 0; t < T; ++t) {
    if (probs.data != nullptr) std::copy_n(p[t].data, S, probs[t].data);
    if (scores.data != nullptr) std::copy_n(score[t].data, S, scores[t].data);
  }
}

}  // namespace triax::ops
