// Products against a double-precision reference, and one order of sums for every shape of call.
#include <algorithm>
#include <cstring>

#include "triax/core/mxfp4.h"
#include "triax/kernels/kernel_test.h"

namespace triax {
namespace {

class Linear : public EveryIsa {};

struct Shape {
  std::size_t M, N, K;
};
constexpr Shape kDense[] = {
    {1, 1, 1},    {1, 8, 64},    {2, 13, 33},   {3, 5, 7},      {4, 9, 100},   {5, 17, 31},
    {6, 3, 257},  {7, 16, 128},  {8, 31, 95},   {9, 2, 160},    {11, 4, 66},   {12, 7, 48},
    {13, 70, 40}, {17, 19, 131}, {25, 6, 1400}, {2, 11, 17000}, {13, 67, 1387}};

constexpr std::size_t kGap = 3;  // leading dimensions are longer than the rows, and rows unaligned
constexpr float kUntouched = 12345.0f;

// x [M, K + gap], w [N, K + gap] and a product of the given element types.
template <class X, class W>
struct Problem {
  Shape s;
  std::size_t ldx, ldw, ldy;
  std::vector<X> x;
  std::vector<W> w;

  const X* x_row(std::size_t m) const { return x.data() + 1 + m * ldx; }
  const W* w_row(std::size_t n) const { return w.data() + 1 + n * ldw; }
};

template <class T>
std::vector<T> random_of(Rng& rng, std::size_t n) {
  if constexpr (std::is_same_v<T, bf16>) {
    return random_bf16(rng, n);
  } else {
    return random_floats(rng, n);
  }
}

template <class X, class W>
Problem<X, W> make_problem(Rng& rng, Shape s) {
  Problem<X, W> p{s, s.K + kGap, s.K + kGap, s.N + kGap, {}, {}};
  p.x = random_of<X>(rng, s.M * p.ldx + 1);
  p.w = random_of<W>(rng, s.N * p.ldw + 1);
  return p;
}

// run(x, ldx, M, w, ldw, N, y, ldy) on the whole, against double; then every output alone, bit for
// bit.
template <class X, class W, class Run>
void check_problem(const Problem<X, W>& p, Run run) {
  const auto [M, N, K] = p.s;
  std::vector<float> y(M * p.ldy, kUntouched);
  run(p.x_row(0), p.ldx, M, p.w_row(0), p.ldw, N, y.data(), p.ldy);
  for (std::size_t m = 0; m < M; ++m) {
    for (std::size_t n = 0; n < N; ++n) {
      double expected = 0, size = 0;
      for (std::size_t k = 0; k < K; ++k) {
        const double term = double{to_float(p.x_row(m)[k])} * double{to_float(p.w_row(n)[k])};
        expected += term;
        size += std::fabs(term);
      }
      ASSERT_NEAR(y[m * p.ldy + n], expected, 1e-6 * size) << M << 'x' << N << 'x' << K;
      float alone = kUntouched;
      run(p.x_row(m), p.ldx, 1, p.w_row(n), p.ldw, 1, &alone, 1);
      ASSERT_EQ(alone, y[m * p.ldy + n]) << m << ',' << n << " of " << M << 'x' << N << 'x' << K;
    }
    for (std::size_t n = N; n < p.ldy; ++n) ASSERT_EQ(y[m * p.ldy + n], kUntouched);
  }
}

TEST_P(Linear, Float32TimesBf16) {
  Rng rng(1);
  for (Shape s : kDense) {
    check_problem(make_problem<float, bf16>(rng, s),
                  [&](const float* x, std::size_t ldx, std::size_t M, const bf16* w,
                      std::size_t ldw, std::size_t N, float* y, std::size_t ldy) {
                    table().linear_f32_bf16(x, ldx, M, w, ldw, N, s.K, y, ldy);
                  });
  }
}

TEST_P(Linear, Bf16TimesBf16) {
  Rng rng(2);
  for (Shape s : kDense) {
    check_problem(make_problem<bf16, bf16>(rng, s),
                  [&](const bf16* x, std::size_t ldx, std::size_t M, const bf16* w, std::size_t ldw,
                      std::size_t N, float* y, std::size_t ldy) {
                    table().linear_bf16_bf16(x, ldx, M, w, ldw, N, s.K, y, ldy);
                  });
  }
}

TEST_P(Linear, Float32TimesFloat32) {
  Rng rng(3);
  for (Shape s : kDense) {
    const auto p = make_problem<float, float>(rng, s);
    check_problem(p, [&](const float* x, std::size_t ldx, std::size_t M, const float* w,
                         std::size_t ldw, std::size_t N, float* y, std::size_t ldy) {
      table().linear_f32_f32(x, ldx, M, w, ldw, N, s.K, y, ldy);
    });
    check_problem(p, [&](const float* x, std::size_t ldx, std::size_t M, const float* w,
                         std::size_t ldw, std::size_t N, float* y, std::size_t ldy) {
      table().gemm_nt(x, ldx, w, ldw, y, ldy, M, N, s.K, false);
    });
  }
}

TEST_P(Linear, GemmNtWithBf16) {
  Rng rng(4);
  for (Shape s : kDense) {
    check_problem(make_problem<float, bf16>(rng, s),
                  [&](const float* x, std::size_t ldx, std::size_t M, const bf16* w,
                      std::size_t ldw, std::size_t N, float* y, std::size_t ldy) {
                    table().gemm_nt_bf16(x, ldx, w, ldw, y, ldy, M, N, s.K, false);
                  });
  }
}

TEST_P(Linear, NoRowsOrColumnsWriteNothing) {
  const bf16 one = to_bf16(1.0f);
  const float x = 1.0f;
  float y = kUntouched;
  table().linear_f32_bf16(&x, 1, 0, &one, 1, 1, 1, &y, 1);
  table().linear_f32_bf16(&x, 1, 1, &one, 1, 0, 1, &y, 1);
  EXPECT_EQ(y, kUntouched);
  table().linear_f32_bf16(&x, 1, 1, &one, 1, 1, 0, &y, 1);
  EXPECT_EQ(y, 0.0f);
}

// ---- MXFP4 ------------------------------------------------------------------------------------

struct Mxfp4Problem {
  std::size_t N, K;
  std::vector<std::uint8_t> packed, scale;
  Mxfp4View view() const { return {packed.data() + 1, scale.data(), N, K}; }
};

// Every code occurs; scales around one. The packed bytes start at an odd address.
Mxfp4Problem random_mxfp4(Rng& rng, std::size_t N, std::size_t K) {
  Mxfp4Problem p{N, K, std::vector<std::uint8_t>(N * K / 2 + 1),
                 std::vector<std::uint8_t>(N * K / 32)};
  for (auto& b : p.packed) b = static_cast<std::uint8_t>(rng.next());
  for (auto& s : p.scale) s = static_cast<std::uint8_t>(120 + rng.next() % 10);
  return p;
}

template <class X>
void run_mxfp4(const KernelTable& t, const X* x, std::size_t ldx, std::size_t M, const Mxfp4View& w,
               float* y, std::size_t ldy, std::vector<float>& scratch) {
  scratch.resize(kMxfp4RowTile * w.cols);
  if constexpr (std::is_same_v<X, bf16>) {
    t.linear_bf16_mxfp4(x, ldx, M, w.packed, w.scale, w.rows, w.cols, y, ldy, scratch.data());
  } else {
    t.linear_f32_mxfp4(x, ldx, M, w.packed, w.scale, w.rows, w.cols, y, ldy, scratch.data());
  }
}

template <class X>
void check_mxfp4(const KernelTable& t, std::uint64_t seed) {
  Rng rng(seed);
  constexpr Shape shapes[] = {{1, 1, 32},   {1, 17, 96},  {2, 5, 160},  {3, 40, 64},
                              {4, 33, 224}, {5, 9, 32},   {12, 10, 96}, {13, 35, 160},
                              {17, 70, 64}, {250, 3, 64}, {1, 5, 8256}, {14, 34, 2080}};
  std::vector<float> scratch;
  for (auto [M, N, K] : shapes) {
    const Mxfp4Problem w = random_mxfp4(rng, N, K);
    const std::size_t ldx = K + kGap, ldy = N + 1;
    const std::vector<X> x = random_of<X>(rng, M * ldx);
    std::vector<float> y(M * ldy, kUntouched);
    run_mxfp4(t, x.data(), ldx, M, w.view(), y.data(), ldy, scratch);
    std::vector<float> row(K);
    for (std::size_t n = 0; n < N; ++n) {
      mxfp4_decode_row(w.view(), n, row);
      for (std::size_t m = 0; m < M; ++m) {
        double expected = 0, size = 0;
        for (std::size_t k = 0; k < K; ++k) {
          const double term = double{to_float(x[m * ldx + k])} * double{row[k]};
          expected += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(y[m * ldy + n], expected, 1e-6 * size) << M << 'x' << N << 'x' << K;
      }
    }
    // One row alone, and one weight row alone: the same bits, whichever way the codes were decoded.
    std::vector<float> alone(N);
    for (std::size_t m = 0; m < M; ++m) {
      run_mxfp4(t, x.data() + m * ldx, ldx, 1, w.view(), alone.data(), N, scratch);
      ASSERT_EQ(std::memcmp(alone.data(), &y[m * ldy], N * sizeof(float)), 0)
          << "row " << m << " of " << M << 'x' << N << 'x' << K;
      ASSERT_EQ(y[m * ldy + N], kUntouched);
    }
    const std::size_t last = N - 1;
    const Mxfp4View one{w.view().packed + last * K / 2, w.view().scale + last * K / 32, 1, K};
    float single = 0;
    run_mxfp4(t, x.data(), ldx, 1, one, &single, 1, scratch);
    ASSERT_EQ(single, y[last]);
  }
}

TEST_P(Linear, Float32TimesMxfp4) {
  check_mxfp4<float>(table(), 5);
}
TEST_P(Linear, Bf16TimesMxfp4) {
  check_mxfp4<bf16>(table(), 6);
}

// Acceptance case P08: every column group holds its own value; rows 1 to 17, columns 32 to 160.
TEST_P(Linear, Mxfp4GroupsWithTheirOwnValues) {
  std::vector<float> scratch, scalar_scratch;
  Rng rng(7);
  const KernelTable& scalar = kernel_table(Isa::scalar);
  for (std::size_t K = 32; K <= 160; K += 32) {
    Mxfp4Problem w{9, K, std::vector<std::uint8_t>(9 * K / 2 + 1),
                   std::vector<std::uint8_t>(9 * K / 32)};
    for (std::size_t g = 0; g < 9 * K / 32; ++g) {
      const unsigned code = 1 + static_cast<unsigned>(g % 15);  // 1..15: not all zero
      std::memset(w.packed.data() + 1 + g * 16, static_cast<int>(code * 0x11), 16);
      w.scale[g] = static_cast<std::uint8_t>(124 + g % 7);
    }
    for (std::size_t M = 1; M <= 17; ++M) {
      std::vector<float> x(M * K);
      for (float& v : x) v = to_float(to_bf16(0.5f + static_cast<float>(rng.uniform())));
      std::vector<bf16> xb(M * K);
      for (std::size_t i = 0; i < x.size(); ++i) xb[i] = to_bf16(x[i]);
      std::vector<float> want(M * 9), f32(M * 9), mixed(M * 9);
      run_mxfp4(scalar, x.data(), K, M, w.view(), want.data(), 9, scalar_scratch);
      run_mxfp4(table(), x.data(), K, M, w.view(), f32.data(), 9, scratch);
      run_mxfp4(table(), xb.data(), K, M, w.view(), mixed.data(), 9, scratch);
      std::vector<float> row(K);
      for (std::size_t n = 0; n < 9; ++n) {
        mxfp4_decode_row(w.view(), n, row);
        for (std::size_t m = 0; m < M; ++m) {
          double size = 0;  // groups of different signs cancel: relative to the terms
          for (std::size_t k = 0; k < K; ++k) size += std::fabs(double{x[m * K + k]} * row[k]);
          const std::size_t i = m * 9 + n;
          ASSERT_NEAR(f32[i], want[i], 1e-6 * size) << M << " rows, " << K << " columns";
          ASSERT_NEAR(mixed[i], want[i], 1e-6 * size) << M << " rows, " << K << " columns";
        }
      }
    }
  }
}

// Each code under each scale byte, one at a time. Below the smallest normal number may count as
// zero.
TEST_P(Linear, Mxfp4EveryCodeAndScale) {
  std::vector<float> scratch;
  for (std::size_t M : {std::size_t{1}, std::size_t{14}}) {
    std::vector<float> x(M * 32, 0.0f);
    std::vector<bf16> xb(M * 32);
    for (std::size_t m = 0; m < M; ++m) x[m * 32 + 5] = 1.0f, xb[m * 32 + 5] = to_bf16(1.0f);
    for (unsigned e = 0; e < 255; ++e) {
      Mxfp4Problem w{16, 32, std::vector<std::uint8_t>(16 * 16 + 1),
                     std::vector<std::uint8_t>(16, static_cast<std::uint8_t>(e))};
      // Only column 5 (the high nibble of byte 2) holds a code: its row's number.
      for (unsigned c = 0; c < 16; ++c) {
        w.packed[1 + c * 16 + 2] = static_cast<std::uint8_t>(c << 4);
      }
      std::vector<float> a(M * 16), b(M * 16);
      run_mxfp4(table(), x.data(), 32, M, w.view(), a.data(), 16, scratch);
      run_mxfp4(table(), xb.data(), 32, M, w.view(), b.data(), 16, scratch);
      for (std::size_t i = 0; i < M * 16; ++i) {
        const float want = mxfp4_at(w.view(), i % 16, 5);
        const bool tiny = std::fabs(want) < 0x1p-126f;
        ASSERT_TRUE(a[i] == want || (tiny && a[i] == 0.0f)) << "scale " << e << ", code " << i % 16;
        ASSERT_TRUE(b[i] == want || (tiny && b[i] == 0.0f)) << "scale " << e << ", code " << i % 16;
      }
    }
  }
}

// ---- 8-bit codes ------------------------------------------------------------------------------

struct Int8Problem {
  std::vector<std::int8_t> codes;  // [N, K]
  std::vector<bf16> scale;         // [N, K / 32]
};

template <class X>
void run_int8(const KernelTable& t, const X* x, std::size_t ldx, std::size_t M,
              const std::int8_t* codes, const bf16* scale, std::size_t N, std::size_t K, float* y,
              std::size_t ldy) {
  if constexpr (std::is_same_v<X, bf16>) {
    t.linear_bf16_int8(x, ldx, M, codes, scale, N, K, y, ldy);
  } else {
    t.linear_f32_int8(x, ldx, M, codes, scale, N, K, y, ldy);
  }
}

// `rounding`: how far a weight may lie from code times scale, relative.
template <class X>
void check_int8(const KernelTable& t, std::uint64_t seed, double rounding) {
  Rng rng(seed);
  constexpr Shape shapes[] = {{1, 1, 32},   {1, 17, 96},   {2, 5, 160},   {3, 40, 64},
                              {5, 9, 32},   {12, 10, 96},  {13, 35, 160}, {17, 70, 64},
                              {1, 5, 8256}, {14, 34, 2080}};
  for (auto [M, N, K] : shapes) {
    Int8Problem w{std::vector<std::int8_t>(N * K), random_bf16(rng, N * K / 32)};
    for (auto& c : w.codes) c = static_cast<std::int8_t>(static_cast<int>(rng.next() % 255) - 127);
    const std::size_t ldx = K + kGap, ldy = N + 1;
    const std::vector<X> x = random_of<X>(rng, M * ldx);
    std::vector<float> y(M * ldy, kUntouched);
    run_int8(t, x.data(), ldx, M, w.codes.data(), w.scale.data(), N, K, y.data(), ldy);
    for (std::size_t m = 0; m < M; ++m) {
      for (std::size_t n = 0; n < N; ++n) {
        double expected = 0, size = 0;
        for (std::size_t k = 0; k < K; ++k) {
          const double term = double{to_float(x[m * ldx + k])} * w.codes[n * K + k] *
                              double{to_float(w.scale[(n * K + k) / 32])};
          expected += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(y[m * ldy + n], expected, (1e-6 + rounding) * size)
            << M << 'x' << N << 'x' << K;
      }
      ASSERT_EQ(y[m * ldy + N], kUntouched);
      std::vector<float> alone(N);
      run_int8(t, x.data() + m * ldx, ldx, 1, w.codes.data(), w.scale.data(), N, K, alone.data(),
               N);
      ASSERT_EQ(std::memcmp(alone.data(), &y[m * ldy], N * sizeof(float)), 0)
          << "row " << m << " of " << M << 'x' << N << 'x' << K;
    }
  }
}

TEST_P(Linear, Float32TimesInt8) {
  check_int8<float>(table(), 8, 0);
}
TEST_P(Linear, Bf16TimesInt8) {
  check_int8<bf16>(table(), 9, 0x1p-9);
}

TRIAX_EVERY_ISA(Linear);

}  // namespace
}  // namespace triax
