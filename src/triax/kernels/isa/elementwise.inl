// Rows of n elements, one output for one place: each is the same arithmetic wherever it lies.
#pragma once

#include "triax/kernels/isa/math.inl"

namespace triax {
namespace {

// y[i] = f(vector of x at i) over n elements of one, two or three rows.
template <class In, class Out, class Fn>
TRIAX_INLINE void map(const In* x, std::size_t n, Out* y, Fn f) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(y + i, f(load(x + i)));
  if (i < n) store_n(y + i, f(load_n(x + i, n - i)), n - i);
}
template <class Fn>
TRIAX_INLINE void map(const float* a, const float* b, std::size_t n, float* y, Fn f) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(y + i, f(load(a + i), load(b + i)));
  if (i < n) store_n(y + i, f(load_n(a + i, n - i), load_n(b + i, n - i)), n - i);
}
template <class Fn>
TRIAX_INLINE void map(const float* a, const float* b, const float* c, std::size_t n, float* y,
                      Fn f) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(y + i, f(load(a + i), load(b + i), load(c + i)));
  if (i < n) {
    const std::size_t r = n - i;
    store_n(y + i, f(load_n(a + i, r), load_n(b + i, r), load_n(c + i, r)), r);
  }
}

void to_bf16_row(const float* x, std::size_t n, bf16* y) {
  map(x, n, y, [](F v) TRIAX_LAMBDA { return v; });
}
void from_bf16_row(const bf16* x, std::size_t n, float* y) {
  map(x, n, y, [](F v) TRIAX_LAMBDA { return v; });
}
void add_rows(const float* a, const float* b, std::size_t n, float* y) {
  map(a, b, n, y, [](F u, F v) TRIAX_LAMBDA { return add(u, v); });
}
void mul_rows(const float* a, const float* b, std::size_t n, float* y) {
  map(a, b, n, y, [](F u, F v) TRIAX_LAMBDA { return mul(u, v); });
}
void axpy_row(float a, const float* x, std::size_t n, float* y) {
  const F factor = set1(a);
  map(x, y, n, y, [=](F u, F v) TRIAX_LAMBDA { return fma(factor, u, v); });
}
void scale_row(float a, const float* x, std::size_t n, float* y) {
  const F factor = set1(a);
  map(x, n, y, [=](F v) TRIAX_LAMBDA { return mul(factor, v); });
}
void exp_row(const float* x, std::size_t n, float* y) {
  map(x, n, y, [](F v) TRIAX_LAMBDA { return v_exp(v); });
}
void sigmoid_row(const float* x, std::size_t n, float* y) {
  map(x, n, y, [](F v) TRIAX_LAMBDA { return v_sigmoid(v); });
}
void mul_sigmoid_row(const float* x, const float* gate, std::size_t n, float* y) {
  map(x, gate, n, y, [](F u, F g) TRIAX_LAMBDA { return mul(u, v_sigmoid(g)); });
}
void swiglu_row(const float* gate, const float* up, std::size_t n, float* y) {
  map(gate, up, n, y, [](F g, F u) TRIAX_LAMBDA { return mul(mul(g, v_sigmoid(g)), u); });
}

void situ_row(const float* gate, const float* up, float beta, float linear_beta, std::size_t n,
              float* y) {
  const F b = set1(beta), inverse_b = set1(1.0f / beta);
  const auto gated = [=](F g) TRIAX_LAMBDA {
    return mul(mul(b, v_tanh(mul(g, inverse_b))), v_sigmoid(g));
  };
  if (linear_beta > 0.0f) {
    const F c = set1(linear_beta), inverse_c = set1(1.0f / linear_beta);
    map(gate, up, n, y,
        [=](F g, F u) TRIAX_LAMBDA { return mul(gated(g), mul(c, v_tanh(mul(u, inverse_c)))); });
  } else {
    // Up to beta times a huge up value: kept finite.
    const F most = set1(__FLT_MAX__), least = set1(-__FLT_MAX__);
    map(gate, up, n, y,
        [=](F g, F u) TRIAX_LAMBDA { return min(most, max(least, mul(gated(g), u))); });
  }
}

void kda_gate_row(const float* raw, const float* dt_bias, float a, float lower_bound, std::size_t n,
                  float* g) {
  const F factor = set1(a), bound = set1(lower_bound);
  map(raw, dt_bias, n, g,
      [=](F r, F d) TRIAX_LAMBDA { return mul(bound, v_sigmoid(mul(factor, add(r, d)))); });
}
void kda_gate_softplus_row(const float* raw, const float* dt_bias, float a, std::size_t n,
                           float* g) {
  const F factor = set1(-a);
  map(raw, dt_bias, n, g,
      [=](F r, F d) TRIAX_LAMBDA { return mul(factor, v_softplus(add(r, d))); });
}

void conv_silu_row(const float* const* rows, const float* w, std::size_t ldw, std::size_t taps,
                   std::size_t n, float* y) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    F acc = zero();
    for (std::size_t j = 0; j < taps; ++j) acc = fma(load(w + j * ldw + i), load(rows[j] + i), acc);
    store(y + i, mul(acc, v_sigmoid(acc)));
  }
  if (i < n) {
    const std::size_t r = n - i;
    F acc = zero();
    for (std::size_t j = 0; j < taps; ++j) {
      acc = fma(load_n(w + j * ldw + i, r), load_n(rows[j] + i, r), acc);
    }
    store_n(y + i, mul(acc, v_sigmoid(acc)), r);
  }
}

void weighted_sum_rows(const float* const* sources, const float* p, std::size_t count,
                       std::size_t n, float* y) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    F acc = zero();
    for (std::size_t s = 0; s < count; ++s) acc = fma(set1(p[s]), load(sources[s] + i), acc);
    store(y + i, acc);
  }
  if (i < n) {
    F acc = zero();
    for (std::size_t s = 0; s < count; ++s) {
      acc = fma(set1(p[s]), load_n(sources[s] + i, n - i), acc);
    }
    store_n(y + i, acc, n - i);
  }
}

}  // namespace
}  // namespace triax
