// One step of the KDA recurrence on one head. Spec: S [K, V] float32; sums over K ascending.
#pragma once

#include "triax/kernels/isa/elementwise.inl"

namespace triax {
namespace {

// NV vectors of value channels at a time; `rest` > 0: the only vector has that many channels. Twice
// through their part of S, row by row: a head of 128 channels in one go, so that the state comes
// from memory in one stream.
template <int NV>
TRIAX_INLINE void kda_columns(float* S, const float* q, const float* k, const float* v,
                              const float* decay, float beta, std::size_t K, std::size_t ld,
                              float* o, std::size_t rest) {
  const auto get = [=](const float* p)
                       TRIAX_LAMBDA { return rest != 0 ? load_n(p, rest) : load(p); };
  const auto put = [=](float* p, F x) TRIAX_LAMBDA {
    if (rest != 0) {
      store_n(p, x, rest);
    } else {
      store(p, x);
    }
  };
  F read[NV];  // S^T k of the decayed state
#pragma GCC unroll 8
  for (int j = 0; j < NV; ++j) read[j] = zero();
  for (std::size_t i = 0; i < K; ++i) {
    const F e = set1(decay[i]), key = set1(k[i]);
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) {
      read[j] = fma(mul(get(S + i * ld + j * kWidth), e), key, read[j]);
    }
  }
  F u[NV], out[NV];
#pragma GCC unroll 8
  for (int j = 0; j < NV; ++j) {
    u[j] = mul(set1(beta), sub(get(v + j * kWidth), read[j]));
    out[j] = zero();
  }
  for (std::size_t i = 0; i < K; ++i) {
    const F e = set1(decay[i]), key = set1(k[i]), query = set1(q[i]);
#pragma GCC unroll 8
    for (int j = 0; j < NV; ++j) {
      float* at = S + i * ld + j * kWidth;
      const F s = fma(key, u[j], mul(get(at), e));
      put(at, s);
      out[j] = fma(s, query, out[j]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < NV; ++j) put(o + j * kWidth, out[j]);
}

void kda_step(float* S, const float* q, const float* k, const float* v, const float* g, float beta,
              std::size_t K, std::size_t V, float* o, float* scratch) {
  float* decay = scratch;  // [K]
  exp_row(g, K, decay);
  std::size_t c = 0;
  for (; c + kStateVectors * kWidth <= V; c += kStateVectors * kWidth) {
    kda_columns<kStateVectors>(S + c, q, k, v + c, decay, beta, K, V, o + c, 0);
  }
  for (; c + kWidth <= V; c += kWidth) {
    kda_columns<1>(S + c, q, k, v + c, decay, beta, K, V, o + c, 0);
  }
  if (c < V) kda_columns<1>(S + c, q, k, v + c, decay, beta, K, V, o + c, V - c);
}

}  // namespace
}  // namespace triax
