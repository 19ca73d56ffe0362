// Row-wise operations: shape checks and the cut over rows; the loops are kernels.
#include "triax/ops/elementwise.h"

#include <cstring>

#include "triax/kernels/kernels.h"
#include "triax/ops/split.h"

namespace triax::ops {
namespace {

void check_same(Mat<const float> a, Mat<const float> b) {
  TRIAX_CHECK(a.shape == b.shape, "shapes differ");
}

}  // namespace

void rms_norm(Context& ctx, Mat<const float> x, Vec<const float> w, float eps, Mat<float> y) {
  check_same(x, y);
  TRIAX_CHECK(w.size() == x.shape[1], "one weight a column");
  const KernelTable& k = kernels();
  const std::size_t n = x.shape[1];
  for_row_blocks(ctx, x.shape[0], n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) k.rms_norm(x[t].data, w.data, eps, n, y[t].data);
  });
}

void rms_norm_gated(Context& ctx, Mat<const float> o, Vec<const float> w, Mat<const float> gate,
                    float eps, Mat<float> y) {
  check_same(o, y);
  check_same(o, gate);
  const std::size_t D = w.size(), n = o.shape[1];
  TRIAX_CHECK(D != 0 && n % D == 0, "columns are whole heads");
  const KernelTable& k = kernels();
  for_row_blocks(ctx, o.shape[0], n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t c = 0; c < n; c += D) {
        k.rms_norm_gated(o[t].data + c, w.data, gate[t].data + c, eps, D, y[t].data + c);
      }
    }
  });
}

void l2_norm(Context& ctx, Mat<const float> x, std::size_t D, float eps, Mat<float> y) {
  check_same(x, y);
  const std::size_t n = x.shape[1];
  TRIAX_CHECK(D != 0 && n % D == 0, "columns are whole heads");
  const KernelTable& k = kernels();
  for_row_blocks(ctx, x.shape[0], n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t c = 0; c < n; c += D) k.l2_norm(x[t].data + c, eps, D, y[t].data + c);
    }
  });
}

void add(Context& ctx, Mat<const float> a, Mat<const float> b, Mat<float> y) {
  check_same(a, b);
  check_same(a, y);
  const KernelTable& k = kernels();
  for_row_stretches(ctx, a.shape[0], a.shape[1],
                    [&](std::size_t t, std::size_t c, std::size_t end) {
                      k.add(a[t].data + c, b[t].data + c, end - c, y[t].data + c);
                    });
}

void sigmoid(Context& ctx, Mat<const float> x, Mat<float> y) {
  check_same(x, y);
  const KernelTable& k = kernels();
  for_row_stretches(ctx, x.shape[0], x.shape[1],
                    [&](std::size_t t, std::size_t c, std::size_t end) {
                      k.sigmoid(x[t].data + c, end - c, y[t].data + c);
                    });
}

void mul_sigmoid(Context& ctx, Mat<const float> x, Mat<const float> gate, Mat<float> y) {
  check_same(x, gate);
  check_same(x, y);
  const KernelTable& k = kernels();
  for_row_stretches(ctx, x.shape[0], x.shape[1],
                    [&](std::size_t t, std::size_t c, std::size_t end) {
                      k.mul_sigmoid(x[t].data + c, gate[t].data + c, end - c, y[t].data + c);
                    });
}

void round_in_bf16_mode(Context& ctx, Mat<float> x) {
  if (ctx.precision != Precision::bf16) return;
  constexpr std::size_t kPiece = 256;  // elements rounded on the stack at a time
  const KernelTable& k = kernels();
  for_row_stretches(ctx, x.shape[0], x.shape[1],
                    [&](std::size_t t, std::size_t c, std::size_t end) {
                      bf16 piece[kPiece];
                      for (; c < end; c += kPiece) {
                        const std::size_t n = std::min(kPiece, end - c);
                        k.to_bf16(x[t].data + c, n, piece);
                        k.from_bf16(piece, n, x[t].data + c);
                      }
                    });
}

void activate(Context& ctx, Mat<const float> gate, Mat<const float> up, const Activation& a,
              Mat<float> y) {
  check_same(gate, up);
  check_same(gate, y);
  for_row_stretches(ctx, gate.shape[0], gate.shape[1],
                    [&](std::size_t t, std::size_t c, std::size_t end) {
                      activate_row(a, gate[t].data + c, up[t].data + c, end - c, y[t].data + c);
                    });
}

void activate_row(const Activation& a, const float* gate, const float* up, std::size_t n,
                  float* y) {
  if (a.situ) {
    kernels().situ(gate, up, a.beta, a.linear_beta, n, y);
  } else {
    kernels().swiglu(gate, up, n, y);
  }
}

void kda_gate(Context& ctx, Mat<const float> raw, Vec<const float> A, Vec<const float> dt_bias,
              bool bounded, float lower_bound, Mat<float> g) {
  check_same(raw, g);
  const std::size_t n = raw.shape[1], heads = A.size();
  TRIAX_CHECK(heads != 0 && n % heads == 0 && dt_bias.size() == n, "one dt_bias a channel");
  const std::size_t K = n / heads;
  const KernelTable& k = kernels();
  for_row_blocks(ctx, raw.shape[0], n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t h = 0; h < heads; ++h) {
        const float *x = raw[t].data + h * K, *bias = dt_bias.data + h * K;
        if (bounded) {
          k.kda_gate(x, bias, A[h], lower_bound, K, g[t].data + h * K);
        } else {
          k.kda_gate_softplus(x, bias, A[h], K, g[t].data + h * K);
        }
      }
    }
  });
}

}  // namespace triax::ops
