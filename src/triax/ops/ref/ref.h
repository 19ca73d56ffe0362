// The operations once more in plain double precision, from the published equations and without any
// regard to speed: what the tests and the self-test compare with. One row or one head at a time.
// Equations: docs on the text model; every epsilon is the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "triax/core/matrix.h"
#include "triax/core/view.h"

namespace triax::ops::ref {

double sigmoid(double x);
double silu(double x);
// beta tanh(gate/beta) sigmoid(gate) * linear_beta tanh(up/linear_beta); linear_beta 0: times up
// itself
double situ(double gate, double up, double beta, double linear_beta);
double kda_gate(double raw, double dt_bias, double A, double lower_bound);  // bounded
double kda_gate_softplus(double raw, double dt_bias, double A);

// x / sqrt(mean(x^2) + eps) * w; x / sqrt(sum(x^2) + eps)
std::vector<double> rms_norm(Vec<const double> x, Vec<const double> w, double eps);
std::vector<double> l2_norm(Vec<const double> x, double eps);

// y = W x for W as stored: BF16 and float32, MXFP4
std::vector<double> linear(const MatrixView& w, Vec<const double> x);
std::vector<double> linear(const Mxfp4View& w, Vec<const double> x);

// One channel: x holds the past taps - 1 inputs, then the row's own. w [taps], the last meets the
// newest.
double short_conv(Vec<const double> w, Vec<const double> x);

// One head, state S [K, V] in place; q already scaled; returns o [T, V].
std::vector<double> kda(Mat<const double> q, Mat<const double> k, Mat<const double> v,
                        Mat<const double> g, Vec<const double> beta, Mat<double> S);

struct MixResult {
  std::vector<double> y, probs, scores;
};
// One row: sources [S, N], the running sum last.
MixResult depth_mix(Mat<const double> sources, Vec<const double> w, double eps);

struct Route {
  std::vector<std::int32_t> ids;  // ascending
  std::vector<double> weights;    // in the same order
};
Route route(Vec<const double> logits, Vec<const double> bias, std::size_t top_k, bool renormalize,
            double factor);

struct Activation {
  bool situ = true;
  double beta = 4, linear_beta = 25;
};
// w2 (act(w1 z, w3 z)), one token
std::vector<double> expert(const ExpertView& e, Vec<const double> z, const Activation& a);

// One head, keys and values expanded: q [T, nope + rope] are the last T rows of the context;
// latent [L, rank + rope]; kv_b rows of this head [nope + value, rank]. Returns attended [T,
// value].
std::vector<double> mla(Mat<const double> q, Mat<const double> latent, Mat<const double> kv_b,
                        std::size_t nope);

}  // namespace triax::ops::ref
