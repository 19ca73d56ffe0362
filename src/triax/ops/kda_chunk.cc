// See kda_chunk.h. Exponents are summed outwards from the row they refer to, never taken as the
// difference of two long sums: after a strong decay G is in the hundreds, where float32 has an
// absolute error of 1e-5, while the difference that matters may be near 0.
#include "triax/ops/kda_chunk.h"

#include <algorithm>
#include <cstring>

#include "triax/kernels/kernels.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

constexpr std::size_t kTile = kKdaTile;
constexpr std::size_t kLd = kKdaChunk;  // row length of Akk and Aqk

// out[t] = sum of g over (reference, t] for t >= reference, minus the sum over (t, reference]
// below: G_t - G_reference. out [rows, K]; rows [0, end) are written.
void sums_about(const KdaRows& in, std::size_t K, std::size_t reference, std::size_t end,
                float* out) {
  const KernelTable& k = kernels();
  std::fill_n(out + reference * K, K, 0.0f);
  for (std::size_t t = reference + 1; t < end; ++t) {
    k.add(out + (t - 1) * K, in.g + t * in.ldg, K, out + t * K);
  }
  for (std::size_t t = reference; t-- > 0;) {
    float* at = out + t * K;
    std::memcpy(at, at + K, K * sizeof(float));
    k.axpy(-1.0f, in.g + (t + 1) * in.ldg, K, at);
  }
}

// The parts of the block row [begin, end) of Akk and Aqk that are scaled products. The factors are
// taken about `reference`: e^(G_t - G_ref) for its rows, e^(G_ref - G_s) for the columns [0,
// columns).
void scaled_block_row(const KdaRows& in, std::size_t K, float q_scale, std::size_t begin,
                      std::size_t end, std::size_t reference, std::size_t columns, KdaScratch& s) {
  const KernelTable& k = kernels();
  sums_about(in, K, reference, std::max(end, columns), s.sums);
  float *left_k = s.left, *left_q = s.left + kTile * K;
  for (std::size_t t = begin; t < end; ++t) {
    float* factor = s.row;
    k.exp(s.sums + t * K, K, factor);
    k.mul(factor, in.k + t * in.ldk, K, left_k + (t - begin) * K);
    k.mul(factor, in.q + t * in.ldq, K, left_q + (t - begin) * K);
    k.scale(q_scale, left_q + (t - begin) * K, K, left_q + (t - begin) * K);
  }
  for (std::size_t t = 0; t < columns; ++t) {
    float* factor = s.right + t * K;
    k.scale(-1.0f, s.sums + t * K, K, factor);
    k.exp(factor, K, factor);
    k.mul(factor, in.k + t * in.ldk, K, factor);
  }
  k.gemm_nt(left_k, K, s.right, K, s.Akk + begin * kLd, kLd, end - begin, columns, K, false);
  k.gemm_nt(left_q, K, s.right, K, s.Aqk + begin * kLd, kLd, end - begin, columns, K, false);
}

// The diagonal tile by exponent differences of each pair: slow, and right for any decay.
void pairwise_tile(const KdaRows& in, std::size_t K, float q_scale, std::size_t begin,
                   std::size_t end, KdaScratch& s) {
  const KernelTable& k = kernels();
  float *exponent = s.left, *key = s.left + K;
  for (std::size_t column = begin; column < end; ++column) {
    std::fill_n(exponent, K, 0.0f);  // G_t - G_column, for t from the column on
    for (std::size_t t = column; t < end; ++t) {
      if (t != column) k.add(exponent, in.g + t * in.ldg, K, exponent);
      k.exp(exponent, K, key);
      k.mul(key, in.k + column * in.ldk, K, key);
      s.Akk[t * kLd + column] = k.dot(key, in.k + t * in.ldk, K);
      s.Aqk[t * kLd + column] = q_scale * k.dot(key, in.q + t * in.ldq, K);
    }
  }
}

// Zeros above the diagonal of the block row (Akk: on it, too). Assigned, not multiplied: what the
// scaled products leave there is garbage of any size.
void mask(std::size_t begin, std::size_t end, KdaScratch& s) {
  for (std::size_t t = begin; t < end; ++t) {
    std::fill(s.Akk + t * kLd + t, s.Akk + t * kLd + end, 0.0f);
    std::fill(s.Aqk + t * kLd + t + 1, s.Aqk + t * kLd + end, 0.0f);
  }
}

void outer_terms(const KdaRows& in, std::size_t K, float q_scale, KdaScratch& s) {
  const KernelTable& k = kernels();
  for (std::size_t t = 0; t < in.rows; ++t) {
    float *G = s.G + t * K, *q = s.Q_plus + t * K;
    if (t == 0) {
      std::memcpy(G, in.g, K * sizeof(float));
    } else {
      k.add(G - K, in.g + t * in.ldg, K, G);
    }
    k.exp(G, K, s.row);
    k.mul(s.row, in.k + t * in.ldk, K, s.K_plus + t * K);
    k.mul(s.row, in.q + t * in.ldq, K, q);
    k.scale(q_scale, q, K, q);
  }
  std::memcpy(s.decay, s.row, K * sizeof(float));
  std::fill_n(s.sums, K, 0.0f);  // G_C - G_t
  for (std::size_t t = in.rows; t-- > 0;) {
    k.exp(s.sums, K, s.row);
    k.mul(s.row, in.k + t * in.ldk, K, s.K_end + t * K);
    k.add(s.sums, in.g + t * in.ldg, K, s.sums);
  }
}

}  // namespace

std::size_t KdaScratch::size(std::size_t K, std::size_t V) {
  return kKdaChunk * (6 * K + V + 2 * kKdaChunk) + 2 * kTile * K + round_up(K, 16) +
         round_up(std::max(K, V), 16);
}

KdaScratch::KdaScratch(float* memory, std::size_t K, std::size_t V) {
  const auto take = [&memory](std::size_t n) {
    float* at = memory;
    memory += n;
    return at;
  };
  G = take(kKdaChunk * K);
  K_plus = take(kKdaChunk * K);
  Q_plus = take(kKdaChunk * K);
  K_end = take(kKdaChunk * K);
  Akk = take(kKdaChunk * kKdaChunk);
  Aqk = take(kKdaChunk * kKdaChunk);
  U = take(kKdaChunk * V);
  right = take(kKdaChunk * K);
  sums = take(kKdaChunk * K);
  left = take(2 * kTile * K);
  decay = take(round_up(K, 16));
  row = take(round_up(std::max(K, V), 16));
}

void kda_chunk_terms(const KdaRows& in, std::size_t K, float q_scale, bool bounded_decay,
                     KdaScratch& s) {
  outer_terms(in, K, q_scale, s);
  for (std::size_t begin = 0; begin < in.rows; begin += kTile) {
    const std::size_t end = std::min(begin + kTile, in.rows);
    if (bounded_decay) {
      // About the middle of the tile the factors reach e^(8 * 5); a pair of masked entries e^75.
      scaled_block_row(in, K, q_scale, begin, end, begin + (end - begin) / 2, end, s);
    } else {
      // About the tile's first row no exponent is above zero; the diagonal tile goes pair by pair.
      if (begin != 0) scaled_block_row(in, K, q_scale, begin, end, begin, begin, s);
      pairwise_tile(in, K, q_scale, begin, end, s);
    }
    mask(begin, end, s);
  }
}

void kda_chunk_apply(const KdaRows& in, std::size_t K, std::size_t V, KdaScratch& s, float* S,
                     float* o, std::size_t ldo) {
  const KernelTable& k = kernels();
  const std::size_t C = in.rows;
  // U = diag(beta) (V - K+ S - Akk U): whole tiles above by products, the tile's own rows in order.
  k.gemm_nn(s.K_plus, K, S, V, s.U, V, C, V, K, false);
  for (std::size_t begin = 0; begin < C; begin += kTile) {
    const std::size_t end = std::min(begin + kTile, C);
    if (begin != 0) {
      k.gemm_nn(s.Akk + begin * kLd, kLd, s.U, V, s.U + begin * V, V, end - begin, V, begin, true);
    }
    for (std::size_t t = begin; t < end; ++t) {
      float* u = s.U + t * V;
      for (std::size_t r = begin; r < t; ++r) k.axpy(s.Akk[t * kLd + r], s.U + r * V, V, u);
      k.scale(-1.0f, u, V, u);
      k.add(u, in.v + t * in.ldv, V, u);
      k.scale(in.beta[t * in.ldbeta], u, V, u);
    }
  }
  k.gemm_nn(s.Q_plus, K, S, V, o, ldo, C, V, K, false);
  for (std::size_t begin = 0; begin < C; begin += kTile) {
    const std::size_t end = std::min(begin + kTile, C);
    k.gemm_nn(s.Aqk + begin * kLd, kLd, s.U, V, o + begin * ldo, ldo, end - begin, V, end, true);
  }
  for (std::size_t d = 0; d < K; ++d) k.scale(s.decay[d], S + d * V, V, S + d * V);
  k.gemm_tn(s.K_end, K, s.U, V, S, V, K, V, C, true);
}

}  // namespace triax::ops
