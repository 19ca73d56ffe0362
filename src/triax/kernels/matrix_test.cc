// Products of the matrix unit, on machines that have one; elsewhere there is nothing to run.
#include <gtest/gtest.h>

#include <algorithm>

#include "triax/core/mxfp4.h"
#include "triax/kernels/kernel_test.h"

namespace triax {
namespace {

const MatrixKernels* matrix_unit() {
  return isa_available(Isa::amx) ? kernel_table(Isa::amx).matrix : nullptr;
}

struct Packed {
  std::vector<bf16> data;
  std::size_t rows;
  bool single = false;
  operator PackedRows() const { return {data.data(), rows, single}; }
};

Packed pack(const MatrixKernels& matrix, const std::vector<float>& x, std::size_t M, std::size_t K,
            ColumnOrder order = ColumnOrder::plain) {
  Packed out{std::vector<bf16>(packed_size(M, K)), M};
  std::vector<const float*> rows;
  for (std::size_t m = 0; m < M; ++m) rows.push_back(x.data() + m * K);
  matrix.pack(rows.data(), M, K, out.data.data(), K, order);
  return out;
}
// A row alone.
Packed single(const MatrixKernels& matrix, const std::vector<float>& row,
              ColumnOrder order = ColumnOrder::plain) {
  Packed out{std::vector<bf16>(row.size()), 1, true};
  matrix.pack_row(row.data(), row.size(), out.data.data(), order);
  return out;
}
// Columns of every row in the order in which MXFP4 is decoded: place 8 l + i holds column 4 i + l.
template <class T>
std::vector<T> in_decoded_order(const std::vector<T>& x) {
  std::vector<T> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = x[i / 32 * 32 + i % 8 * 4 + i % 32 / 8];
  }
  return out;
}

// Sizes around tiles (16), pairs of tiles (32), and the number of rows from which weights are
// copied.
const std::size_t kRows[] = {1, 5, 15, 16, 17, 31, 32, 33, 48, 49, 64, 65, 80, 81, 96, 97, 130};
const std::size_t kColumns[] = {16, 17, 31, 32, 33, 47, 64, 131};

TEST(MatrixKernels, AgreeWithDoublePrecisionAtEverySize) {
  const MatrixKernels* matrix = matrix_unit();
  if (matrix == nullptr) return;
  Rng rng(1);
  for (const std::size_t K : {32, 96, 160}) {
    for (const std::size_t M : kRows) {
      for (const std::size_t N : kColumns) {
        const std::vector<float> x = random_floats(rng, M * K);
        const std::vector<bf16> w = random_bf16(rng, N * K);
        const Packed packed = pack(*matrix, x, M, K);
        std::vector<float> y(M * (N + 3), -7.0f), scratch(matrix_scratch(K));
        matrix->product_bf16(packed, w.data(), K, N, K, y.data(), N + 3, scratch.data());
        for (std::size_t m = 0; m < M; ++m) {
          for (std::size_t n = 0; n < N; ++n) {
            double sum = 0;
            for (std::size_t k = 0; k < K; ++k) {
              sum += static_cast<double>(round_to_bf16(x[m * K + k])) *
                     static_cast<double>(to_float(w[n * K + k]));
            }
            ASSERT_NEAR(y[m * (N + 3) + n], sum, 1e-5) << M << " x " << N << " x " << K;
          }
          for (std::size_t n = N; n < N + 3; ++n) ASSERT_EQ(y[m * (N + 3) + n], -7.0f);
        }
      }
    }
  }
}

// A row's bits do not depend on the rows and columns beside it.
TEST(MatrixKernels, EveryOutputHasOneOrderOfSums) {
  const MatrixKernels* matrix = matrix_unit();
  if (matrix == nullptr) return;
  Rng rng(2);
  const std::size_t K = 224, M = 130, N = 80;
  const std::vector<float> x = random_floats(rng, M * K);
  const std::vector<bf16> w = random_bf16(rng, N * K);
  std::vector<float> whole(M * N), scratch(matrix_scratch(K));
  matrix->product_bf16(pack(*matrix, x, M, K), w.data(), K, N, K, whole.data(), N, scratch.data());
  for (std::size_t m = 0; m < M; m += 7) {
    const std::vector<float> row(x.begin() + static_cast<std::ptrdiff_t>(m * K),
                                 x.begin() + static_cast<std::ptrdiff_t>((m + 1) * K));
    std::vector<float> alone(N);
    matrix->product_bf16(single(*matrix, row), w.data(), K, N, K, alone.data(), N, scratch.data());
    for (std::size_t n = 0; n < N; ++n) ASSERT_EQ(alone[n], whole[m * N + n]);
    for (const std::size_t first : {0, 5, 64}) {
      std::vector<float> y(16);
      matrix->product_bf16(pack(*matrix, row, 1, K), w.data() + first * K, K, 16, K, y.data(), 16,
                           scratch.data());
      for (std::size_t n = 0; n < 16; ++n) ASSERT_EQ(y[n], whole[m * N + first + n]);
    }
  }
}

// MXFP4 weights are the BF16 matrix that they decode to, bit for bit, its columns taken in the
// order of the decoding.
TEST(MatrixKernels, Mxfp4EqualsItsDecodedMatrix) {
  const MatrixKernels* matrix = matrix_unit();
  if (matrix == nullptr) return;
  Rng rng(3);
  const std::size_t K = 160, N = 48;
  std::vector<std::uint8_t> packed(N * K / 2), scale(N * K / 32);
  for (std::uint8_t& b : packed) b = static_cast<std::uint8_t>(rng.next());
  for (std::uint8_t& e : scale) e = static_cast<std::uint8_t>(115 + rng.next() % 20);
  std::vector<bf16> w(N * K);
  std::vector<float> row(K);
  for (std::size_t n = 0; n < N; ++n) {
    mxfp4_decode_row({packed.data(), scale.data(), N, K}, n, row);
    std::transform(row.begin(), row.end(), w.begin() + static_cast<std::ptrdiff_t>(n * K),
                   [](float v) { return to_bf16(v); });
  }
  w = in_decoded_order(w);
  for (const std::size_t M : kRows) {
    const std::vector<float> rows = random_floats(rng, M * K), moved = in_decoded_order(rows);
    const Packed x = M == 1 ? single(*matrix, rows, ColumnOrder::mxfp4)
                            : pack(*matrix, rows, M, K, ColumnOrder::mxfp4);
    const Packed plain = M == 1 ? single(*matrix, moved) : pack(*matrix, moved, M, K);
    std::vector<float> a(M * N), b(M * N), scratch(matrix_scratch(K));
    // What comes next is a hint and changes nothing.
    const std::uint8_t* next = M % 2 == 0 ? packed.data() : nullptr;
    matrix->product_mxfp4(x, packed.data(), scale.data(), N, K, a.data(), N, scratch.data(), next,
                          next);
    matrix->product_bf16(plain, w.data(), K, N, K, b.data(), N, scratch.data());
    EXPECT_EQ(a, b) << M;
  }
}

// 8-bit weights are the BF16 matrix of code times scale, rounded, bit for bit.
TEST(MatrixKernels, Int8EqualsItsRoundedMatrix) {
  const MatrixKernels* matrix = matrix_unit();
  if (matrix == nullptr) return;
  Rng rng(5);
  const std::size_t K = 160, N = 80;
  std::vector<std::int8_t> codes(N * K);
  for (auto& c : codes) c = static_cast<std::int8_t>(static_cast<int>(rng.next() % 255) - 127);
  const std::vector<bf16> scale = random_bf16(rng, N * K / 32);
  std::vector<bf16> w(N * K);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = to_bf16(codes[i] * to_float(scale[i / 32]));
  for (const std::size_t M : kRows) {
    const std::vector<float> rows = random_floats(rng, M * K);
    const Packed x = M == 1 ? single(*matrix, rows) : pack(*matrix, rows, M, K);
    std::vector<float> a(M * N), b(M * N), scratch(matrix_scratch(K));
    matrix->product_int8(x, codes.data(), scale.data(), N, K, a.data(), N, scratch.data());
    matrix->product_bf16(x, w.data(), K, N, K, b.data(), N, scratch.data());
    EXPECT_EQ(a, b) << M;
  }
}

// A stretch of columns packed on its own lands where the whole matrix has it.
TEST(MatrixKernels, PacksStretchesOfColumns) {
  const MatrixKernels* matrix = matrix_unit();
  if (matrix == nullptr) return;
  Rng rng(4);
  const std::size_t K = 128, M = 37;
  const std::vector<float> x = random_floats(rng, M * K);
  const std::vector<bf16> whole = pack(*matrix, x, M, K).data;
  std::vector<bf16> pieces(whole.size());
  for (const std::size_t column : {0, 64}) {
    std::vector<const float*> rows;
    for (std::size_t m = 0; m < M; ++m) rows.push_back(x.data() + m * K + column);
    matrix->pack(rows.data(), M, 64, pieces.data() + column / kMatrixTileCols * packed_tile(), K,
                 ColumnOrder::plain);
  }
  EXPECT_TRUE(pieces == whole);
}

}  // namespace
}  // namespace triax
