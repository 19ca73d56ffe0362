// Small float32 products against double, with and without accumulation, and their bits in any tile.
#include "triax/kernels/kernel_test.h"

namespace triax {
namespace {

class Gemm : public EveryIsa {};

struct Shape {
  std::size_t M, N, K;
};
constexpr Shape kShapes[] = {{1, 1, 1},    {1, 512, 37}, {2, 3, 5},     {4, 64, 16}, {5, 33, 16},
                             {16, 16, 16}, {17, 47, 29}, {16, 128, 64}, {9, 100, 3}, {3, 7, 130}};

// element(a, m, k), element(b, k, n) by strides; run(A, B, C, ldc, M, N, accumulate).
template <class TB, class Run>
void check(Rng& rng, Shape s, const std::vector<float>& a, std::size_t a_row, std::size_t a_col,
           const std::vector<TB>& b, std::size_t b_row, std::size_t b_col, Run run) {
  const std::size_t ldc = s.N + 2;
  const std::vector<float> before = random_floats(rng, s.M * ldc);
  for (bool accumulate : {false, true}) {
    std::vector<float> c = before;
    run(a.data(), b.data(), c.data(), ldc, s.M, s.N, accumulate);
    for (std::size_t m = 0; m < s.M; ++m) {
      for (std::size_t n = 0; n < s.N; ++n) {
        double want = accumulate ? before[m * ldc + n] : 0.0, size = std::fabs(want);
        for (std::size_t k = 0; k < s.K; ++k) {
          const double term =
              double{a[m * a_row + k * a_col]} * double{to_float(b[k * b_row + n * b_col])};
          want += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(c[m * ldc + n], want, 1e-6 * size) << s.M << 'x' << s.N << 'x' << s.K;
        float alone = before[m * ldc + n];
        run(a.data() + m * a_row, b.data() + n * b_col, &alone, 1, 1, 1, accumulate);
        ASSERT_EQ(alone, c[m * ldc + n]) << m << ',' << n;
      }
      for (std::size_t n = s.N; n < ldc; ++n) ASSERT_EQ(c[m * ldc + n], before[m * ldc + n]);
    }
  }
}

TEST_P(Gemm, Nn) {
  Rng rng(11);
  for (Shape s : kShapes) {
    const std::size_t lda = s.K + 1, ldb = s.N + 3;
    const auto a = random_floats(rng, s.M * lda), b = random_floats(rng, s.K * ldb);
    check(
        rng, s, a, lda, 1, b, ldb, 1,
        [&](const float* A, const float* B, float* C, std::size_t ldc, std::size_t M, std::size_t N,
            bool acc) { table().gemm_nn(A, lda, B, ldb, C, ldc, M, N, s.K, acc); });
  }
}

TEST_P(Gemm, NnBf16) {
  Rng rng(12);
  for (Shape s : kShapes) {
    const std::size_t lda = s.K + 1, ldb = s.N + 3;
    const auto a = random_floats(rng, s.M * lda);
    const auto b = random_bf16(rng, s.K * ldb);
    check(
        rng, s, a, lda, 1, b, ldb, 1,
        [&](const float* A, const bf16* B, float* C, std::size_t ldc, std::size_t M, std::size_t N,
            bool acc) { table().gemm_nn_bf16(A, lda, B, ldb, C, ldc, M, N, s.K, acc); });
  }
}

TEST_P(Gemm, Tn) {
  Rng rng(13);
  for (Shape s : kShapes) {
    const std::size_t lda = s.M + 1, ldb = s.N + 3;
    const auto a = random_floats(rng, s.K * lda), b = random_floats(rng, s.K * ldb);
    check(
        rng, s, a, 1, lda, b, ldb, 1,
        [&](const float* A, const float* B, float* C, std::size_t ldc, std::size_t M, std::size_t N,
            bool acc) { table().gemm_tn(A, lda, B, ldb, C, ldc, M, N, s.K, acc); });
  }
}

TEST_P(Gemm, NtAccumulates) {
  Rng rng(14);
  for (Shape s : kShapes) {
    const std::size_t lda = s.K + 1, ldb = s.K + 3;
    const auto a = random_floats(rng, s.M * lda), b = random_floats(rng, s.N * ldb);
    check(
        rng, s, a, lda, 1, b, 1, ldb,
        [&](const float* A, const float* B, float* C, std::size_t ldc, std::size_t M, std::size_t N,
            bool acc) { table().gemm_nt(A, lda, B, ldb, C, ldc, M, N, s.K, acc); });
    const auto half = random_bf16(rng, s.N * ldb);
    check(
        rng, s, a, lda, 1, half, 1, ldb,
        [&](const float* A, const bf16* B, float* C, std::size_t ldc, std::size_t M, std::size_t N,
            bool acc) { table().gemm_nt_bf16(A, lda, B, ldb, C, ldc, M, N, s.K, acc); });
  }
}

TRIAX_EVERY_ISA(Gemm);

}  // namespace
}  // namespace triax
