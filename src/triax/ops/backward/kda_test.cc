// The KDA recurrence in training: the forward pass equals the inference one bit for bit; gradients
// against golden values and central differences; documents are apart.
#include "triax/ops/backward/kda.h"

#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/gradient.h"
#include "triax/ops/kda.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

// T rows of H heads; q not scaled.
template <class F>
struct Case {
  std::size_t T, H, K, V;
  std::vector<F> q, k, v, g, beta;
  std::vector<F> S, d_o, dS;  // start states and gradients of last states, a segment each

  KdaArrays<F> arrays() const {
    const auto view = [&](const std::vector<F>& x, std::size_t n) {
      return View<const F, 3>(x.data(), {T, H, n});
    };
    return {view(q, K), view(k, K), view(v, V), view(g, K), as_mat(beta, H)};
  }
  template <class G>
  Case<G> as() const {
    const auto to = [](const std::vector<F>& x) { return std::vector<G>(x.begin(), x.end()); };
    return {T, H, K, V, to(q), to(k), to(v), to(g), to(beta), to(S), to(d_o), to(dS)};
  }
};

Case<float> random_case(std::size_t T, std::size_t H, std::size_t K, std::size_t V,
                        std::size_t segments) {
  Case<float> c{T,
                H,
                K,
                V,
                normal(1, T * H * K),
                normal(2, T * H * K),
                normal(3, T * H * V),
                uniform(4, T * H * K, 0, 1),
                uniform(5, T * H, 0, 1),
                normal(6, segments * H * K * V, 0.3),
                normal(7, T * H * V),
                normal(8, segments * H * K * V)};
  for (float& x : c.g) x = -5 * x * x * x;  // many weak decays, some near the floor
  for (std::vector<float>* x : {&c.q, &c.k}) {
    for (std::size_t i = 0; i < x->size(); i += K) {
      double sum = 0;
      for (std::size_t d = 0; d < K; ++d) sum += double{(*x)[i + d]} * double{(*x)[i + d]};
      for (std::size_t d = 0; d < K; ++d) (*x)[i + d] /= static_cast<float>(std::sqrt(sum));
    }
  }
  return c;
}

// dq, dk, dv, dg, dbeta, dS0, o
template <class F>
Arrays<F> run(Context& ctx, const Case<F>& c, std::span<const Segment> segments, bool states) {
  const std::size_t n = kda_kept_states(segments), one = c.H * c.K * c.V;
  std::vector<F> kept(n * one), o(c.T * c.H * c.V), ends = c.dS;
  std::vector<F> dq(c.q.size()), dk(c.k.size()), dv(c.v.size()), dg(c.g.size()), db(c.beta.size());
  std::vector<const F*> from;
  std::vector<F*> to;
  for (std::size_t s = 0; states && s < segments.size(); ++s) {
    from.push_back(c.S.data() + s * one);
    to.push_back(ends.data() + s * one);
  }
  const auto view = [&](std::vector<F>& x, std::size_t width) {
    return View<F, 3>(x.data(), {c.T, c.H, width});
  };
  const View<F, 4> keep(kept.data(), {n, c.H, c.K, c.V});
  kda_forward_keep<F>(ctx, c.arrays(), segments, from, view(o, c.V), keep);
  kda_backward<F>(ctx, c.arrays(), segments, keep, View<const F, 3>(c.d_o.data(), {c.T, c.H, c.V}),
                  to,
                  {view(dq, c.K), view(dk, c.K), view(dv, c.V), view(dg, c.K), as_mat(db, c.H)});
  return {dq, dk, dv, dg, db, states ? ends : std::vector<F>{}, o};
}

TEST(KdaBackward, EqualsGolden) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  const auto at = [&](const char* name) { return golden[std::string("kda.") + name].f32; };
  Case<float> c{golden["kda.q"].rows(),
                1,
                32,
                32,
                at("q"),
                at("k"),
                at("v"),
                at("g"),
                at("beta"),
                at("S0"),
                at("do"),
                at("dS")};
  const Segment all{0, c.T};
  const auto got = check_both_types([&]<class F>(Context& ctx) {
    Case<F> own = c.as<F>();
    for (F& x : own.q) x *= std::sqrt(F{32});  // golden q is scaled already
    Arrays<F> out = run<F>(ctx, own, {&all, 1}, true);
    for (F& x : out[0]) x *= std::sqrt(F{32});
    return out;
  });
  const char* names[] = {"dq", "dk", "dv", "dg", "dbeta", "dS0", "o"};
  for (std::size_t i = 0; i < std::size(names); ++i) {
    const std::vector<float> rounded(got[i].begin(), got[i].end());
    EXPECT_TRUE(close(rounded, at(names[i]), 1e-6)) << names[i];
  }
}

TEST(KdaBackward, EqualsCentralDifferences) {
  const std::vector<Segment> documents{{0, 1}, {1, 32}, {33, 70}, {103, 3}};
  const std::size_t K = 12, V = 20, H = 2, T = 106;
  const Case<float> c = random_case(T, H, K, V, documents.size());
  const auto got = check_both_types(
      [&]<class F>(Context& ctx) { return run<F>(ctx, c.as<F>(), documents, true); });
  auto x = c.as<double>();
  const auto loss = [&] {
    long double sum = 0;
    for (std::size_t s = 0; s < documents.size(); ++s) {
      const std::size_t n = documents[s].rows;
      for (std::size_t h = 0; h < H; ++h) {
        const auto head = [&](const std::vector<double>& from, std::size_t width, double scale) {
          std::vector<double> out;
          for (std::size_t t = documents[s].begin; t < documents[s].begin + n; ++t) {
            for (std::size_t d = 0; d < width; ++d) {
              out.push_back(scale * from[(t * H + h) * width + d]);
            }
          }
          return out;
        };
        const auto q = head(x.q, K, 1 / std::sqrt(double{K})), k = head(x.k, K, 1),
                   v = head(x.v, V, 1), g = head(x.g, K, 1), beta = head(x.beta, 1, 1);
        const std::size_t at = (s * H + h) * K * V;
        std::vector<double> S(x.S.begin() + at, x.S.begin() + at + K * V);
        const auto o = ref::kda(as_mat<double>(q, K), as_mat<double>(k, K), as_mat<double>(v, V),
                                as_mat<double>(g, K), beta, as_mat(S, V));
        sum += weighted(o, head(x.d_o, V, 1)) + weighted(S, std::span(x.dS).subspan(at, K * V));
      }
    }
    return sum;
  };
  check_gradient("q", x.q, got[0], loss);
  check_gradient("k", x.k, got[1], loss);
  check_gradient("v", x.v, got[2], loss);
  check_gradient("g", x.g, got[3], loss);
  check_gradient("beta", x.beta, got[4], loss);
  check_gradient("S0", x.S, got[5], loss);
}

TEST(KdaBackward, LongSequencesAndStrongDecayStayWithinFloatLimits) {
  for (const bool floor : {false, true}) {
    Case<float> c = random_case(700, 1, 64, 64, 1);
    if (floor) {
      for (float& g : c.g) g = -4.999f;
    }
    const Segment all{0, c.T};
    check_both_types(
        [&]<class F>(Context& ctx) { return run<F>(ctx, c.as<F>(), {&all, 1}, false); });
  }
}

TEST(KdaBackward, ForwardEqualsInferenceBitForBit) {
  const std::vector<Segment> documents{{0, 5}, {5, 77}};
  const Case<float> c = random_case(82, 3, 32, 32, 2);
  for_each_isa([&] {
    Runner runner(2);
    const Arrays<float> got = run<float>(runner, c, documents, false);
    std::vector<float> S(2 * 3 * 32 * 32), o(c.v.size());
    const std::vector<float*> states{S.data(), S.data() + S.size() / 2};
    const KdaArrays<float> in = c.arrays();
    kda(runner, {in.q, in.k, in.v, in.g, in.beta}, documents, states, true,
        View<float, 3>(o.data(), {c.T, c.H, c.V}), KdaPath::recurrent);
    EXPECT_TRUE(same_bits(got[6], o));
  });
}

TEST(KdaBackward, DocumentsAreApart) {
  const std::vector<Segment> documents{{0, 40}, {40, 41}};
  const Case<float> c = random_case(81, 2, 16, 16, 2);
  Runner runner(2);
  const Arrays<float> both = run<float>(runner, c, documents, false);
  const Arrays<float> second = run<float>(runner, c, {&documents[1], 1}, false);
  for (std::size_t i = 0; i < 5; ++i) {
    const std::size_t row = both[i].size() / c.T;
    EXPECT_TRUE(
        same_bits(std::span(both[i]).subspan(40 * row), std::span(second[i]).subspan(40 * row)));
  }
}

}  // namespace
}  // namespace triax::ops
