// Gradient of expanded MLA against central differences of the double-precision reference, over
// several documents; document borders; largest logits.
#include "triax/ops/backward/mla.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/gradient.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

struct Case {
  MlaShape s{3, 10, 6, 14, 22};
  std::vector<Segment> documents{{0, 1}, {1, 70}, {71, 5}, {76, 0}};
  std::size_t T = 76, head = 16, both = 24, width = 28;
  std::vector<float> q = normal(1, T* s.heads* head), latent = normal(2, T* width),
                     kv_b = normal(3, s.heads* both* s.latent, 0.3),
                     da = normal(4, T* s.heads* s.value);

  // attended [T, H * value] by the reference
  std::vector<double> attend(const std::vector<double>& Q, const std::vector<double>& C,
                             const std::vector<double>& B) const {
    std::vector<double> out(T * s.heads * s.value);
    for (const Segment& d : documents) {
      for (std::size_t h = 0; h < s.heads; ++h) {
        std::vector<double> own;
        for (std::size_t t = d.begin; t < d.begin + d.rows; ++t) {
          for (std::size_t i = 0; i < head; ++i) own.push_back(Q[(t * s.heads + h) * head + i]);
        }
        if (d.rows == 0) continue;
        const Mat<const double> rows(C.data() + d.begin * width, {d.rows, width});
        const Mat<const double> block(B.data() + h * both * s.latent, {both, s.latent});
        const auto y = ref::mla(as_mat<double>(own, head), rows, block, s.nope);
        for (std::size_t t = 0; t < d.rows; ++t) {
          std::copy_n(y.begin() + t * s.value, s.value,
                      out.begin() + ((d.begin + t) * s.heads + h) * s.value);
        }
      }
    }
    return out;
  }
  // dq, dlatent, dkv_b, largest logits
  template <class F>
  Arrays<F> run(Context& ctx, std::span<const Segment> segments) const {
    const auto Q = cast<F>(q), C = cast<F>(latent), B = cast<F>(kv_b), D = cast<F>(da);
    const auto exact = attend(widen(q), widen(latent), widen(kv_b));
    const std::vector<F> attended(exact.begin(), exact.end());
    std::vector<F> dq(q.size()), dlatent(latent.size()), dkv_b(kv_b.size());
    std::vector<F> top(s.heads, -std::numeric_limits<F>::infinity());
    const std::size_t values = s.heads * s.value;
    mla_backward<F>(ctx, s, as_mat(Q, s.heads * head), as_mat(C, width), as_mat(B, s.latent),
                    segments, as_mat(attended, values), as_mat(D, values),
                    as_mat(dq, s.heads * head), as_mat(dlatent, width), as_mat(dkv_b, s.latent),
                    top);
    return {dq, dlatent, dkv_b, top};
  }
};

TEST(MlaBackward, EqualsCentralDifferences) {
  const Case c;
  const auto got =
      check_both_types([&]<class F>(Context& ctx) { return c.run<F>(ctx, c.documents); });
  auto Q = widen(c.q), C = widen(c.latent), B = widen(c.kv_b);
  const auto da = widen(c.da);
  const auto loss = [&] { return weighted(c.attend(Q, C, B), da); };
  check_gradient("q", Q, got[0], loss);
  check_gradient("latent", C, got[1], loss);
  check_gradient("kv_b", B, got[2], loss);
}

TEST(MlaBackward, ReportsTheLargestScaledLogitOfEachHead) {
  const Case c;
  Runner runner(2);
  const auto got = c.run<double>(runner, c.documents);
  for (std::size_t h = 0; h < c.s.heads; ++h) {
    double largest = -1e30;
    for (const Segment& d : c.documents) {
      for (std::size_t t = d.begin; t < d.begin + d.rows; ++t) {
        for (std::size_t s = d.begin; s <= t; ++s) {
          double score = 0;
          for (std::size_t i = 0; i < c.head; ++i) {
            double key = 0;
            if (i < c.s.nope) {
              for (std::size_t r = 0; r < c.s.latent; ++r) {
                key += double{c.kv_b[(h * c.both + i) * c.s.latent + r]} *
                       double{c.latent[s * c.width + r]};
              }
            } else {
              key = c.latent[s * c.width + c.s.latent + i - c.s.nope];
            }
            score += key * double{c.q[(t * c.s.heads + h) * c.head + i]};
          }
          largest = std::max(largest, score / 4);  // head 16
        }
      }
    }
    EXPECT_NEAR(got[3][h], largest, 1e-12 * std::abs(largest));
  }
}

TEST(MlaBackward, DocumentsAreApart) {
  const Case c;
  Runner runner(2);
  const auto all = c.run<float>(runner, c.documents);
  const auto one = c.run<float>(runner, {&c.documents[2], 1});
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t row = all[i].size() / c.T, at = c.documents[2].begin * row;
    EXPECT_TRUE(same_bits(std::span(all[i]).subspan(at), std::span(one[i]).subspan(at)));
    for (std::size_t j = 0; j < at; ++j) ASSERT_EQ(one[i][j], 0.0f);  // outside the segments
  }
}

}  // namespace
}  // namespace triax::ops
