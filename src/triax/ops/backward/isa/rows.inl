// Gradients of rows: norms, gates, activations, depth mixes, the short convolution.
#pragma once

#include "triax/kernels/isa/reduce.inl"

namespace triax {
namespace {

// 1 / x for normal x; where a set has an estimate, that and one step of Newton's: within 2 units in
// the last place.
TRIAX_INLINE F inverse(F x) {
#if defined(__AVX512F__)
  const F r = _mm512_rcp14_ps(x);
  return mul(r, fnma(x, r, set1(2.0f)));
#else
  return div(set1(1.0f), x);
#endif
}
TRIAX_INLINE F fast_sigmoid(F x) {
  const F e = v_exp(min(set1(80.0f), sub(zero(), x)));
  return inverse(add(set1(1.0f), e));
}

// f(get, put, i) for whole vectors of n elements, then for the rest: get(row) and put(row, value)
// at place i.
template <class Fn>
TRIAX_INLINE void for_vectors(std::size_t n, Fn f) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    f([i](const float* p) TRIAX_LAMBDA { return load(p + i); },
      [i](float* p, F v) TRIAX_LAMBDA { store(p + i, v); });
  }
  if (i < n) {
    const std::size_t rest = n - i;
    f([i, rest](const float* p) TRIAX_LAMBDA { return load_n(p + i, rest); },
      [i, rest](float* p, F v) TRIAX_LAMBDA { store_n(p + i, v, rest); });
  }
}

void rms_norm_back(const float* x, const float* w, float eps, const float* dy, std::size_t n,
                   bool accumulate, float* dx, float* dw) {
  F squares = zero(), along = zero();
  for_vectors(n, [&](auto get, auto) TRIAX_LAMBDA {
    const F v = get(x);
    squares = fma(v, v, squares);
    along = fma(mul(get(dy), get(w)), v, along);
  });
  const float r = inverse_root(sum(squares) / static_cast<float>(n) + eps);
  const F scale = set1(r), back = set1(r * r * r * sum(along) / static_cast<float>(n));
  for_vectors(n, [&](auto get, auto put) TRIAX_LAMBDA {
    const F v = get(x), given = mul(get(dy), scale);
    put(dw, fma(given, v, get(dw)));
    const F value = fnma(v, back, mul(given, get(w)));
    put(dx, accumulate ? add(get(dx), value) : value);
  });
}

void rms_norm_gated_back(const float* x, const float* w, const float* gate, float eps,
                         const float* dy, std::size_t n, float* dx, float* dgate, float* dw) {
  F squares = zero(), along = zero();
  for_vectors(n, [&](auto get, auto put) TRIAX_LAMBDA {
    const F v = get(x), s = fast_sigmoid(get(gate));
    squares = fma(v, v, squares);
    along = fma(mul(mul(get(dy), s), get(w)), v, along);
    put(dgate, s);
  });
  const float r = inverse_root(sum(squares) / static_cast<float>(n) + eps);
  const F scale = set1(r), back = set1(r * r * r * sum(along) / static_cast<float>(n));
  for_vectors(n, [&](auto get, auto put) TRIAX_LAMBDA {
    const F v = get(x), s = get(dgate), given = mul(get(dy), scale), weight = get(w);
    const F gated = mul(given, s);
    put(dw, fma(gated, v, get(dw)));
    put(dgate, mul(mul(mul(gated, weight), v), sub(set1(1.0f), s)));
    put(dx, fnma(v, back, mul(gated, weight)));
  });
}

void l2_norm_back(const float* x, float eps, const float* dy, std::size_t n, float* dx) {
  F squares = zero(), along = zero();
  for_vectors(n, [&](auto get, auto) TRIAX_LAMBDA {
    const F v = get(x);
    squares = fma(v, v, squares);
    along = fma(get(dy), v, along);
  });
  const float r = inverse_root(sum(squares) + eps);
  const F scale = set1(r), back = set1(r * r * r * sum(along));
  for_vectors(n, [&](auto get, auto put)
                     TRIAX_LAMBDA { put(dx, fnma(get(x), back, mul(scale, get(dy)))); });
}

void mul_sigmoid_back(const float* x, const float* gate, const float* dy, std::size_t n, float* dx,
                      float* dgate) {
  for_vectors(n, [&](auto get, auto put) TRIAX_LAMBDA {
    const F s = fast_sigmoid(get(gate)), gated = mul(get(dy), s), v = get(x);
    put(dx, gated);
    put(dgate, mul(mul(gated, v), sub(set1(1.0f), s)));
  });
}

// tanh(x / 4 ...) and sigmoid from one exponential would lose digits near zero, where their
// derivatives need none: the absolute error stays at 1e-7.
struct Capped {
  F value, slope;  // tanh and 1 - tanh^2
};
TRIAX_INLINE Capped capped(F x) {
  const F e = v_exp(max(set1(-80.0f), min(set1(80.0f), mul(set1(-2.0f), x))));
  const F t = fma(set1(2.0f), inverse(add(set1(1.0f), e)), set1(-1.0f));
  return {t, fnma(t, t, set1(1.0f))};
}

// The gradient of one vector: h = a b with a = beta tanh(g / beta) sigmoid(g), b the up branch.
struct GatedPair {
  F h, dgate, dup;
};
template <class Fn>
TRIAX_INLINE float gated_back(const float* gate, const float* up, const float* dy, float factor,
                              std::size_t n, float* dgate, float* dup, float* y, Fn pair) {
  F along = zero();
  const F by = set1(factor);
  for_vectors(n, [&](auto get, auto put) TRIAX_LAMBDA {
    const F given = get(dy);
    const GatedPair p = pair(get(gate), get(up));
    along = fma(p.h, given, along);
    const F scaled = mul(given, by);
    if (y != nullptr) put(y, mul(p.h, by));
    put(dgate, mul(scaled, p.dgate));
    put(dup, mul(scaled, p.dup));
  });
  return sum(along);
}

float situ_back(const float* gate, const float* up, float beta, float linear_beta, const float* dy,
                float factor, std::size_t n, float* dgate, float* dup, float* y) {
  const F one = set1(1.0f), b = set1(beta), inverse_b = set1(1.0f / beta);
  const auto with = [=](F g, F branch, F branch_slope) TRIAX_LAMBDA {
    const F s = fast_sigmoid(g);
    const Capped a = capped(mul(g, inverse_b));
    const F gated = mul(mul(b, a.value), s);
    const F slope = fma(gated, sub(one, s), mul(a.slope, s));
    return GatedPair{mul(gated, branch), mul(branch, slope), mul(gated, branch_slope)};
  };
  if (linear_beta > 0.0f) {
    const F c = set1(linear_beta), inverse_c = set1(1.0f / linear_beta);
    return gated_back(gate, up, dy, factor, n, dgate, dup, y, [=](F g, F u) TRIAX_LAMBDA {
      const Capped t = capped(mul(u, inverse_c));
      return with(g, mul(c, t.value), t.slope);
    });
  }
  return gated_back(gate, up, dy, factor, n, dgate, dup, y,
                    [=](F g, F u) TRIAX_LAMBDA { return with(g, u, one); });
}

void situ_fast(const float* gate, const float* up, float beta, float linear_beta, std::size_t n,
               float* y) {
  const F b = set1(beta), inverse_b = set1(1.0f / beta);
  const bool caps = linear_beta > 0.0f;
  const F c = set1(linear_beta), inverse_c = set1(caps ? 1.0f / linear_beta : 0.0f);
  for_vectors(n, [&](auto get, auto put) TRIAX_LAMBDA {
    const F g = get(gate), u = get(up);
    const F branch = caps ? mul(c, capped(mul(u, inverse_c)).value) : u;
    put(y, mul(mul(mul(b, capped(mul(g, inverse_b)).value), fast_sigmoid(g)), branch));
  });
}

float swiglu_back(const float* gate, const float* up, const float* dy, float factor, std::size_t n,
                  float* dgate, float* dup, float* y) {
  const F one = set1(1.0f);
  return gated_back(gate, up, dy, factor, n, dgate, dup, y, [=](F g, F u) TRIAX_LAMBDA {
    const F s = fast_sigmoid(g), gated = mul(g, s);
    return GatedPair{mul(gated, u), mul(mul(u, s), fma(g, sub(one, s), one)), gated};
  });
}

float kda_gate_back(const float* raw, const float* dt_bias, float a, float lower_bound,
                    const float* dg, std::size_t n, float* draw, float* ddt) {
  F along = zero();
  const F factor = set1(a), bound = set1(lower_bound * a), one = set1(1.0f);
  for_vectors(n, [&](auto get, auto put) TRIAX_LAMBDA {
    const F z = add(get(raw), get(dt_bias)), p = fast_sigmoid(mul(factor, z));
    const F d = mul(mul(get(dg), bound), mul(p, sub(one, p)));
    put(draw, d);
    put(ddt, add(get(ddt), d));
    along = fma(d, z, along);
  });
  return sum(along);
}

void mix_sums(const float* v, const float* w, const float* dy, std::size_t n, float* sums) {
  F squares = zero(), along = zero(), seen = zero();
  for_vectors(n, [&](auto get, auto) TRIAX_LAMBDA {
    const F value = get(v);
    squares = fma(value, value, squares);
    along = fma(get(w), value, along);
    seen = fma(get(dy), value, seen);
  });
  sums[0] = sum(squares), sums[1] = sum(along), sums[2] = sum(seen);
}

void mix_back(const float* source, const float* w, const float* dy, float p, float up, float back,
              std::size_t n, float* dsource, float* dw) {
  const F prob = set1(p), rise = set1(up), fall = set1(back);
  for_vectors(n, [&](auto get, auto put) TRIAX_LAMBDA {
    const F v = get(source);
    put(dw, fma(rise, v, get(dw)));
    put(dsource, fnma(fall, v, fma(rise, get(w), fma(prob, get(dy), get(dsource)))));
  });
}

// A vector of channels down the rows. The last taps - 1 gradients before SiLU are kept.
template <class Get, class Put>
TRIAX_INLINE void conv_channels(const float* x, std::size_t ldx, const float* w, std::size_t ldw,
                                std::size_t taps, std::size_t rows, const float* dy,
                                std::size_t lddy, float* dx, std::size_t lddx, float* dw,
                                std::size_t lddw, Get get, Put put) {
  constexpr std::size_t kMost = 8;
  const std::size_t before = taps - 1;
  F tap[kMost], sums[kMost], in[kMost], dp[kMost];  // in, dp: the newest last
  for (std::size_t j = 0; j < taps; ++j) {
    tap[j] = get(w + j * ldw);
    sums[j] = in[j] = dp[j] = zero();
  }
  const F one = set1(1.0f);
  for (std::size_t t = 0; t < rows + before; ++t) {
    for (std::size_t j = 0; j < before; ++j) {
      in[j] = in[j + 1];
      dp[j] = dp[j + 1];
    }
    dp[before] = zero();
    if (t < rows) {
      in[before] = get(x + t * ldx);
      F p = zero();
      for (std::size_t j = 0; j < taps; ++j) p = fma(tap[j], in[j], p);
      const F s = fast_sigmoid(p);
      const F d = mul(mul(get(dy + t * lddy), s), fma(p, sub(one, s), one));
      dp[before] = d;
      for (std::size_t j = 0; j < taps; ++j) sums[j] = fma(in[j], d, sums[j]);
    }
    if (t < before) continue;
    F out = zero();  // dx of row t - before: tap j met it in the gradient of row t - j
    for (std::size_t j = 0; j < taps; ++j) out = fma(tap[before - j], dp[j], out);
    put(dx + (t - before) * lddx, out);
  }
  for (std::size_t j = 0; j < taps; ++j) put(dw + j * lddw, add(get(dw + j * lddw), sums[j]));
}

void conv_back(const float* x, std::size_t ldx, const float* w, std::size_t ldw, std::size_t taps,
               std::size_t rows, const float* dy, std::size_t lddy, std::size_t n, float* dx,
               std::size_t lddx, float* dw, std::size_t lddw) {
  const auto run = [&](std::size_t c, std::size_t count, auto get, auto put) TRIAX_LAMBDA {
    if (count == 4) {  // the usual number, with everything in registers
      conv_channels(x + c, ldx, w + c, ldw, 4, rows, dy + c, lddy, dx + c, lddx, dw + c, lddw, get,
                    put);
    } else {
      conv_channels(x + c, ldx, w + c, ldw, count, rows, dy + c, lddy, dx + c, lddx, dw + c, lddw,
                    get, put);
    }
  };
  std::size_t c = 0;
  for (; c + kWidth <= n; c += kWidth) {
    run(
        c, taps, [](const float* p) TRIAX_LAMBDA { return load(p); },
        [](float* p, F v) TRIAX_LAMBDA { store(p, v); });
  }
  if (c < n) {
    const std::size_t rest = n - c;
    run(
        c, taps, [rest](const float* p) TRIAX_LAMBDA { return load_n(p, rest); },
        [rest](float* p, F v) TRIAX_LAMBDA { store_n(p, v, rest); });
  }
}

}  // namespace
}  // namespace triax
