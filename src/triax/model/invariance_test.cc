// What must be equal to the last bit: any number of threads, a batch and its members, a fork and
// its parent. And what may never happen: a later token changing an earlier output.
#include <gtest/gtest.h>

#include "support/compare.h"
#include "support/test_model.h"
#include "triax/kernels/kernels.h"

namespace triax {
namespace {

using test::one_by_one;
using test::random_ids;
using test::Runner;
using test::same_bits;
using test::TestModel;

const TestModel& tiny(const std::string& variant) {
  static std::map<std::string, std::unique_ptr<TestModel>> models;
  auto& slot = models[variant];
  if (!slot)
    slot = std::make_unique<TestModel>(std::string(TRIAX_GOLDEN_DIR) + "/text/tiny-" + variant);
  return *slot;
}

class Invariance : public testing::TestWithParam<std::tuple<std::string, Precision, Isa>> {
 protected:
  void SetUp() override {
    before_ = kernels().isa;
    use_isa(std::get<2>(GetParam()));
  }
  void TearDown() override { use_isa(before_); }
  const TestModel& model() const { return tiny(std::get<0>(GetParam())); }
  Precision precision() const { return std::get<1>(GetParam()); }

 private:
  Isa before_ = Isa::scalar;
};

std::span<const float> state_of(const SequenceState& s, std::size_t layer) {
  return s.kda(layer).matrix;
}

// Everything two sequences hold, bit for bit.
void expect_same_state(const TestModel& m, const SequenceState& a, const SequenceState& b) {
  ASSERT_EQ(a.tokens(), b.tokens());
  EXPECT_EQ(a.ids(), b.ids());
  for (std::size_t l = 0; l < m.config.num_hidden_layers; ++l) {
    if (m.config.is_kda(l)) {
      EXPECT_TRUE(same_bits(state_of(a, l), state_of(b, l))) << "layer " << l;
      const auto ta = a.kda(l).tail.span(), tb = b.kda(l).tail.span();
      EXPECT_TRUE(std::equal(ta.begin(), ta.end(), tb.begin(), tb.end())) << "layer " << l;
    } else {
      for (std::size_t t = 0; t < a.tokens(); ++t) {
        const std::byte *ra = a.latent(l).row(t), *rb = b.latent(l).row(t);
        EXPECT_TRUE(std::equal(ra, ra + a.latent(l).row_bytes(), rb))
            << "layer " << l << " token " << t;
      }
    }
  }
}

TEST_P(Invariance, AnyNumberOfThreads) {
  const TestModel& m = model();
  const auto ids = random_ids(1, 97, m.config.vocab_size);
  const std::vector<std::size_t> pieces{70, 20, 1, 1, 5};
  Runner one(precision(), 1);
  SequenceState first(m.config, precision());
  const std::vector<float> want = one.run(m, first, ids, pieces);
  for (const std::size_t threads : {2, 3, 5}) {
    Runner runner(precision(), threads);
    SequenceState state(m.config, precision());
    EXPECT_TRUE(same_bits(runner.run(m, state, ids, pieces), want)) << threads << " threads";
    expect_same_state(m, first, state);
  }
}

// Batches of 1 to 9 sequences, prefill pieces and single rows mixed, each equal to the sequence
// alone.
TEST_P(Invariance, BatchEqualsItsMembers) {
  const TestModel& m = model();
  const std::size_t vocab = m.config.vocab_size;
  for (std::size_t count = 1; count <= 9; ++count) {
    std::vector<std::vector<std::int32_t>> ids;
    std::vector<std::vector<std::size_t>> pieces;  // three passes each
    for (std::size_t s = 0; s < count; ++s) {
      const std::size_t a = 1 + (s * 7) % 19 + (s == 3 ? 64 : 0), b = s % 2 == 0 ? 1 : 2 + s, c = 1;
      pieces.push_back({a, b, c});
      ids.push_back(random_ids(100 + s, a + b + c, vocab));
    }
    Runner together(precision(), 3), alone(precision(), 2);
    std::vector<SequenceState> states;
    for (std::size_t s = 0; s < count; ++s) states.emplace_back(m.config, precision());
    std::vector<std::vector<float>> got(count);
    std::vector<std::size_t> at(count, 0);
    for (std::size_t pass = 0; pass < 3; ++pass) {
      std::vector<BatchEntry> entries;
      for (std::size_t s = 0; s < count; ++s) {
        const std::span<const std::int32_t> all(ids[s]);
        entries.push_back({&states[s], all.subspan(at[s], pieces[s][pass]), LogitRows::all});
        at[s] += pieces[s][pass];
      }
      std::vector<float> logits(logit_row_count(entries) * vocab);
      forward(together.ctx, m.model(), entries,
              Mat<float>(logits.data(), {logits.size() / vocab, vocab}));
      auto from = logits.begin();
      for (std::size_t s = 0; s < count; ++s) {
        const auto to = from + static_cast<std::ptrdiff_t>(pieces[s][pass] * vocab);
        got[s].insert(got[s].end(), from, to);
        from = to;
      }
    }
    for (std::size_t s = 0; s < count; ++s) {
      SequenceState state(m.config, precision());
      EXPECT_TRUE(same_bits(got[s], alone.run(m, state, ids[s], pieces[s])))
          << s << " of " << count;
      expect_same_state(m, states[s], state);
    }
  }
}

TEST_P(Invariance, ForkGoesOnLikeItsParentAndLeavesItAlone) {
  const TestModel& m = model();
  const auto ids = random_ids(2, 80, m.config.vocab_size);
  const auto other = random_ids(3, 12, m.config.vocab_size);
  const std::span<const std::int32_t> all(ids);
  Runner runner(precision());
  SequenceState parent(m.config, precision()), straight(m.config, precision());
  runner.run(m, parent, all.first(70), {70});
  SequenceState fork = parent.fork();
  runner.run(m, fork, other, {5, 7});
  const std::vector<float> got = runner.run(m, parent, all.subspan(70), {1, 9});
  runner.run(m, straight, all.first(70), {70});
  EXPECT_TRUE(same_bits(got, runner.run(m, straight, all.subspan(70), {1, 9})));
  expect_same_state(m, parent, straight);

  SequenceState twin(m.config, precision());
  runner.run(m, twin, all.first(70), {70});
  runner.run(m, twin, other, {5, 7});
  expect_same_state(m, fork, twin);
}

// Which rows get logits changes nothing in those that do.
TEST_P(Invariance, LogitsOfTheLastRowAlone) {
  const TestModel& m = model();
  const std::size_t vocab = m.config.vocab_size;
  const auto ids = random_ids(4, 33, vocab);
  Runner runner(precision());
  const std::vector<float> all = runner.run(m, ids, {33});
  SequenceState state(m.config, precision());
  const BatchEntry entry{&state, ids, LogitRows::last};
  std::vector<float> last(vocab);
  forward(runner.ctx, m.model(), {&entry, 1}, Mat<float>(last.data(), {1, vocab}));
  EXPECT_TRUE(same_bits(last, std::span<const float>(all).last(vocab)));
}

// Appending tokens changes earlier outputs by no more than the choice of path may (f32 only).
TEST_P(Invariance, LaterTokensDoNotReachBack) {
  if (precision() != Precision::f32) return;
  const TestModel& m = model();
  const std::size_t vocab = m.config.vocab_size;
  const auto ids = random_ids(5, 90, vocab);
  const std::span<const std::int32_t> all(ids);
  Runner runner(precision());
  const std::vector<float> whole = runner.run(m, all, {90});
  for (const std::size_t n : {1, 15, 16, 17, 63, 64, 65, 89}) {
    const std::vector<float> part = runner.run(m, all.first(n), {n});
    EXPECT_TRUE(test::close(part, std::span<const float>(whole).first(n * vocab), 1e-4)) << n;
  }
}

TEST_P(Invariance, StateHasTheSizeOfTheFormula) {
  const K3Config& c = model().config;
  SequenceState state(c, precision());
  const std::size_t element = precision() == Precision::f32 ? 4 : 2;
  const StateSize size = state_size(c, precision());
  std::size_t kda = 0, mla = 0;
  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) (c.is_kda(l) ? kda : mla) += 1;
  EXPECT_EQ(size.kda_matrices, kda * c.kda_num_heads * c.kda_head_dim * c.kda_head_dim * 4);
  EXPECT_EQ(size.conv_tails, kda * 3 * c.kda_num_heads * c.kda_head_dim * 3 * element);
  EXPECT_EQ(size.latent_per_token, mla * (c.kv_lora_rank + c.qk_rope_head_dim) * element);
  EXPECT_EQ(state.bytes(), size.kda_matrices + size.conv_tails);
  Runner runner(precision());
  runner.run(model(), state, random_ids(6, 65, c.vocab_size), {65});
  EXPECT_EQ(state.bytes(),
            size.kda_matrices + size.conv_tails + 2 * kPageTokens * size.latent_per_token);
}

TEST(Forward, RefusesIdsOutsideTheVocabularyAndKeepsTheState) {
  const TestModel& m = tiny("c");
  Runner runner(Precision::f32);
  SequenceState state(m.config, Precision::f32);
  runner.run(m, state, std::vector<std::int32_t>{1, 2, 3}, {3});
  for (const std::int32_t bad : {-1, 131, 1 << 30}) {
    const std::vector<std::int32_t> ids{5, bad};
    const BatchEntry entry{&state, ids, LogitRows::none};
    EXPECT_THROW(forward(runner.ctx, m.model(), {&entry, 1}, {}), Error);
    EXPECT_EQ(state.tokens(), 3u);
  }
  SequenceState fresh(m.config, Precision::f32);
  const std::vector<std::int32_t> ids{1, 2, 3, 4};
  const auto want = runner.run(m, fresh, ids, {3, 1});
  const auto got = runner.run(m, state, std::vector<std::int32_t>{4}, {1});
  EXPECT_TRUE(same_bits(got, std::span<const float>(want).last(131)));
}

INSTANTIATE_TEST_SUITE_P(Text, Invariance,
                         testing::Combine(testing::Values("a", "b", "c"),
                                          testing::Values(Precision::f32, Precision::bf16),
                                          testing::ValuesIn(test::available_isas())),
                         [](const auto& p) {
                           return fmt::format(
                               "tiny_{}_{}_{}", std::get<0>(p.param),
                               std::get<1>(p.param) == Precision::f32 ? "f32" : "bf16",
                               isa_name(std::get<2>(p.param)));
                         });

}  // namespace
}  // namespace triax
