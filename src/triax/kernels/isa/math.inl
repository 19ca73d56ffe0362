// Exponential, logistic function, hyperbolic tangent and softplus on vectors. Written against
// simd_*.h. The polynomials are least-maximum fits made for these intervals.
#pragma once

namespace triax {
namespace {

// x = n ln 2 + r with |r| <= ln 2 / 2 (n as float); expm1(r) = r + r^2 q(r), error below 6e-11 +
// rounding.
struct Reduced {
  F n, expm1;
};

TRIAX_INLINE Reduced reduce_exp(F x) {
  const F n = round(mul(x, set1(1.44269504f)));
  // ln 2 in two parts; the first has few bits, so that n times it is exact.
  F r = fnma(n, set1(0x1.62e4p-1f), x);
  r = fnma(n, set1(1.42860677e-6f), r);
  F q = set1(0x1.a1bc16p-13f);
  q = fma(q, r, set1(0x1.6d9a4ap-10f));
  q = fma(q, r, set1(0x1.11107ap-7f));
  q = fma(q, r, set1(0x1.55547cp-5f));
  q = fma(q, r, set1(0x1.555556p-3f));
  q = fma(q, r, set1(0.5f));
  return {n, fma(mul(r, r), q, r)};
}

// Underflows to 0 below -104, overflows to infinity above 88.72; NaN stays NaN.
TRIAX_INLINE F v_exp(F x) {
  const F clamped = min(set1(89.0f), max(set1(-104.0f), x));
  const Reduced e = reduce_exp(clamped);
  return scale_by_power(add(e.expm1, set1(1.0f)), e.n);
}

TRIAX_INLINE F v_sigmoid(F x) {
  const F e = v_exp(sub(zero(), x));
  return div(set1(1.0f), add(set1(1.0f), e));
}

// expm1(2|x|) / (expm1(2|x|) + 2): accurate for small x, exactly 1 for large.
TRIAX_INLINE F v_tanh(F x) {
  const F twice = min(set1(40.0f), mul(abs(x), set1(2.0f)));
  const Reduced e = reduce_exp(twice);
  const F power = scale_by_power(set1(1.0f), e.n);
  const F expm1 = fma(power, e.expm1, sub(power, set1(1.0f)));
  const F magnitude = div(expm1, add(expm1, set1(2.0f)));
  return copy_sign(magnitude, x);
}

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|); log1p(u) = 2 atanh(u / (2 + u)).
TRIAX_INLINE F v_softplus(F x) {
  const F u = v_exp(sub(zero(), abs(x)));
  const F s = div(u, add(u, set1(2.0f)));
  const F s2 = mul(s, s);
  F p = set1(0.21792394f);
  p = fma(p, s2, set1(0.17147851f));
  p = fma(p, s2, set1(0.223015f));
  p = fma(p, s2, set1(0.28568396f));
  p = fma(p, s2, set1(0.40000054f));
  p = fma(p, s2, set1(0.6666667f));
  const F log1p = fma(mul(s, s2), p, add(s, s));
  return add(max(x, zero()), log1p);
}

}  // namespace
}  // namespace triax
