// KDA: golden values, the example by hand (acceptance case P04), the chunked form against the
// recurrence on easy and on the hardest inputs, any split, ragged batches.
#include "triax/ops/kda.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/golden.h"
#include "support/settings.h"
#include "triax/ops/kda_chunk.h"
#include "triax/ops/ref/ref.h"

namespace triax::ops {
namespace {

using namespace triax::test;  // NOLINT

constexpr double kLimit = 1e-5;

// T tokens of H heads. q is not yet scaled.
struct Case {
  std::size_t T, H, K, V;
  std::vector<float> q, k, v, g, beta, S;  // S [H, K, V]

  Case(std::uint64_t seed, std::size_t T_, std::size_t H_, std::size_t K_, std::size_t V_)
      : T(T_), H(H_), K(K_), V(V_) {
    q = unit_rows(normal(seed, T * H * K));
    k = unit_rows(normal(seed + 1, T * H * K));
    v = normal(seed + 2, T * H * V);
    g = uniform(seed + 3, T * H * K, 0, 1);
    for (float& x : g) x = -5 * x * x * x;  // many weak decays, some near the floor
    beta = uniform(seed + 4, T * H, 0, 1);
    S = normal(seed + 5, H * K * V, 0.3);
  }
  std::vector<float> unit_rows(std::vector<float> x) const {
    for (std::size_t i = 0; i < x.size(); i += K) {
      double sum = 0;
      for (std::size_t d = 0; d < K; ++d)
        sum += static_cast<double>(x[i + d]) * static_cast<double>(x[i + d]);
      for (std::size_t d = 0; d < K; ++d) x[i + d] = static_cast<float>(x[i + d] / std::sqrt(sum));
    }
    return x;
  }
  KdaInputs inputs(std::size_t begin, std::size_t end) const {
    const auto slice = [&](const std::vector<float>& x, std::size_t n) {
      return View<const float, 3>(x.data() + begin * H * n, {end - begin, H, n});
    };
    return {slice(q, K), slice(k, K), slice(v, V), slice(g, K),
            Mat<const float>(beta.data() + begin * H, {end - begin, H})};
  }
  // o [T, H, V], then the states: rows [begin, end) from the state `from`.
  std::vector<float> run(Context& ctx, KdaPath path, bool bounded, std::size_t begin,
                         std::size_t end, std::vector<float> from) const {
    std::vector<float> o((end - begin) * H * V);
    const Segment segment{0, end - begin};
    float* state = from.data();
    kda(ctx, inputs(begin, end), {&segment, 1}, {&state, 1}, bounded,
        View<float, 3>(o.data(), {end - begin, H, V}), path);
    o.insert(o.end(), from.begin(), from.end());
    return o;
  }
  std::vector<float> run(Context& ctx, KdaPath path, bool bounded = true) const {
    return run(ctx, path, bounded, 0, T, S);
  }
};

// What `run` should give, in double precision; o first, the states behind.
struct Expected {
  std::vector<double> o, S;
  explicit Expected(const Case& c) : o(c.T * c.H * c.V), S(widen(c.S)) {
    for (std::size_t h = 0; h < c.H; ++h) {
      const auto head = [&](const std::vector<float>& x, std::size_t n, double scale) {
        std::vector<double> out;
        for (std::size_t t = 0; t < c.T; ++t) {
          for (std::size_t d = 0; d < n; ++d) {
            out.push_back(scale * static_cast<double>(x[(t * c.H + h) * n + d]));
          }
        }
        return out;
      };
      const auto q = head(c.q, c.K, 1 / std::sqrt(static_cast<double>(c.K))), k = head(c.k, c.K, 1),
                 v = head(c.v, c.V, 1), g = head(c.g, c.K, 1), beta = head(c.beta, 1, 1);
      const Mat<double> state(S.data() + h * c.K * c.V, {c.K, c.V});
      const auto out =
          ref::kda(as_mat(q, c.K), as_mat(k, c.K), as_mat(v, c.V), as_mat(g, c.K), beta, state);
      for (std::size_t t = 0; t < c.T; ++t) {
        std::copy_n(out.begin() + t * c.V, c.V, o.begin() + (t * c.H + h) * c.V);
      }
    }
  }
  void check(const std::vector<float>& got, double limit) const {
    EXPECT_TRUE(close({got.data(), o.size()}, o, limit)) << "o";
    EXPECT_TRUE(close({got.data() + o.size(), S.size()}, S, limit)) << "state";
  }
};

Case golden_case(const Golden& golden, const std::string& name) {
  const auto &q = golden[name + ".q"], &v = golden[name + ".v"];
  Case c(0, q.rows(), 1, q.cols(), v.cols());
  c.q = q.f32;
  for (float& x : c.q) x *= std::sqrt(static_cast<float>(c.K));  // golden q is scaled already
  c.k = golden[name + ".k"].f32;
  c.v = v.f32;
  c.g = golden[name + ".g"].f32;
  c.beta = golden[name + ".beta"].f32;
  c.S = golden[name + ".S0"].f32;
  return c;
}

TEST(Kda, EqualsGolden) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  for (const std::string name : {"kda", "kda_floor"}) {
    const Case c = golden_case(golden, name);
    for (const KdaPath path : {KdaPath::recurrent, KdaPath::chunked, KdaPath::automatic}) {
      for (const bool bounded : {true, false}) {
        for_each_setting(
            Precision::bf16,  // float32 in both modes
            [&](Context& ctx) { return c.run(ctx, path, bounded); },
            [&](const std::vector<float>& got) {
              const std::size_t n = c.T * c.V;
              EXPECT_TRUE(close({got.data(), n}, golden[name + ".o"].f32, kLimit)) << name;
              EXPECT_TRUE(close({got.data() + n, c.S.size()}, golden[name + ".S"].f32, kLimit))
                  << name;
            });
      }
    }
  }
}

TEST(Kda, TermsOfTheFirstChunkEqualGolden) {
  const Golden golden(TRIAX_GOLDEN_DIR "/ops/ops.safetensors");
  const Case c = golden_case(golden, "kda");
  const std::size_t K = c.K, V = c.V, C = kKdaChunk;
  for_each_isa([&] {
    for (const bool bounded : {true, false}) {
      std::vector<float> memory(KdaScratch::size(K, V)), S = c.S, o(C * V);
      KdaScratch s(memory.data(), K, V);
      const KdaRows rows{c.q.data(), c.k.data(), c.v.data(), c.g.data(), c.beta.data(), K, K,
                         V,          K,          1,          C};
      kda_chunk_terms(rows, K, 1 / std::sqrt(static_cast<float>(K)), bounded, s);
      kda_chunk_apply(rows, K, V, s, S.data(), o.data(), V);
      // Only what lies on and below the diagonal tiles is computed.
      std::vector<float> Akk(C * C, 0.0f), Aqk(C * C, 0.0f);
      for (std::size_t t = 0; t < C; ++t) {
        const std::size_t end = (t / kKdaTile + 1) * kKdaTile;
        std::copy_n(s.Akk + t * C, end, Akk.data() + t * C);
        std::copy_n(s.Aqk + t * C, end, Aqk.data() + t * C);
      }
      EXPECT_TRUE(close({s.G, C * K}, golden["kda.chunk0.cumsum_g"].f32, kLimit));
      EXPECT_TRUE(close(Akk, golden["kda.chunk0.Akk"].f32, kLimit));
      EXPECT_TRUE(close(Aqk, golden["kda.chunk0.Aqk"].f32, kLimit));
      EXPECT_TRUE(close({s.U, C * V}, golden["kda.chunk0.U"].f32, kLimit));
    }
  });
}

// P04: one head, two channels. The scale 1/sqrt(2) is the op's own.
TEST(Kda, ThreeStepsByHand) {
  Case c(0, 3, 1, 2, 2);
  c.q = {1, 0, 0.6f, 0.8f, 0, 1};
  c.k = {1, 0, 0.6f, 0.8f, 1, 0};
  c.v = {2, 3, 1, -1, 0, 0};
  c.g = {0, 0, std::log(0.5f), std::log(0.25f), 0, std::log(0.5f)};
  c.beta = {1, 0.5f, 1};
  c.S.assign(4, 0.0f);
  const std::vector<float> o{1.414214f, 2.121320f, 0.565685f, -0.035355f, 0.056569f, -0.268701f};
  const std::vector<float> states[] = {
      {2, 3, 0, 0}, {1.12f, 0.93f, 0.16f, -0.76f}, {0, 0, 0.08f, -0.38f}};
  for_each_isa([&] {
    Runner run(1);
    for (const KdaPath path : {KdaPath::recurrent, KdaPath::chunked}) {
      std::vector<float> S = c.S;
      for (std::size_t t = 0; t < 3; ++t) {
        const auto got = c.run(run, path, true, t, t + 1, S);
        S.assign(got.end() - 4, got.end());
        for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], o[2 * t + i], 1e-6);
        for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(S[i], states[t][i], 1e-6);
      }
      const auto whole = c.run(run, path);
      for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(whole[i], o[i], 1e-6);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(whole[6 + i], states[2][i], 1e-6);
    }
  });
}

TEST(Kda, ChunkedEqualsRecurrenceForEveryLength) {
  const Case all(7, 130, 2, 16, 24);
  for_each_isa([&] {
    Runner run(2);
    for (std::size_t T = 1; T <= all.T; ++T) {
      Case c = all;
      c.T = T;
      const Expected want(c);
      want.check(c.run(run, KdaPath::recurrent), kLimit);
      want.check(c.run(run, KdaPath::chunked, true), kLimit);
      want.check(c.run(run, KdaPath::chunked, false), kLimit);
    }
  });
}

TEST(Kda, ThreadsAgreeAtTheReleasedHeadSize) {
  const Case c(11, 150, 3, 128, 128);
  const Expected want(c);
  for (const bool bounded : {true, false}) {
    for_each_setting(
        Precision::f32, [&](Context& ctx) { return c.run(ctx, KdaPath::automatic, bounded); },
        [&](const std::vector<float>& got) { want.check(got, kLimit); });
  }
}

// Keys that nearly coincide make I + L as badly conditioned as it gets.
TEST(Kda, NearlyParallelKeys) {
  for (const std::size_t T : {64u, 256u}) {
    for (const float decay : {-1e-6f, -1e-3f, -5.0f}) {
      Case c(13, T, 1, 64, 32);
      const auto direction = normal(99, c.K);
      auto keys = normal(100, T * c.K, 0.05);
      for (std::size_t i = 0; i < keys.size(); ++i) keys[i] += direction[i % c.K];
      c.k = c.unit_rows(keys);
      double cosine = 0;
      for (std::size_t d = 0; d < c.K; ++d) {
        cosine += static_cast<double>(c.k[d]) * static_cast<double>(c.k[c.K + d]);
      }
      ASSERT_GT(cosine, 0.99);
      std::fill(c.g.begin(), c.g.end(), decay);
      std::fill(c.beta.begin(), c.beta.end(), 0.999f);
      const Expected want(c);
      for_each_isa([&] {
        Runner run(1);
        want.check(c.run(run, KdaPath::chunked, true), kLimit);
        want.check(c.run(run, KdaPath::chunked, false), kLimit);
        want.check(c.run(run, KdaPath::recurrent), kLimit);
      });
    }
  }
}

TEST(Kda, EveryDecayAtTheFloor) {
  Case c(17, 64, 1, 128, 128);
  std::fill(c.g.begin(), c.g.end(), -5.0f);
  for (std::size_t d = 0; d < c.K; ++d) {  // keys along one another: no cancellation in the garbage
    for (std::size_t t = 0; t < c.T; ++t) c.k[t * c.K + d] = c.q[t * c.K + d] = 0.0883883f;
  }
  const Expected want(c);
  for_each_isa([&] {
    Runner run(1);
    for (const bool bounded : {true, false}) {
      const auto got = c.run(run, KdaPath::chunked, bounded);
      for (float x : got) ASSERT_TRUE(std::isfinite(x));
      want.check(got, kLimit);
    }
  });
}

// After a strong decay the sums of g are in the hundreds; what follows decays weakly. The
// difference of two such sums would be wrong by 1e-5.
TEST(Kda, WeakDecayAfterStrong) {
  Case c(19, 64, 1, 32, 32);
  for (std::size_t i = 0; i < c.g.size(); ++i)
    c.g[i] = i / c.K < 50 ? -5.0f : -1e-4f * static_cast<float>(i % 7);
  const Expected want(c);
  for_each_isa([&] {
    Runner run(1);
    want.check(c.run(run, KdaPath::chunked, true), 2e-6);
    want.check(c.run(run, KdaPath::chunked, false), 2e-6);
  });
}

// The unbounded gate of Kimi-Linear: decays far below -5.
TEST(Kda, UnboundedDecays) {
  Case c(23, 100, 2, 32, 16);
  for (std::size_t i = 0; i < c.g.size(); ++i) c.g[i] *= i % 5 == 0 ? 40.0f : 1.0f;
  const Expected want(c);
  for_each_setting(
      Precision::f32, [&](Context& ctx) { return c.run(ctx, KdaPath::automatic, false); },
      [&](const std::vector<float>& got) { want.check(got, kLimit); });
}

TEST(Kda, AnySplitOfASequence) {
  const Case c(29, 140, 2, 32, 16);
  const Expected want(c);
  for_each_isa([&] {
    Runner run(1);
    for (std::size_t cut = 1; cut < c.T; ++cut) {
      auto got = c.run(run, KdaPath::automatic, true, 0, cut, c.S);
      const std::vector<float> S(got.end() - c.S.size(), got.end());
      got.resize(cut * c.H * c.V);
      const auto rest = c.run(run, KdaPath::automatic, true, cut, c.T, S);
      got.insert(got.end(), rest.begin(), rest.end());
      want.check(got, kLimit);
    }
  });
}

// A later token never reaches back, whatever its values.
TEST(Kda, LaterTokensDoNotChangeEarlierOutputs) {
  const Case c(31, 100, 1, 32, 32);
  Case changed = c;
  for (std::size_t i = 70 * 32; i < 100 * 32; ++i) {
    changed.v[i] = 1e20f;
    changed.q[i] = -changed.q[i];
    changed.k[i] = changed.q[i];
  }
  for_each_isa([&] {
    Runner run(1);
    for (const bool bounded : {true, false}) {
      const auto a = c.run(run, KdaPath::chunked, bounded),
                 b = changed.run(run, KdaPath::chunked, bounded);
      EXPECT_TRUE(same_bits({b.data(), 70 * 32}, {a.data(), 70 * 32}));
    }
  });
}

TEST(Kda, ARaggedBatchEqualsItsMembers) {
  const std::size_t H = 3, K = 32, V = 16, lengths[] = {1, 70, 64, 1, 0, 17};
  std::vector<Case> members;
  Case batch(0, 0, H, K, V);
  for (std::size_t n : lengths) {
    const Case& c = members.emplace_back(40 + n + members.size(), n, H, K, V);
    const auto append = [](std::vector<float>& to, const std::vector<float>& x) {
      to.insert(to.end(), x.begin(), x.end());
    };
    append(batch.q, c.q);
    append(batch.k, c.k);
    append(batch.v, c.v);
    append(batch.g, c.g);
    append(batch.beta, c.beta);
    batch.T += n;
  }
  for_each_setting(
      Precision::f32,
      [&](Context& ctx) {
        std::vector<float> o(batch.T * H * V);
        std::vector<std::vector<float>> states;
        std::vector<Segment> segments;
        std::vector<float*> pointers;
        for (const Case& c : members) {
          segments.push_back(
              {segments.empty() ? 0 : segments.back().begin + segments.back().rows, c.T});
          states.push_back(c.S);
        }
        for (auto& s : states) pointers.push_back(s.data());
        kda(ctx, batch.inputs(0, batch.T), segments, pointers, true,
            View<float, 3>(o.data(), {batch.T, H, V}));
        for (std::size_t i = 0; i < members.size(); ++i) {
          auto alone = members[i].run(ctx, KdaPath::automatic);
          std::vector<float> got(o.begin() + segments[i].begin * H * V,
                                 o.begin() + (segments[i].begin + segments[i].rows) * H * V);
          got.insert(got.end(), states[i].begin(), states[i].end());
          EXPECT_TRUE(same_bits(got, alone)) << "sequence " << i;
        }
        return o;
      },
      [](const std::vector<float>&) {});
}

}  // namespace
}  // namespace triax::ops
