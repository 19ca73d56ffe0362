// Products with trunk weights and the embedding against the double-precision reference.
#include "triax/ops/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/settings.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

MatrixView view(const std::vector<bf16>& w, std::size_t K) {
  return {w.data(), DType::BF16, w.size() / K, K};
}
MatrixView view(const std::vector<float>& w, std::size_t K) {
  return {w.data(), DType::F32, w.size() / K, K};
}

std::vector<double> expected(const MatrixView& w, const std::vector<float>& x) {
  std::vector<double> out;
  const auto wide = widen(x);
  for (std::size_t t = 0; t < x.size() / w.cols; ++t) {
    const auto row = ref::linear(w, as_mat(wide, w.cols)[t]);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

struct Case {
  std::size_t T, K, N;
};

class Linear : public testing::TestWithParam<Case> {};

TEST_P(Linear, EqualsReferenceInBothModesAndBothWeightTypes) {
  const auto [T, K, N] = GetParam();
  const auto x = normal(1, T * K);
  auto rounded = x;
  round_all(rounded);
  const auto w32 = normal(2, N * K);
  const auto w16 = narrow(w32);
  for (const MatrixView& w : {view(w32, K), view(w16, K)}) {
    for (const Precision mode : {Precision::f32, Precision::bf16}) {
      const auto want = expected(w, mode == Precision::bf16 ? rounded : x);
      for_each_setting(
          mode,
          [&, n = N, k = K](Context& ctx) {
            std::vector<float> y(x.size() / k * n);
            linear(ctx, as_mat(x, k), w, as_mat(y, n));
            return y;
          },
          [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, 1e-5)); });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Linear,
                         testing::Values(Case{1, 96, 33}, Case{1, 1024, 300}, Case{2, 33, 17},
                                         Case{5, 257, 64}, Case{7, 1, 1}, Case{131, 64, 48},
                                         Case{300, 40, 9}));

TEST(LinearJobs, SeveralProjectionsOfOneInput) {
  const std::size_t T = 9, K = 72;
  const auto x = normal(3, T * K);
  auto rounded = x;
  round_all(rounded);
  const auto a = narrow(normal(4, 100 * K));
  const auto b = normal(5, 3 * K);
  const auto c = narrow(normal(6, 1 * K));
  std::vector<double> want;
  for (const MatrixView& w : {view(a, K), view(b, K), view(c, K)}) {
    const auto part = expected(w, rounded);
    want.insert(want.end(), part.begin(), part.end());
  }
  for_each_setting(
      Precision::bf16,
      [&](Context& ctx) {
        std::vector<float> y(T * 104);
        const LinearJob jobs[] = {{view(a, K), Mat<float>(y.data(), {T, 100})},
                                  {view(b, K), Mat<float>(y.data() + T * 100, {T, 3})},
                                  {view(c, K), Mat<float>(y.data() + T * 103, {T, 1})}};
        linear(ctx, as_mat(x, K), jobs);
        return y;
      },
      [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, 1e-5)); });
}

TEST(LinearJobs, Float32InputStaysInBf16Mode) {
  const std::size_t T = 3, K = 200, N = 24;
  const auto x = normal(7, T * K);
  const auto w = narrow(normal(8, N * K));
  const auto want = expected(view(w, K), x);
  for_each_setting(
      Precision::bf16,
      [&](Context& ctx) {
        std::vector<float> y(T * N);
        linear_f32(ctx, as_mat(x, K), view(w, K), as_mat(y, N));
        return y;
      },
      [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, 2e-6)); });
}

TEST(LinearJobs, ARowIsTheSameAloneAndInABatch) {
  const std::size_t T = 150, K = 96, N = 70;
  const auto x = normal(9, T * K);
  const auto w16 = narrow(normal(10, N * K));
  const auto w32 = normal(11, N * K);
  for (const MatrixView& w : {view(w16, K), view(w32, K)}) {
    for (const Precision mode : {Precision::f32, Precision::bf16}) {
      for_each_isa([&] {
        Runner run(2, mode);
        std::vector<float> all(T * N), one(N), some(5 * N);
        linear(run, as_mat(x, K), w, as_mat(all, N));
        for (const std::size_t t : {0u, 1u, 63u, 127u, 128u, 149u}) {
          linear(run, as_mat(x, K).slice(t, t + 1), w, as_mat(one, N));
          EXPECT_TRUE(same_bits(one, as_mat(all, N)[t].span())) << "row " << t;
        }
        linear(run, as_mat(x, K).slice(100, 105), w, as_mat(some, N));
        EXPECT_TRUE(same_bits(some, as_mat(all, N).slice(100, 105).span()));
      });
    }
  }
}

TEST(LinearJobs, StridedInputAndOutput) {
  const std::size_t T = 4, K = 48, N = 20, ldx = 60, ldy = 31;
  const auto x = normal(12, T * ldx);
  const auto w = narrow(normal(13, N * K));
  std::vector<float> packed;
  for (std::size_t t = 0; t < T; ++t)
    packed.insert(packed.end(), x.begin() + t * ldx, x.begin() + t * ldx + K);
  for_each_isa([&] {
    Runner run(3);
    std::vector<float> y(T * ldy, 7.0f), dense(T * N);
    linear(run, Mat<const float>(x.data(), {T, K}, ldx), view(w, K),
           Mat<float>(y.data(), {T, N}, ldy));
    linear(run, as_mat(packed, K), view(w, K), as_mat(dense, N));
    for (std::size_t t = 0; t < T; ++t) {
      EXPECT_TRUE(same_bits({y.data() + t * ldy, N}, {dense.data() + t * N, N}));
      for (std::size_t c = N; c < ldy; ++c) EXPECT_EQ(y[t * ldy + c], 7.0f) << "outside y";
    }
  });
}

TEST(LinearJobs, WrongShapesAreRefused) {
  Runner run(1);
  const std::vector<float> x(8), w(12);
  std::vector<float> y(6);
  EXPECT_THROW(linear(run, as_mat(x, 4), view(w, 3), as_mat(y, 3)), LogicError);
  EXPECT_THROW(linear(run, as_mat(x, 4), view(w, 4), as_mat(y, 2)), LogicError);
  EXPECT_THROW(linear(run, as_mat(x, 4), {w.data(), DType::U8, 3, 4}, as_mat(y, 3)), LogicError);
}

TEST(Embed, RowsOfTheTableWidened) {
  const std::size_t n = 130;
  auto table = normal(14, 11 * n);
  round_all(table);
  const auto half = narrow(table);
  const std::vector<std::int32_t> ids{10, 0, 3, 3};
  std::vector<float> want;
  for (std::int32_t id : ids)
    want.insert(want.end(), table.begin() + id * 130, table.begin() + (id + 1) * 130);
  for (const MatrixView& t : {view(half, n), view(table, n)}) {
    for_each_setting(
        Precision::f32,
        [&](Context& ctx) {
          std::vector<float> y(ids.size() * n);
          embed(ctx, t, ids, as_mat(y, n));
          return y;
        },
        [&](const std::vector<float>& y) { EXPECT_TRUE(same_bits(y, want)); });
  }
}

TEST(Embed, AnIdOutsideTheVocabularyIsNamed) {
  Runner run(1);
  const auto table = normal(15, 11 * 4);
  std::vector<float> y(3 * 4);
  for (const std::int32_t bad : {11, -1}) {
    const std::vector<std::int32_t> ids{1, 2, bad};
    try {
      embed(run, view(table, 4), ids, as_mat(y, 4));
      FAIL() << "accepted " << bad;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("position 2"));
      EXPECT_THAT(e.what(), testing::HasSubstr(std::to_string(bad)));
      EXPECT_THAT(e.what(), testing::HasSubstr("11"));
    }
  }
}

}  // namespace
}  // namespace triax::ops
