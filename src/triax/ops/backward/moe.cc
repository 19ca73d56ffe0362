// Routed experts in training: one item for each expert and block of its rows (forward) or each
// expert (backward: its weights' gradients are summed in order).
#include "triax/ops/backward/moe.h"

#include <algorithm>
#include <vector>

#include "triax/ops/backward/loops.h"
#include "triax/ops/backward/pointwise.h"

namespace triax::ops {
namespace {

constexpr std::size_t kBlock = 64;  // pairs of a product

// pair rows [begin, end) of one expert
struct Block {
  std::size_t expert, begin, end;
};

std::vector<Block> blocks_of(const ExpertPairs& pairs, std::size_t rows) {
  std::vector<Block> out;
  for (std::size_t e = 0; e + 1 < pairs.first.size(); ++e) {
    for (std::size_t b = pairs.first[e]; b < pairs.first[e + 1]; b += rows) {
      out.push_back({e, b, std::min(b + rows, pairs.first[e + 1])});
    }
  }
  return out;
}

// The rows of x that the pairs [begin, end) belong to, one after the other.
template <class F>
void gather(const ExpertPairs& pairs, Mat<const F> x, std::size_t begin, std::size_t end, F* out) {
  for (std::size_t s = begin; s < end; ++s, out += x.shape[1]) {
    std::copy_n(x[pairs.token(s)].data, x.shape[1], out);
  }
}

// y[t] = sum over t's choices in order of factor(t, i) * by_slot[slot]
template <class F, class Factor>
void combine(Context& ctx, const ExpertPairs& pairs, Mat<const F> by_slot, Mat<F> y,
             Factor&& factor) {
  const std::size_t n = y.shape[1], k = pairs.top_k;
  for_row_blocks(ctx, y.shape[0], n * k, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      std::fill_n(y[t].data, n, F{0});
      for (std::size_t i = 0; i < k; ++i) {
        loops::axpy(factor(t, i), by_slot[pairs.slot_of[t * k + i]].data, n, y[t].data);
      }
    }
  });
}

// One worker's rows while it goes through an expert.
template <class F>
struct Scratch {
  F *z, *dy, *dz;             // [kBlock, L]
  F *h, *back, *dgate, *dup;  // [kBlock, W]
  static std::size_t size(std::size_t L, std::size_t W) { return kBlock * (3 * L + 4 * W); }
  Scratch(F* memory, std::size_t L, std::size_t W)
      : z(memory),
        dy(z + kBlock * L),
        dz(dy + kBlock * L),
        h(dz + kBlock * L),
        back(h + kBlock * W),
        dgate(back + kBlock * W),
        dup(dgate + kBlock * W) {}
};

template <class F>
void check_experts(std::span<const ExpertMatrices<F>> experts, const ExpertPairs& pairs,
                   std::size_t L, std::size_t W) {
  TRIAX_CHECK(experts.size() + 1 == pairs.first.size(), "one set of weights an expert");
  for (const ExpertMatrices<F>& e : experts) {
    TRIAX_CHECK(e.w1.shape[0] == W && e.w1.shape[1] == L && e.w3.shape == e.w1.shape);
    TRIAX_CHECK(e.w2.shape[0] == L && e.w2.shape[1] == W);
  }
}

}  // namespace

template <class F>
void route_backward(Context& ctx, Mat<const F> logits, Mat<const std::int32_t> ids,
                    const RouterRule& rule, Mat<const F> dweights, Mat<F> dlogits) {
  const std::size_t T = logits.shape[0], E = logits.shape[1], k = rule.top_k;
  TRIAX_CHECK(dlogits.shape == logits.shape && ids.shape[0] == T && ids.shape[1] == k);
  TRIAX_CHECK(dweights.shape == ids.shape);
  const F factor = rule.factor;
  for_row_blocks(ctx, T, E, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      const auto score = [&](std::size_t i) {
        return 1 / (1 + std::exp(-logits[t][static_cast<std::size_t>(ids[t][i])]));
      };
      F sum = static_cast<F>(1e-20), mean = 0;
      for (std::size_t i = 0; i < k; ++i) sum += score(i);
      for (std::size_t i = 0; i < k; ++i) mean += score(i) / sum * dweights[t][i];
      std::fill_n(dlogits[t].data, E, F{0});
      for (std::size_t i = 0; i < k; ++i) {
        const F s = score(i);
        const F ds = factor * (rule.renormalize ? (dweights[t][i] - mean) / sum : dweights[t][i]);
        dlogits[t][static_cast<std::size_t>(ids[t][i])] = ds * s * (1 - s);
      }
    }
  });
}

ExpertPairs group_pairs(Context& ctx, Mat<const std::int32_t> ids, std::size_t experts) {
  const std::size_t T = ids.shape[0], k = ids.shape[1];
  ExpertPairs out{ctx.arena.take<std::size_t>(experts + 1), ctx.arena.take<std::uint32_t>(T * k),
                  ctx.arena.take<std::uint32_t>(T * k), k};
  std::fill(out.first.begin(), out.first.end(), 0);
  const auto expert = [&](std::size_t c) {
    const std::int32_t id = ids[c / k][c % k];
    TRIAX_CHECK(id >= 0 && static_cast<std::size_t>(id) < experts);
    return static_cast<std::size_t>(id);
  };
  for (std::size_t c = 0; c < T * k; ++c) ++out.first[expert(c) + 1];
  for (std::size_t e = 0; e < experts; ++e) out.first[e + 1] += out.first[e];
  std::vector<std::size_t> next(out.first.begin(), out.first.end());
  for (std::size_t c = 0; c < T * k; ++c) {
    const std::size_t slot = next[expert(c)]++;
    out.choice[slot] = static_cast<std::uint32_t>(c);
    out.slot_of[c] = static_cast<std::uint32_t>(slot);
  }
  return out;
}

template <class F>
void experts_forward_keep(Context& ctx, Mat<const F> z, const ExpertPairs& pairs,
                          Mat<const F> weights, std::span<const ExpertMatrices<const F>> experts,
                          const Activation& activation, Mat<F> gate, Mat<F> up, Mat<F> aggregate) {
  const std::size_t L = z.shape[1], W = gate.shape[1];
  check_experts(experts, pairs, L, W);
  TRIAX_CHECK(gate.shape[0] == pairs.count() && up.shape == gate.shape);
  TRIAX_CHECK(aggregate.shape == z.shape && weights.shape[1] == pairs.top_k);
  const Arena::Scope scope(ctx.arena);
  const Mat<F> y = ctx.arena.take_mat<F>(pairs.count(), L);
  const std::size_t slice = round_up(kBlock * (L + W), 16);
  const std::span<F> scratch = ctx.arena.take<F>(ctx.pool.threads() * slice);
  const std::vector<Block> blocks = blocks_of(pairs, kBlock);
  ctx.count(0, 6 * pairs.count() * L * W);
  ctx.pool.parallel_for(blocks.size(), [&](std::size_t item, std::size_t worker) {
    const Block& b = blocks[item];
    const ExpertMatrices<const F>& e = experts[b.expert];
    F *rows = scratch.data() + worker * slice, *h = rows + kBlock * L;
    const std::size_t n = b.end - b.begin;
    gather(pairs, z, b.begin, b.end, rows);
    F *g = gate[b.begin].data, *u = up[b.begin].data;
    loops::gemm_nt(rows, L, e.w1.data, e.w1.stride, g, gate.stride, n, W, L, false);
    loops::gemm_nt(rows, L, e.w3.data, e.w3.stride, u, up.stride, n, W, L, false);
    for (std::size_t i = 0; i < n; ++i) {
      activate_forward_row(activation, g + i * gate.stride, u + i * up.stride, W, h + i * W);
    }
    loops::gemm_nt(h, W, e.w2.data, e.w2.stride, y[b.begin].data, L, n, L, W, false);
  });
  combine<F>(ctx, pairs, y, aggregate, [&](std::size_t t, std::size_t i) { return weights[t][i]; });
}

template <class F>
void experts_backward(Context& ctx, Mat<const F> z, const ExpertPairs& pairs, Mat<const F> weights,
                      std::span<const ExpertMatrices<const F>> experts,
                      const Activation& activation, Mat<const F> gate, Mat<const F> up,
                      Mat<const F> dy, Mat<F> dz, Mat<F> dweights,
                      std::span<const ExpertMatrices<F>> d_experts) {
  const std::size_t L = z.shape[1], W = gate.shape[1], k = pairs.top_k;
  check_experts(experts, pairs, L, W);
  check_experts(d_experts, pairs, L, W);
  TRIAX_CHECK(gate.shape[0] == pairs.count() && up.shape == gate.shape);
  TRIAX_CHECK(dy.shape == z.shape && dz.shape == z.shape && dweights.shape == weights.shape);
  const Arena::Scope scope(ctx.arena);
  const Mat<F> dz_of = ctx.arena.take_mat<F>(pairs.count(), L);
  const std::size_t slice = round_up(Scratch<F>::size(L, W), 16);
  const std::span<F> scratch = ctx.arena.take<F>(ctx.pool.threads() * slice);
  ctx.count(0, 12 * pairs.count() * L * W);

  const auto block = [&](const Block& b, const Scratch<F>& m) {
    const ExpertMatrices<const F>& e = experts[b.expert];
    const ExpertMatrices<F>& d = d_experts[b.expert];
    const std::size_t n = b.end - b.begin;
    gather(pairs, z, b.begin, b.end, m.z);
    gather(pairs, dy, b.begin, b.end, m.dy);
    loops::gemm_nn(m.dy, L, e.w2.data, e.w2.stride, m.back, W, n, W, L, false);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t choice = pairs.choice[b.begin + i];
      const F *g = gate[b.begin + i].data, *u = up[b.begin + i].data;
      const F weight = weights[choice / k][choice % k];
      F *h = m.h + i * W, *back = m.back + i * W;
      dweights[choice / k][choice % k] = activate_backward_weighted<F>(
          activation, g, u, back, weight, W, m.dgate + i * W, m.dup + i * W, h);
    }
    loops::gemm_tn(m.dy, L, m.h, W, d.w2.data, d.w2.stride, L, W, n, true);
    loops::gemm_tn(m.dgate, W, m.z, L, d.w1.data, d.w1.stride, W, L, n, true);
    loops::gemm_tn(m.dup, W, m.z, L, d.w3.data, d.w3.stride, W, L, n, true);
    F* out = dz_of[b.begin].data;
    loops::gemm_nn(m.dgate, W, e.w1.data, e.w1.stride, out, L, n, L, W, false);
    loops::gemm_nn(m.dup, W, e.w3.data, e.w3.stride, out, L, n, L, W, true);
  };
  ctx.pool.parallel_for(experts.size(), [&](std::size_t e, std::size_t worker) {
    const Scratch<F> own(scratch.data() + worker * slice, L, W);
    for (std::size_t b = pairs.first[e]; b < pairs.first[e + 1]; b += kBlock) {
      block({e, b, std::min(b + kBlock, pairs.first[e + 1])}, own);
    }
  });
  combine<F>(ctx, pairs, dz_of, dz, [](std::size_t, std::size_t) { return F{1}; });
}

#define TRIAX_INSTANCES(F)                                                                        \
  template void route_backward<F>(Context&, Mat<const F>, Mat<const std::int32_t>,                \
                                  const RouterRule&, Mat<const F>, Mat<F>);                       \
  template void experts_forward_keep<F>(Context&, Mat<const F>, const ExpertPairs&, Mat<const F>, \
                                        std::span<const ExpertMatrices<const F>>,                 \
                                        const Activation&, Mat<F>, Mat<F>, Mat<F>);               \
  template void experts_backward<F>(Context&, Mat<const F>, const ExpertPairs&, Mat<const F>,     \
                                    std::span<const ExpertMatrices<const F>>, const Activation&,  \
                                    Mat<const F>, Mat<const F>, Mat<const F>, Mat<F>, Mat<F>,     \
                                    std::span<const ExpertMatrices<F>>)
TRIAX_INSTANCES(float);
TRIAX_INSTANCES(double);
#undef TRIAX_INSTANCES

}  // namespace triax::ops
