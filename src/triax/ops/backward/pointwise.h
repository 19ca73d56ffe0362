// Gradients of norms, gates and activations. F is float (production) or double (gradient checks).
// Gradients of inputs are written, or added where `accumulate` says so; gradients of weights are
// always added. An output may be the same matrix as dy. Formulas: spec text model, section 8.
#pragma once

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/elementwise.h"

namespace triax::ops {

// y = x r w, r = (mean(x^2) + eps)^-1/2; x, dy, dx [T, N]; w, dw [N]. With h = dy w:
// dx = r h - x r^3 mean(h x);  dw = sum_t dy x r.
template <class F>
void rms_norm_backward(Context& ctx, Mat<const F> x, Vec<const F> w, F eps, Mat<const F> dy,
                       Mat<F> dx, bool accumulate, Vec<F> dw);

// Per head of D = w.size(): y = o r w sigmoid(gate). o, gate, dy, d_o, dgate [T, H*D]; dw [D].
// The norm's gradient with dy sigmoid(gate);  dgate = dy w o r sigmoid(gate) sigmoid(-gate).
template <class F>
void rms_norm_gated_backward(Context& ctx, Mat<const F> o, Vec<const F> w, Mat<const F> gate, F eps,
                             Mat<const F> dy, Mat<F> d_o, Mat<F> dgate, Vec<F> dw);

// Per head of D columns: y = r x, r = (sum(x^2) + eps)^-1/2:  dx = r dy - x r^3 (x . dy).
template <class F>
void l2_norm_backward(Context& ctx, Mat<const F> x, std::size_t D, F eps, Mat<const F> dy,
                      Mat<F> dx);

// y = sigmoid(x), given y: dx = dy y (1 - y).
template <class F>
void sigmoid_backward(Context& ctx, Mat<const F> y, Mat<const F> dy, Mat<F> dx);

// y = x sigmoid(gate): dx = dy sigmoid(gate);  dgate = dy x sigmoid(gate) (1 - sigmoid(gate)).
template <class F>
void mul_sigmoid_backward(Context& ctx, Mat<const F> x, Mat<const F> gate, Mat<const F> dy,
                          Mat<F> dx, Mat<F> dgate);

// SiTU, a = tanh(gate/beta), b = tanh(up/linear_beta), s = sigmoid(gate), y = beta a s linear_beta
// b:  dgate = dy linear_beta b ((1 - a^2) s + beta a s (1 - s));  dup = dy beta a s (1 - b^2).
// Uncapped and SwiGLU forms likewise. dgate and dup may be gate and up themselves.
template <class F>
void activate_backward(Context& ctx, Mat<const F> gate, Mat<const F> up, const Activation& a,
                       Mat<const F> dy, Mat<F> dgate, Mat<F> dup);
// The same, and the forward function, for n elements on the calling thread.
template <class F>
void activate_backward_row(const Activation& a, const F* gate, const F* up, const F* dy,
                           std::size_t n, F* dgate, F* dup);
// Of weight * y: y, when given, receives that, and the result is the sum of dy y without the
// weight.
template <class F>
F activate_backward_weighted(const Activation& a, const F* gate, const F* up, const F* dy, F weight,
                             std::size_t n, F* dgate, F* dup, F* y);
template <class F>
void activate_forward_row(const Activation& a, const F* gate, const F* up, std::size_t n, F* y);

// KDA log decay, A = exp(A_log), z = raw + dt_bias. Bounded, p = sigmoid(A z):
// dz = dg lower_bound p (1 - p) A;  softplus: dz = -dg A sigmoid(z).
// draw = dz [T, H*K];  ddt_bias [H*K] += sum_t dz;  dA_log [H] += sum_{t,k} dg dg/dA A.
template <class F>
void kda_gate_backward(Context& ctx, Mat<const F> raw, Vec<const F> A, Vec<const F> dt_bias,
                       bool bounded, F lower_bound, Mat<const F> dg, Mat<F> draw, Vec<F> dA_log,
                       Vec<F> ddt_bias);

}  // namespace triax::ops
