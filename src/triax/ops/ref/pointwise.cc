// Reference: functions of single elements, norms, products, convolution.
#include <algorithm>
#include <cmath>

#include "triax/core/mxfp4.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops::ref {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double silu(double x) {
  return x * sigmoid(x);
}

double situ(double gate, double up, double beta, double linear_beta) {
  const double branch = linear_beta > 0 ? linear_beta * std::tanh(up / linear_beta) : up;
  return beta * std::tanh(gate / beta) * sigmoid(gate) * branch;
}

double kda_gate(double raw, double dt_bias, double A, double lower_bound) {
  return lower_bound * sigmoid(A * (raw + dt_bias));
}

double kda_gate_softplus(double raw, double dt_bias, double A) {
  const double x = raw + dt_bias;
  return -A * (std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0));
}

std::vector<double> rms_norm(Vec<const double> x, Vec<const double> w, double eps) {
  double squares = 0;
  for (double v : x) squares += v * v;
  const double r = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * r * w[i];
  return y;
}

std::vector<double> l2_norm(Vec<const double> x, double eps) {
  double squares = 0;
  for (double v : x) squares += v * v;
  std::vector<double> y(x.begin(), x.end());
  for (double& v : y) v /= std::sqrt(squares + eps);
  return y;
}

std::vector<double> linear(const MatrixView& w, Vec<const double> x) {
  std::vector<double> y(w.rows, 0.0);
  for (std::size_t n = 0; n < w.rows; ++n) {
    for (std::size_t k = 0; k < w.cols; ++k) {
      const std::size_t at = n * w.cols + k;
      y[n] += x[k] * static_cast<double>(w.dtype == DType::F32 ? w.as_f32()[at]
                                                               : to_float(w.as_bf16()[at]));
    }
  }
  return y;
}

std::vector<double> linear(const Mxfp4View& w, Vec<const double> x) {
  std::vector<double> y(w.rows, 0.0);
  for (std::size_t n = 0; n < w.rows; ++n) {
    for (std::size_t k = 0; k < w.cols; ++k) y[n] += x[k] * static_cast<double>(mxfp4_at(w, n, k));
  }
  return y;
}

double short_conv(Vec<const double> w, Vec<const double> x) {
  double sum = 0;
  for (std::size_t j = 0; j < w.size(); ++j) sum += w[j] * x[j];
  return silu(sum);
}

}  // namespace triax::ops::ref
