// Gradients of weight products, embedding and cross-entropy: tiles over the pool.
#include "triax/ops/backward/linear.h"

#include "triax/ops/backward/loops.h"

namespace triax::ops {
namespace {

constexpr std::size_t kRows = 64;    // rows of a tile of dx
constexpr std::size_t kWidth = 128;  // columns of a tile
constexpr std::size_t kTile = 64;    // rows of a tile of dW
constexpr std::size_t kDepth = 256;  // summed over at once: what a tile reads meanwhile fits L2

}  // namespace

template <class F>
void linear_input_gradient(Context& ctx, Mat<const F> dy, Mat<const F> w, Mat<F> dx,
                           bool accumulate) {
  const std::size_t T = dy.shape[0], N = w.shape[0], K = w.shape[1];
  TRIAX_CHECK(dy.shape[1] == N && dx.shape[0] == T && dx.shape[1] == K);
  const std::size_t across = ceil_div(K, kWidth);
  ctx.count((T * (N + K) + N * K) * sizeof(F), 2 * T * N * K);
  ctx.pool.parallel_for(ceil_div(T, kRows) * across, [&](std::size_t item, std::size_t) {
    const std::size_t t = item / across * kRows, k = item % across * kWidth;
    for (std::size_t n = 0; n < N; n += kDepth) {
      loops::gemm_nn(dy[t].data + n, dy.stride, w[n].data + k, w.stride, dx[t].data + k, dx.stride,
                     std::min(kRows, T - t), std::min(kWidth, K - k), std::min(kDepth, N - n),
                     accumulate || n > 0);
    }
  });
}

template <class F>
void linear_weight_gradient(Context& ctx, Mat<const F> x, Mat<const F> dy, Mat<F> dw) {
  const std::size_t T = x.shape[0], N = dw.shape[0], K = dw.shape[1];
  TRIAX_CHECK(dy.shape[0] == T && dy.shape[1] == N && x.shape[1] == K);
  const std::size_t across = ceil_div(K, kWidth);
  ctx.count((T * (N + K) + N * K) * sizeof(F), 2 * T * N * K);
  ctx.pool.parallel_for(ceil_div(N, kTile) * across, [&](std::size_t item, std::size_t) {
    const std::size_t n = item / across * kTile, k = item % across * kWidth;
    for (std::size_t t = 0; t < T; t += kDepth) {
      loops::gemm_tn(dy[t].data + n, dy.stride, x[t].data + k, x.stride, dw[n].data + k, dw.stride,
                     std::min(kTile, N - n), std::min(kWidth, K - k), std::min(kDepth, T - t),
                     true);
    }
  });
}

template <class F>
void embed_backward(Context& ctx, Vec<const std::int32_t> ids, Mat<const F> dy, Mat<F> dtable) {
  const std::size_t T = ids.size(), N = dtable.shape[1];
  TRIAX_CHECK(dy.shape[0] == T && dy.shape[1] == N);
  for (std::int32_t id : ids) {
    TRIAX_CHECK(id >= 0 && static_cast<std::size_t>(id) < dtable.shape[0], "ids in the table");
  }
  constexpr std::size_t kStripe = 32;  // an item owns its columns: every row is added in order
  ctx.pool.parallel_for(ceil_div(N, kStripe), [&](std::size_t item, std::size_t) {
    const std::size_t c = item * kStripe, n = std::min(kStripe, N - c);
    for (std::size_t t = 0; t < T; ++t) {
      F* out = dtable[static_cast<std::size_t>(ids[t])].data + c;
      for (std::size_t i = 0; i < n; ++i) out[i] += dy[t][c + i];
    }
  });
}

template <class F>
void cross_entropy(Context& ctx, Mat<F> logits, Vec<const std::int32_t> targets, F scale,
                   Vec<F> losses, Vec<const float> weights) {
  const std::size_t V = logits.shape[1];
  TRIAX_CHECK(targets.size() == logits.shape[0] && losses.size() == logits.shape[0]);
  TRIAX_CHECK(weights.data == nullptr || weights.size() == logits.shape[0]);
  for (std::int32_t target : targets) {
    TRIAX_CHECK(target == kNoTarget || (target >= 0 && static_cast<std::size_t>(target) < V));
  }
  for_row_blocks(ctx, logits.shape[0], V, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      F* row = logits[t].data;
      if (targets[t] == kNoTarget) {
        std::fill_n(row, V, F{0});
        losses[t] = 0;
        continue;
      }
      const auto target = static_cast<std::size_t>(targets[t]);
      const F largest = loops::largest(row, V), wanted = row[target];
      const F sum = loops::exp_sum(row, largest, V, row);
      losses[t] = std::log(sum) + largest - wanted;
      const F own = weights.data == nullptr ? scale : scale * static_cast<F>(weights[t]);
      loops::scale<F>(own / sum, row, V, row);
      row[target] -= own;
    }
  });
}

#define TRIAX_INSTANCES(F)                                                                    \
  template void linear_input_gradient<F>(Context&, Mat<const F>, Mat<const F>, Mat<F>, bool); \
  template void linear_weight_gradient<F>(Context&, Mat<const F>, Mat<const F>, Mat<F>);      \
  template void embed_backward<F>(Context&, Vec<const std::int32_t>, Mat<const F>, Mat<F>);   \
  template void cross_entropy<F>(Context&, Mat<F>, Vec<const std::int32_t>, F, Vec<F>,        \
                                 Vec<const float>)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::ops
