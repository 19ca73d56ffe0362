// MLA: both forms against the double-precision reference and each other, paged caches of either
// type, number modes, ragged batches, appended rows.
#include "triax/ops/mla.h"

#include <gtest/gtest.h>

#include "support/settings.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

constexpr double kLimit = 1e-5;

// One sequence: a cache of `context` tokens, the last `rows` of them with queries.
struct Sequence {
  MlaShape shape;
  std::size_t context, rows;
  std::vector<float> q, latent;  // [rows, H * (nope + rope)], [context, latent + rope]

  Sequence(std::uint64_t seed, const MlaShape& s, std::size_t context_, std::size_t rows_)
      : shape(s), context(context_), rows(rows_) {
    q = normal(seed, rows * s.heads * (s.nope + s.rope));
    latent = normal(seed + 1, context * (s.latent + s.rope));
  }
};

// The cache of a sequence in pages, as the state keeps it.
class Pages {
 public:
  Pages(const Sequence& s, std::size_t page_tokens, DType type, std::size_t tokens)
      : width_(s.shape.latent + s.shape.rope) {
    const std::size_t count = (tokens + page_tokens - 1) / page_tokens;
    for (std::size_t p = 0; p < count; ++p) {
      std::vector<float> page(page_tokens * width_, std::numeric_limits<float>::quiet_NaN());
      const std::size_t n = std::min(page_tokens, tokens - p * page_tokens) * width_;
      std::copy_n(s.latent.begin() + p * page_tokens * width_, n, page.begin());
      wide_.push_back(page);
      half_.push_back(narrow(page));
    }
    for (std::size_t p = 0; p < count; ++p) {
      pages_.push_back(type == DType::F32 ? static_cast<const void*>(wide_[p].data())
                                          : half_[p].data());
    }
    view_ = {pages_, page_tokens, width_, type, tokens};
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  const LatentView& view() const { return view_; }

 private:
  std::size_t width_;
  std::vector<std::vector<float>> wide_;
  std::vector<std::vector<bf16>> half_;
  std::vector<const void*> pages_;
  LatentView view_;
};

MatrixView view(const MlaShape& s, const std::vector<bf16>& w) {
  return {w.data(), DType::BF16, s.heads * (s.nope + s.value), s.latent};
}
MatrixView view(const MlaShape& s, const std::vector<float>& w) {
  return {w.data(), DType::F32, s.heads * (s.nope + s.value), s.latent};
}

std::vector<float> weights(const MlaShape& s) {
  auto w = normal(5, s.heads * (s.nope + s.value) * s.latent, 0.3);
  round_all(w);  // exact in either type
  return w;
}

// Rows [begin, end) of the sequence, the context ending with them.
std::vector<float> attend(Context& ctx, const Sequence& s, const MatrixView& kv_b, MlaPath path,
                          std::size_t page_tokens, DType type, std::size_t begin, std::size_t end) {
  const Pages pages(s, page_tokens, type, s.context - s.rows + end);
  std::vector<float> out((end - begin) * s.shape.heads * s.shape.value);
  const Segment segment{0, end - begin};
  mla_attend(ctx, s.shape,
             as_mat(s.q, s.shape.heads * (s.shape.nope + s.shape.rope)).slice(begin, end), kv_b,
             {&segment, 1}, {&pages.view(), 1}, as_mat(out, s.shape.heads * s.shape.value), path);
  return out;
}

std::vector<double> expected(const Sequence& s, const std::vector<float>& kv_b) {
  const MlaShape& m = s.shape;
  const std::size_t head = m.nope + m.rope, block = m.nope + m.value;
  const auto latent = widen(s.latent);
  std::vector<double> out(s.rows * m.heads * m.value);
  for (std::size_t h = 0; h < m.heads; ++h) {
    std::vector<double> q;
    for (std::size_t t = 0; t < s.rows; ++t) {
      const auto at = s.q.begin() + (t * m.heads + h) * head;
      q.insert(q.end(), at, at + head);
    }
    const std::vector<double> w(kv_b.begin() + h * block * m.latent,
                                kv_b.begin() + (h + 1) * block * m.latent);
    const auto o =
        ref::mla(as_mat(q, head), as_mat(latent, m.latent + m.rope), as_mat(w, m.latent), m.nope);
    for (std::size_t t = 0; t < s.rows; ++t) {
      std::copy_n(o.begin() + t * m.value, m.value, out.begin() + (t * m.heads + h) * m.value);
    }
  }
  return out;
}

// Relative root mean square difference.
double distance(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = static_cast<double>(got[i]) - want[i];
    error += d * d;
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

// kTiles suits the matrix unit, the others do not.
const MlaShape kSmall{4, 32, 16, 32, 64}, kOdd{11, 24, 8, 16, 48}, kTiles{3, 48, 16, 32, 64};

struct Length {
  std::size_t context, rows;
};

class Mla : public testing::TestWithParam<Length> {};

TEST_P(Mla, BothFormsEqualReference) {
  const auto [context, rows] = GetParam();
  for (const MlaShape& shape : {kSmall, kOdd}) {
    const Sequence s(1, shape, context, rows);
    const auto w32 = weights(shape);
    const auto w16 = narrow(w32);
    const auto want = expected(s, w32);
    for (const MatrixView& w : {view(shape, w16), view(shape, w32)}) {
      for (const MlaPath path : {MlaPath::absorbed, MlaPath::expanded, MlaPath::automatic}) {
        for_each_setting(
            Precision::f32,
            [&](Context& ctx) { return attend(ctx, s, w, path, 16, DType::F32, 0, s.rows); },
            [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, kLimit)); });
      }
    }
  }
}

TEST_P(Mla, Bf16CacheAndBf16ModeAgreeWithReferenceOfTheSameRounding) {
  const auto [context, rows] = GetParam();
  for (const MlaShape& shape : {kSmall, kTiles}) {
    Sequence s(3, shape, context, rows);
    round_all(s.latent);  // as a BF16 cache holds it
    const auto w32 = weights(shape);
    const auto w16 = narrow(w32);
    const auto want = expected(s, w32);
    for (const MlaPath path : {MlaPath::absorbed, MlaPath::expanded}) {
      for_each_setting(
          Precision::f32,
          [&](Context& ctx) {
            return attend(ctx, s, view(shape, w16), path, 64, DType::BF16, 0, s.rows);
          },
          [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, kLimit)); });
      for (const MatrixView& w : {view(shape, w16), view(shape, w32)}) {
        for (const DType type : {DType::BF16, DType::F32}) {
          for_each_setting(
              Precision::bf16,
              [&](Context& ctx) { return attend(ctx, s, w, path, 64, type, 0, s.rows); },
              [&](const std::vector<float>& y) { EXPECT_LT(distance(y, want), 0.01); });
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, Mla,
                         testing::Values(Length{1, 1}, Length{5, 5}, Length{64, 1}, Length{65, 2},
                                         Length{100, 9}, Length{130, 130}, Length{515, 3},
                                         Length{1100, 1}));

TEST(MlaPages, PageSizeKeepsTheResult) {
  const Sequence s(7, kSmall, 150, 20);
  const auto w = weights(kSmall);
  const auto want = expected(s, w);
  for_each_isa([&] {
    Runner run(2);
    for (const MlaPath path : {MlaPath::absorbed, MlaPath::expanded}) {
      for (const std::size_t page : {1u, 7u, 16u, 64u, 100u, 256u}) {
        EXPECT_TRUE(
            close(attend(run, s, view(kSmall, w), path, page, DType::F32, 0, 20), want, kLimit))
            << page;
      }
    }
  });
}

// Rows computed one at a time, and rows with more rows behind them, give what the whole gives.
TEST(MlaRows, LaterRowsDoNotChangeEarlierOnes) {
  const Sequence s(9, kOdd, 140, 70);
  const auto w = weights(kOdd);
  const std::size_t n = kOdd.heads * kOdd.value;
  for_each_isa([&] {
    Runner run(2);
    for (const MlaPath path : {MlaPath::absorbed, MlaPath::expanded}) {
      const auto whole = attend(run, s, view(kOdd, w), path, 16, DType::F32, 0, 70);
      for (const std::size_t end : {1u, 2u, 31u, 33u, 69u}) {
        const auto part = attend(run, s, view(kOdd, w), path, 16, DType::F32, 0, end);
        EXPECT_TRUE(same_bits(part, {whole.data(), end * n})) << end;
        const auto last = attend(run, s, view(kOdd, w), path, 16, DType::F32, end - 1, end);
        EXPECT_TRUE(close(last, std::span<const float>(whole).subspan((end - 1) * n, n), kLimit))
            << end;
      }
    }
  });
}

// The same by the matrix unit, where there is one, in the number mode that uses it.
TEST(MlaRows, LaterRowsDoNotChangeEarlierOnesInBf16) {
  const Sequence s(10, kTiles, 600, 300);
  const auto w = narrow(weights(kTiles));
  const std::size_t n = kTiles.heads * kTiles.value;
  for_each_isa([&] {
    Runner run(2, Precision::bf16);
    const auto whole = attend(run, s, view(kTiles, w), MlaPath::expanded, 64, DType::BF16, 0, 300);
    for (const std::size_t end : {1u, 2u, 17u, 63u, 65u, 213u, 299u}) {
      const auto part = attend(run, s, view(kTiles, w), MlaPath::expanded, 64, DType::BF16, 0, end);
      EXPECT_TRUE(same_bits(part, {whole.data(), end * n})) << end;
      const auto last =
          attend(run, s, view(kTiles, w), MlaPath::expanded, 64, DType::BF16, end - 1, end);
      EXPECT_TRUE(same_bits(last, std::span<const float>(whole).subspan((end - 1) * n, n))) << end;
    }
  });
}

// A long context of one row is cut into ranges; every range boundary is crossed here.
TEST(MlaRows, LongContextInRanges) {
  const MlaShape shape{2, 8, 4, 8, 16};
  const auto w = weights(shape);
  for (const std::size_t context : {511u, 512u, 513u, 1024u, 2049u, 33000u}) {
    const Sequence s(11, shape, context, 1);
    const auto want = expected(s, w);
    for_each_setting(
        Precision::f32,
        [&](Context& ctx) {
          return attend(ctx, s, view(shape, w), MlaPath::automatic, 64, DType::F32, 0, 1);
        },
        [&](const std::vector<float>& y) { EXPECT_TRUE(close(y, want, kLimit)) << context; });
  }
}

TEST(MlaRows, LargeScoresDoNotOverflow) {
  Sequence s(13, kSmall, 90, 4);
  for (float& x : s.q) x *= 1000;
  const auto w = weights(kSmall);
  const auto want = expected(s, w);
  for_each_isa([&] {
    Runner run(1);
    for (const MlaPath path : {MlaPath::absorbed, MlaPath::expanded}) {
      // Scores of 1e4 have a rounding error of 1e-3, and so has the result.
      EXPECT_TRUE(close(attend(run, s, view(kSmall, w), path, 16, DType::F32, 0, 4), want, 2e-2));
    }
  });
}

class MlaBatch : public testing::TestWithParam<MlaShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, MlaBatch, testing::Values(kSmall, kTiles),
                         [](const auto& i) { return i.index == 0 ? "vectors" : "tiles"; });

TEST_P(MlaBatch, ARaggedBatchEqualsItsMembers) {
  const MlaShape& shape = GetParam();
  const std::vector<Length> lengths{{40, 1}, {600, 1}, {130, 130}, {7, 7},
                                    {90, 5}, {1, 1},   {300, 90}};
  const std::size_t nq = shape.heads * (shape.nope + shape.rope), ny = shape.heads * shape.value;
  const auto w32 = weights(shape);
  const auto w16 = narrow(w32);
  for (const Precision mode : {Precision::f32, Precision::bf16}) {
    const DType type = mode == Precision::f32 ? DType::F32 : DType::BF16;
    for_each_setting(
        mode,
        [&](Context& ctx) {
          std::vector<float> q, alone;
          std::vector<Segment> segments;
          std::vector<std::unique_ptr<Pages>> pages;
          std::vector<LatentView> caches;
          for (std::size_t i = 0; i < lengths.size(); ++i) {
            const Sequence s(20 + i, shape, lengths[i].context, lengths[i].rows);
            segments.push_back({q.size() / nq, s.rows});
            q.insert(q.end(), s.q.begin(), s.q.end());
            caches.push_back(
                pages.emplace_back(std::make_unique<Pages>(s, 16, type, s.context))->view());
            const auto y =
                attend(ctx, s, view(shape, w16), MlaPath::automatic, 16, type, 0, s.rows);
            alone.insert(alone.end(), y.begin(), y.end());
          }
          std::vector<float> out(alone.size());
          mla_attend(ctx, shape, as_mat(q, nq), view(shape, w16), segments, caches,
                     as_mat(out, ny));
          EXPECT_TRUE(same_bits(out, alone));
          return out;
        },
        [](const std::vector<float>&) {});
  }
}

// No positions: the context before the last row may come in any order.
TEST(MlaContext, IsASet) {
  const Sequence s(31, kSmall, 41, 1);
  Sequence reversed = s;
  const std::size_t width = kSmall.latent + kSmall.rope;
  for (std::size_t t = 0; t < 41; ++t) {
    std::copy_n(s.latent.begin() + t * width, width, reversed.latent.begin() + (40 - t) * width);
  }
  const auto w = weights(kSmall);
  for_each_isa([&] {
    Runner run(1);
    for (const MlaPath path : {MlaPath::absorbed, MlaPath::expanded}) {
      const auto a = attend(run, s, view(kSmall, w), path, 16, DType::F32, 0, 1);
      EXPECT_TRUE(
          close(attend(run, reversed, view(kSmall, w), path, 16, DType::F32, 0, 1), a, kLimit));
    }
  });
}

TEST(MlaShapes, WrongOnesAreRefused) {
  const Sequence s(33, kSmall, 10, 2);
  const auto w = weights(kSmall);
  Runner run(1);
  const Pages pages(s, 16, DType::F32, 10);
  std::vector<float> out(2 * 4 * 32);
  const Segment segment{0, 2}, far{1, 2};
  const Mat<const float> q = as_mat(s.q, 4 * 48);
  LatentView bad = pages.view();
  bad.width = 70;
  EXPECT_THROW(
      mla_attend(run, kSmall, q, view(kSmall, w), {&segment, 1}, {&bad, 1}, as_mat(out, 128)),
      LogicError);
  bad = pages.view();
  bad.tokens = 1;
  EXPECT_THROW(
      mla_attend(run, kSmall, q, view(kSmall, w), {&segment, 1}, {&bad, 1}, as_mat(out, 128)),
      LogicError);
  EXPECT_THROW(
      mla_attend(run, kSmall, q, view(kSmall, w), {&far, 1}, {&pages.view(), 1}, as_mat(out, 128)),
      LogicError);
}

}  // namespace
}  // namespace triax::ops
