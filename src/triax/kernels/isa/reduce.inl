// Rows that end in one number: dot products, norms, maxima. Four vectors of partial sums, combined
// in an order that the length alone fixes.
#pragma once

#include "triax/kernels/isa/elementwise.inl"
#include "triax/kernels/isa/math.inl"

namespace triax {
namespace {

// Sum over i < n of term(load at i), where term adds to the vector it is given:
// acc = step(acc, i) for whole vectors, step_n(acc, i, rest) for the last.
template <class Step, class StepN>
TRIAX_INLINE float sum_over(std::size_t n, Step step, StepN step_n) {
  F a0 = zero(), a1 = zero(), a2 = zero(), a3 = zero();
  std::size_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
    a0 = step(a0, i);
    a1 = step(a1, i + kWidth);
    a2 = step(a2, i + 2 * kWidth);
    a3 = step(a3, i + 3 * kWidth);
  }
  for (; i + kWidth <= n; i += kWidth) a0 = step(a0, i);
  if (i < n) a0 = step_n(a0, i, n - i);
  return sum(add(add(a0, a1), add(a2, a3)));
}

float dot_row(const float* a, const float* b, std::size_t n) {
  return sum_over(
      n, [=](F acc, std::size_t i) TRIAX_LAMBDA { return fma(load(a + i), load(b + i), acc); },
      [=](F acc, std::size_t i, std::size_t r)
          TRIAX_LAMBDA { return fma(load_n(a + i, r), load_n(b + i, r), acc); });
}

float sum_squares_row(const float* x, std::size_t n) {
  return dot_row(x, x, n);
}

float max_row(const float* x, std::size_t n) {
  float best = x[0];
  std::size_t i = 0;
  if (n >= kWidth) {
    F m = load(x);
    for (i = kWidth; i + kWidth <= n; i += kWidth) m = max(m, load(x + i));
    best = hmax(m);
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

float exp_sum_row(const float* x, float shift, std::size_t n, float* y) {
  const F s = set1(shift);
  return sum_over(
      n,
      [=](F acc, std::size_t i) TRIAX_LAMBDA {
        const F e = v_exp(sub(load(x + i), s));
        store(y + i, e);
        return add(acc, e);
      },
      [=](F acc, std::size_t i, std::size_t r) TRIAX_LAMBDA {
        store_n(y + i, v_exp(sub(load_n(x + i, r), s)), r);
        return add(acc, load_n(y + i, r));
      });
}

TRIAX_INLINE float inverse_root(float x) {
  return 1.0f / __builtin_sqrtf(x);
}

void rms_norm_row(const float* x, const float* w, float eps, std::size_t n, float* y) {
  const F r = set1(inverse_root(sum_squares_row(x, n) / static_cast<float>(n) + eps));
  map(x, w, n, y, [=](F v, F weight) TRIAX_LAMBDA { return mul(mul(v, r), weight); });
}

void rms_norm_gated_row(const float* x, const float* w, const float* gate, float eps, std::size_t n,
                        float* y) {
  const F r = set1(inverse_root(sum_squares_row(x, n) / static_cast<float>(n) + eps));
  map(x, w, gate, n, y,
      [=](F v, F weight, F g) TRIAX_LAMBDA { return mul(mul(mul(v, r), weight), v_sigmoid(g)); });
}

void l2_norm_row(const float* x, float eps, std::size_t n, float* y) {
  scale_row(inverse_root(sum_squares_row(x, n) + eps), x, n, y);
}

float mix_score_row(const float* v, const float* w, float eps, std::size_t n) {
  return dot_row(v, w, n) * inverse_root(sum_squares_row(v, n) / static_cast<float>(n) + eps);
}

}  // namespace
}  // namespace triax
