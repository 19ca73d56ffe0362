// One row of the KDA recurrence, forward again and backwards. Sums over K ascending, over V in
// vectors.
#pragma once

#include "triax/kernels/isa/reduce.inl"

namespace triax {
namespace {

constexpr std::size_t kChunk = 4;  // vectors of value channels at a time

// NV vectors of value channels from a column on; `rest` > 0: the only vector has that many.
template <int NV>
TRIAX_INLINE void recompute_columns(const float* before, const float* alpha, const float* k,
                                    const float* v, float beta, std::size_t K, std::size_t ld,
                                    std::size_t rest, float* error, float* after) {
  const auto get = [=](const float* p)
                       TRIAX_LAMBDA { return rest != 0 ? load_n(p, rest) : load(p); };
  const auto put = [=](float* p, F x) TRIAX_LAMBDA {
    if (rest != 0) {
      store_n(p, x, rest);
    } else {
      store(p, x);
    }
  };
  F u[NV];
#pragma GCC unroll 8
  for (int j = 0; j < NV; ++j) u[j] = get(v + j * kWidth);
  for (std::size_t d = 0; d < K; ++d) {
    const F weight = set1(alpha[d] * k[d]);
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) u[j] = fnma(weight, get(before + d * ld + j * kWidth), u[j]);
  }
#pragma GCC unroll 8
  for (int j = 0; j < NV; ++j) {
    put(error + j * kWidth, u[j]);
    u[j] = mul(set1(beta), u[j]);
  }
  for (std::size_t d = 0; d < K; ++d) {
    const F a = set1(alpha[d]), key = set1(k[d]);
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) {
      const std::size_t at = d * ld + j * kWidth;
      put(after + at, fma(key, u[j], mul(a, get(before + at))));
    }
  }
}

void kda_recompute(const float* before, const float* alpha, const float* k, const float* v,
                   float beta, std::size_t K, std::size_t V, float* error, float* after) {
  std::size_t c = 0;
  for (; c + kChunk * kWidth <= V; c += kChunk * kWidth) {
    recompute_columns<kChunk>(before + c, alpha, k, v + c, beta, K, V, 0, error + c, after + c);
  }
  for (; c + kWidth <= V; c += kWidth) {
    recompute_columns<1>(before + c, alpha, k, v + c, beta, K, V, 0, error + c, after + c);
  }
  if (c < V) {
    recompute_columns<1>(before + c, alpha, k, v + c, beta, K, V, V - c, error + c, after + c);
  }
}

// dS += q d_o^T and read = dS^T k.
template <int NV>
TRIAX_INLINE void enter_columns(const float* q, const float* k, const float* d_o, std::size_t K,
                                std::size_t ld, std::size_t rest, float* dS, float* read) {
  const auto get = [=](const float* p)
                       TRIAX_LAMBDA { return rest != 0 ? load_n(p, rest) : load(p); };
  const auto put = [=](float* p, F x) TRIAX_LAMBDA {
    if (rest != 0) {
      store_n(p, x, rest);
    } else {
      store(p, x);
    }
  };
  F given[NV], sum_of[NV];
#pragma GCC unroll 8
  for (int j = 0; j < NV; ++j) {
    given[j] = get(d_o + j * kWidth);
    sum_of[j] = zero();
  }
  for (std::size_t d = 0; d < K; ++d) {
    const F query = set1(q[d]), key = set1(k[d]);
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) {
      float* at = dS + d * ld + j * kWidth;
      const F s = fma(query, given[j], get(at));
      put(at, s);
      sum_of[j] = fma(key, s, sum_of[j]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < NV; ++j) put(read + j * kWidth, sum_of[j]);
}

// What one key channel gives: after . d_o, dS . bu, before . dv, and dS leaving the row,
// (dS - key dv) . before.
struct ChannelSums {
  F q, a, b, g;
};
TRIAX_INLINE ChannelSums leave_channel(const float* before, const float* after, const float* d_o,
                                       const float* bu, const float* dv, float alpha, float key,
                                       std::size_t V, float* dS) {
  ChannelSums s{zero(), zero(), zero(), zero()};
  const F decay = set1(alpha), minus = set1(-key);
  std::size_t j = 0;
  for (; j + kWidth <= V; j += kWidth) {
    const F state = load(before + j), d = load(dS + j), value = load(dv + j);
    s.q = fma(load(after + j), load(d_o + j), s.q);
    s.a = fma(d, load(bu + j), s.a);
    s.b = fma(state, value, s.b);
    const F left = fma(minus, value, d);
    s.g = fma(left, state, s.g);
    store(dS + j, mul(decay, left));
  }
  if (j < V) {
    const std::size_t n = V - j;
    const F state = load_n(before + j, n), d = load_n(dS + j, n), value = load_n(dv + j, n);
    s.q = fma(load_n(after + j, n), load_n(d_o + j, n), s.q);
    s.a = fma(d, load_n(bu + j, n), s.a);
    s.b = fma(state, value, s.b);
    const F left = fma(minus, value, d);
    s.g = fma(left, state, s.g);
    store_n(dS + j, mul(decay, left), n);
  }
  return s;
}

float kda_back(const float* before, const float* after, const float* alpha, const float* q,
               const float* k, const float* error, const float* d_o, float beta, std::size_t K,
               std::size_t V, float* dS, float* dq, float* dk, float* dv, float* dg,
               float* scratch) {
  std::size_t c = 0;
  for (; c + kChunk * kWidth <= V; c += kChunk * kWidth) {
    enter_columns<kChunk>(q, k, d_o + c, K, V, 0, dS + c, dv + c);
  }
  for (; c + kWidth <= V; c += kWidth) {
    enter_columns<1>(q, k, d_o + c, K, V, 0, dS + c, dv + c);
  }
  if (c < V) enter_columns<1>(q, k, d_o + c, K, V, V - c, dS + c, dv + c);
  const float dbeta = dot_row(dv, error, V);
  scale_row(beta, dv, V, dv);
  scale_row(beta, error, V, scratch);
  const auto channel = [&](std::size_t d) TRIAX_LAMBDA {
    return leave_channel(before + d * V, after + d * V, d_o, scratch, dv, alpha[d], k[d], V,
                         dS + d * V);
  };
  std::size_t d = 0;
  for (; d + 4 <= K; d += 4) {
    const ChannelSums s0 = channel(d), s1 = channel(d + 1), s2 = channel(d + 2),
                      s3 = channel(d + 3);
    float a[4], b[4], g[4];
    store4(dq + d, sum4(s0.q, s1.q, s2.q, s3.q));
    store4(a, sum4(s0.a, s1.a, s2.a, s3.a));
    store4(b, sum4(s0.b, s1.b, s2.b, s3.b));
    store4(g, sum4(s0.g, s1.g, s2.g, s3.g));
    for (std::size_t i = 0; i < 4; ++i) {
      dk[d + i] = a[i] - alpha[d + i] * b[i];
      dg[d + i] = alpha[d + i] * g[i];
    }
  }
  for (; d < K; ++d) {
    const ChannelSums s = channel(d);
    dq[d] = sum(s.q);
    dk[d] = sum(s.a) - alpha[d] * sum(s.b);
    dg[d] = alpha[d] * sum(s.g);
  }
  return dbeta;
}

}  // namespace
}  // namespace triax
