// Routed experts with rounded products: an item is an expert's rows, up to kBlock at a time.
#include <vector>

#include "triax/kernels/kernels.h"
#include "triax/ops/backward/pointwise.h"
#include "triax/ops/backward/rounded.h"
#include "triax/ops/backward/rounded_tiles.h"

namespace triax::ops {
namespace {

constexpr std::size_t kBlock = 256;  // pairs of a product; a multiple of 32

struct Block {
  std::size_t expert, begin, end;
};

// Memory of one worker, cut up once.
class Slice {
 public:
  explicit Slice(std::byte* memory) : memory_(memory) {}  // null: only counts
  float* numbers(std::size_t n) { return static_cast<float*>(take(n * sizeof(float))); }
  Tiles tiles(std::size_t rows, std::size_t k) {
    return {static_cast<bf16*>(take(Tiles::size(rows, k) * sizeof(bf16))), k};
  }
  std::size_t used() const { return used_; }

 private:
  void* take(std::size_t bytes) {
    std::byte* out = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(bytes, kAlignment);
    return out;
  }
  std::byte* memory_;
  std::size_t used_ = 0;
};

struct ForwardScratch {
  Tiles w1, w3, w2;  // right
  Tiles z, h;        // left
  float* act;        // [kBlock, W]
  std::size_t bytes;
  ForwardScratch(std::byte* memory, std::size_t L, std::size_t W) {
    Slice s(memory);
    w1 = s.tiles(W, L), w3 = s.tiles(W, L), w2 = s.tiles(L, W);
    z = s.tiles(kBlock, L), h = s.tiles(kBlock, W);
    act = s.numbers(kBlock * W);
    bytes = s.used();
  }
};

struct BackwardScratch {
  Tiles w1, w3, w2;                     // right, for products over their rows
  Tiles dy, dgate, dup;                 // left, k along columns
  Tiles dy_cols, dgate_cols, dup_cols;  // left, k down the rows
  Tiles z_cols, h_cols;                 // right
  float *back, *g, *u, *h;              // [kBlock, W]
  std::size_t bytes;
  BackwardScratch(std::byte* memory, std::size_t L, std::size_t W) {
    Slice s(memory);
    w1 = s.tiles(L, W), w3 = s.tiles(L, W), w2 = s.tiles(W, L);
    dy = s.tiles(kBlock, L), dgate = s.tiles(kBlock, W), dup = s.tiles(kBlock, W);
    dy_cols = s.tiles(L, kBlock), dgate_cols = s.tiles(W, kBlock), dup_cols = s.tiles(W, kBlock);
    z_cols = s.tiles(L, kBlock), h_cols = s.tiles(W, kBlock);
    back = s.numbers(kBlock * W), g = s.numbers(kBlock * W);
    u = s.numbers(kBlock * W), h = s.numbers(kBlock * W);
    bytes = s.used();
  }
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

// The rows of x that the pairs [begin, end) belong to.
RowPointers gathered(const ExpertPairs& pairs, Mat<const float> x, std::size_t begin,
                     std::size_t end) {
  return {begin, end, [&](std::size_t s) { return x.data + pairs.token(s) * x.stride; }};
}
void gather_left(const RoundedKernels& k, const ExpertPairs& pairs, Mat<const float> x,
                 const Block& b, Tiles to) {
  for (std::size_t s = b.begin; s < b.end; s += kRoundedRows) {
    const RowPointers rows = gathered(pairs, x, s, std::min(s + kRoundedRows, b.end));
    k.left_of_rows(rows.at, rows.count, x.shape[1], to.row(s - b.begin));
  }
}

// y[t] = sum over t's choices in order of factor(t, i) * by_slot[slot]
template <class Factor>
void combine(Context& ctx, const ExpertPairs& pairs, Mat<const float> by_slot, Mat<float> y,
             Factor&& factor) {
  const std::size_t n = y.shape[1], k = pairs.top_k;
  const KernelTable& table = kernels();
  for_row_blocks(ctx, y.shape[0], n * k, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      constexpr std::size_t kAtOnce = 16;
      const float* rows[kAtOnce];
      float factors[kAtOnce];
      for (std::size_t first = 0; first < k; first += kAtOnce) {
        const std::size_t count = std::min(kAtOnce, k - first);
        for (std::size_t i = 0; i < count; ++i) {
          rows[i] = by_slot[pairs.slot_of[t * k + first + i]].data;
          factors[i] = factor(t, first + i);
        }
        if (first == 0) {
          table.weighted_sum(rows, factors, count, n, y[t].data);
        } else {
          for (std::size_t i = 0; i < count; ++i) table.axpy(factors[i], rows[i], n, y[t].data);
        }
      }
    }
  });
}

}  // namespace

void rounded_experts_forward(Context& ctx, Mat<const float> z, const ExpertPairs& pairs,
                             Mat<const float> weights,
                             std::span<const ExpertMatrices<const float>> experts,
                             const Activation& activation, Mat<float> gate, Mat<float> up,
                             Mat<float> aggregate) {
  const RoundedKernels& k = *training_kernels().rounded;
  const std::size_t L = z.shape[1], W = gate.shape[1];
  check_experts(experts, pairs, L, W);
  TRIAX_CHECK(gate.shape[0] == pairs.count() && up.shape == gate.shape);
  TRIAX_CHECK(aggregate.shape == z.shape && weights.shape[1] == pairs.top_k);
  ctx.count(0, 6 * pairs.count() * L * W);
  const Arena::Scope scope(ctx.arena);
  const Mat<float> y = ctx.arena.take_mat<float>(pairs.count(), L);
  const std::size_t slice = ForwardScratch(nullptr, L, W).bytes;
  const std::span<std::byte> memory = ctx.arena.take<std::byte>(ctx.pool.threads() * slice);
  std::vector<Block> blocks;
  for (std::size_t e = 0; e < experts.size(); ++e) {
    for (std::size_t b = pairs.first[e]; b < pairs.first[e + 1]; b += kBlock) {
      blocks.push_back({e, b, std::min(b + kBlock, pairs.first[e + 1])});
    }
  }
  ctx.pool.parallel_for(blocks.size(), [&](std::size_t item, std::size_t worker) {
    const Block& b = blocks[item];
    const ExpertMatrices<const float>& e = experts[b.expert];
    const ForwardScratch m(memory.data() + worker * slice, L, W);
    right_of_rows(k, e.w1, m.w1);
    right_of_rows(k, e.w3, m.w3);
    right_of_rows(k, e.w2, m.w2);
    gather_left(k, pairs, z, b, m.z);
    const Mat<float> g = gate.slice(b.begin, b.end), u = up.slice(b.begin, b.end);
    multiply(k, m.z, m.w1, g, false);
    multiply(k, m.z, m.w3, u, false);
    const Mat<float> act(m.act, {b.end - b.begin, W});
    for (std::size_t i = 0; i < act.shape[0]; ++i) {
      rounded_activate_row(activation, g[i].data, u[i].data, W, act[i].data);
    }
    left_of_rows(k, act, m.h);
    multiply(k, m.h, m.w2, y.slice(b.begin, b.end), false);
  });
  combine(ctx, pairs, y, aggregate, [&](std::size_t t, std::size_t i) { return weights[t][i]; });
}

void rounded_experts_backward(Context& ctx, Mat<const float> z, const ExpertPairs& pairs,
                              Mat<const float> weights,
                              std::span<const ExpertMatrices<const float>> experts,
                              const Activation& activation, Mat<const float> gate,
                              Mat<const float> up, Mat<const float> dy, Mat<float> dz,
                              Mat<float> dweights,
                              std::span<const ExpertMatrices<float>> d_experts) {
  const RoundedKernels& k = *training_kernels().rounded;
  const std::size_t L = z.shape[1], W = gate.shape[1], top_k = pairs.top_k;
  check_experts(experts, pairs, L, W);
  check_experts(d_experts, pairs, L, W);
  TRIAX_CHECK(gate.shape[0] == pairs.count() && up.shape == gate.shape);
  TRIAX_CHECK(dy.shape == z.shape && dz.shape == z.shape && dweights.shape == weights.shape);
  ctx.count(0, 12 * pairs.count() * L * W);
  const Arena::Scope scope(ctx.arena);
  const Mat<float> dz_of = ctx.arena.take_mat<float>(pairs.count(), L);
  const std::size_t slice = BackwardScratch(nullptr, L, W).bytes;
  const std::span<std::byte> memory = ctx.arena.take<std::byte>(ctx.pool.threads() * slice);

  const auto block = [&](const Block& b, const BackwardScratch& m) {
    const std::size_t n = b.end - b.begin, depth = Tiles::depth_of(n);
    gather_left(k, pairs, dy, b, m.dy);
    const Mat<float> back(m.back, {n, W}), g(m.g, {n, W}), u(m.u, {n, W}), h(m.h, {n, W});
    multiply(k, m.dy, m.w2, back, false);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t s = b.begin + i, choice = pairs.choice[s];
      const float weight = weights[choice / top_k][choice % top_k];
      dweights[choice / top_k][choice % top_k] =
          activate_backward_weighted<float>(activation, gate[s].data, up[s].data, back[i].data,
                                            weight, W, g[i].data, u[i].data, h[i].data);
    }
    for (std::size_t i = 0; i < n; i += kRoundedDepth) {
      const std::size_t end = std::min(i + kRoundedDepth, n);
      const RowPointers rows = gathered(pairs, dy, b.begin + i, b.begin + end);
      k.left_of_cols(rows.at, rows.count, L, m.dy_cols.column(i), m.dy_cols.stride());
      const RowPointers in = gathered(pairs, z, b.begin + i, b.begin + end);
      k.right_of_cols(in.at, in.count, L, m.z_cols.column(i), m.z_cols.stride());
    }
    left_of_cols(k, g, m.dgate_cols);
    left_of_cols(k, u, m.dup_cols);
    right_of_cols(k, h, m.h_cols);
    left_of_rows(k, g, m.dgate);
    left_of_rows(k, u, m.dup);
    const Mat<float> out = dz_of.slice(b.begin, b.end);
    multiply(k, m.dgate, m.w1, out, false);
    multiply(k, m.dup, m.w3, out, true);
    const auto weight_gradient = [&](Tiles left, Tiles right, Mat<float> dw) {
      k.product(left.data, left.stride(), right.data, right.stride(), dw.shape[0], dw.shape[1],
                depth, dw.data, dw.stride, true);
    };
    const ExpertMatrices<float>& d = d_experts[b.expert];
    weight_gradient(m.dy_cols, m.h_cols, d.w2);
    weight_gradient(m.dgate_cols, m.z_cols, d.w1);
    weight_gradient(m.dup_cols, m.z_cols, d.w3);
  };
  ctx.pool.parallel_for(experts.size(), [&](std::size_t e, std::size_t worker) {
    if (pairs.first[e] == pairs.first[e + 1]) return;
    const BackwardScratch m(memory.data() + worker * slice, L, W);
    right_of_cols(k, experts[e].w1, m.w1);
    right_of_cols(k, experts[e].w3, m.w3);
    right_of_cols(k, experts[e].w2, m.w2);
    for (std::size_t b = pairs.first[e]; b < pairs.first[e + 1]; b += kBlock) {
      block({e, b, std::min(b + kBlock, pairs.first[e + 1])}, m);
    }
  });
  combine(ctx, pairs, dz_of, dz, [](std::size_t, std::size_t) { return 1.0f; });
}

}  // namespace triax::ops
