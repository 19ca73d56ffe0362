// What the engine remembers between requests, and that it changes no answer.
#include <fstream>

#include "support/compare.h"
#include "support/temp_folder.h"
#include "triax/engine/cuts.h"
#include "triax/engine/engine_testing.h"
#include "triax/engine/prefix_index.h"
#include "triax/engine/snapshot_file.h"
#include "triax/sampling/logprobs.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::greedy;
using test::Heard;
using test::joined;
using test::random_ids;
using test::Runner;
using test::same_bits;
using test::Serving;
using test::small_options;
using test::tiny;
using Ids = std::vector<std::int32_t>;

Request asking(const Ids& prompt, std::vector<std::size_t> cuts = {}, std::size_t max_tokens = 12) {
  Request r = greedy(prompt, max_tokens);
  r.cuts = std::move(cuts);
  if (!r.cuts.empty()) r.history_end = r.cuts.back();
  r.logprobs = true;
  r.top_logprobs = 20;
  return r;
}

// The same tokens through the model without an engine or a cache.
struct Straight {
  explicit Straight(Precision precision) : runner(precision, 1), state(tiny().config, precision) {}
  // Prompt pieces from where the state is, then the answer token by token; the logits as Heard has
  // them.
  std::vector<float> turn(const Request& r, const Ids& answer) {
    const CutPlan plan(r.prompt.size(), r.cuts, 64);
    std::vector<float> last;
    while (state.tokens() < r.prompt.size()) {
      const std::size_t from = state.tokens(), n = plan.next(from) - from;
      last = runner.run(tiny(), state, std::span(r.prompt).subspan(from, n), {n});
    }
    std::vector<float> out;
    for (std::size_t i = 0; i < answer.size(); ++i) {
      const auto row = std::span<const float>(last).last(320);
      out.push_back(logprob_of(row, answer[i]));
      for (const TokenLogprob& t : top_logprobs(row, 20)) out.push_back(t.logprob);
      if (i + 1 < answer.size())
        last = runner.run(tiny(), state, std::span(answer).subspan(i, 1), {1});
    }
    return out;
  }
  Runner runner;
  SequenceState state;
};

class Cached : public testing::TestWithParam<Precision> {};

TEST_P(Cached, TheSamePromptAgain) {
  Serving serving(small_options(GetParam()));
  for (const std::size_t n : {20u, 64u, 150u}) {
    const Ids prompt = random_ids(n, n, 320);
    const Heard first = serving.run(asking(prompt)), second = serving.run(asking(prompt));
    EXPECT_EQ(first.cached, 0u);
    EXPECT_EQ(second.cached, n);
    EXPECT_EQ(second.end.usage.cached_tokens, n);
    EXPECT_EQ(second.ids(), first.ids());
    EXPECT_TRUE(same_bits(second.logprobs(), first.logprobs()));
  }
}

// Twenty turns with tool calls: all but a few tokens of the history come from the cache; the logits
// are those of a sequence that was never interrupted, and close to those of a cold start.
TEST_P(Cached, AConversationOfTwentyTurns) {
  Serving serving(small_options(GetParam()));
  Straight straight(GetParam());
  Ids prompt = random_ids(1, 180, 320);  // tools and system
  std::vector<std::size_t> cuts{180};
  const Ids opener = random_ids(2, 5, 320);
  Ids finished;
  std::size_t reusable = 0, cached = 0, forwarded = 0, total = 0;
  for (std::uint64_t turn = 0; turn < 20; ++turn) {
    prompt =
        joined(prompt, random_ids(100 + turn, 20 + turn % 3 * 60, 320));  // user, or a tool result
    cuts.push_back(prompt.size());
    const Request r = asking(joined(prompt, opener), cuts, 10 + turn % 7);
    Request copy = asking(r.prompt, cuts, r.max_tokens);
    const Heard got = serving.run(std::move(copy));
    reusable += std::min(common_tokens(finished, r.prompt), r.history_end);
    cached += got.cached;
    total += r.prompt.size();
    forwarded += r.prompt.size() - got.cached;
    EXPECT_TRUE(same_bits(got.logprobs(), straight.turn(r, got.ids()))) << turn;

    if (turn % 6 == 1) {
      Straight cold(GetParam());
      const auto want = cold.turn(r, got.ids());
      if (GetParam() == Precision::f32) {
        EXPECT_TRUE(test::close(got.logprobs(), want, 1e-5)) << turn;
      }
    }
    finished = joined(r.prompt, got.ids());
    prompt = joined(finished, {300, 301});  // the turn's end
  }
  EXPECT_GE(static_cast<double>(cached), 0.98 * static_cast<double>(reusable));
  EXPECT_EQ(serving.settled().forwarded_prompt_tokens, forwarded);
  EXPECT_EQ(serving.settled().prompt_tokens, total);
  EXPECT_EQ(serving.settled().cached_tokens, cached);
}

// What a client does to a history, and what is still found.
TEST_P(Cached, HistoriesThatWereChanged) {
  EngineOptions o = small_options(GetParam());
  o.cache_interval = 4096;  // none along the way
  Serving serving(o);
  const Ids system = random_ids(1, 200, 320), user = random_ids(2, 90, 320),
            next = random_ids(3, 40, 320);
  const Ids opener = random_ids(4, 6, 320);
  const Ids history = joined(system, user);
  const Heard first = serving.run(asking(joined(history, opener), {200, 290}));
  // The reasoning was dropped: the prompts part where the answer begins.
  const Ids stripped = joined(joined(history, opener), joined({5, 6, 7}, next));
  EXPECT_EQ(serving.run(asking(joined(stripped, opener), {200, 290, stripped.size()})).cached,
            290u);
  // Another user message under the same system prompt: the second sight of it makes a state, the
  // third uses it.
  std::size_t cached = 0;
  for (std::uint64_t seed = 10; seed < 12; ++seed) {
    const Ids other = joined(system, random_ids(seed, 80, 320));
    cached = serving.run(asking(joined(other, opener), {200, 280})).cached;
  }
  EXPECT_EQ(cached, 200u);
  // One token changed 20 before the end of the history.
  Ids edited = joined(history, opener);
  edited[270] ^= 1;
  EXPECT_EQ(serving.run(asking(edited, {200, 290})).cached, 200u);
  // A tool choice behind the history: the history itself is there.
  EXPECT_EQ(serving.run(asking(joined(joined(history, {9, 9, 9}), opener), {200, 290})).cached,
            290u);
}

TEST_P(Cached, WhichStatesARequestTakes) {
  const Ids prompt = random_ids(1, 150, 320);
  const auto cached = [&](CacheUse use, bool with_answer) {
    Serving serving(small_options(GetParam()));
    const Heard first = serving.run(asking(prompt));
    const Ids longer =
        joined(with_answer ? joined(prompt, first.ids()) : prompt, random_ids(2, 60, 320));
    Request r = asking(longer);
    r.cache = use;
    const Heard got = serving.run(std::move(r));
    Serving fresh(small_options(GetParam()));
    if (use == CacheUse::exact || use == CacheUse::none) {
      EXPECT_TRUE(same_bits(got.logprobs(), fresh.run(asking(longer)).logprobs()));
    }
    return got.cached;
  };
  EXPECT_EQ(cached(CacheUse::none, true), 0u);
  EXPECT_EQ(cached(CacheUse::turns, true), 161u);  // the answer's last token was never fed
  EXPECT_EQ(cached(CacheUse::any, true), 161u);
  EXPECT_EQ(cached(CacheUse::any, false), 150u);
  EXPECT_EQ(cached(CacheUse::exact, true), 0u);  // states along a prompt lie further apart
  EXPECT_EQ(cached(CacheUse::turns, false), 0u);
}

TEST_P(Cached, StatesAlongALongPrompt) {
  EngineOptions o = small_options(GetParam());
  o.cache_interval = 256;
  Serving serving(o);
  const Ids prompt = random_ids(1, 1000, 320);
  serving.run(asking(prompt, {}, 1));
  Ids edited = prompt;
  edited[900] ^= 1;
  EXPECT_EQ(serving.run(asking(edited, {}, 1)).cached, 768u);
}

TEST_P(Cached, APromptThatWasGivenUpIsGoneOnFrom) {
  Serving serving(small_options(GetParam()));
  const Ids prompt = random_ids(1, 3000, 320);
  const RequestId id = serving.submit(asking(prompt, {}, 1));
  std::size_t done = 0;
  while (done < 640) {
    const Event e = serving.next(id);
    if (const auto* p = std::get_if<PromptProgress>(&e)) done = p->done;
  }
  serving->cancel(id);
  EXPECT_EQ(serving.wait(id).reason(), FinishReason::cancelled);
  const Heard again = serving.run(asking(prompt, {}, 5));
  EXPECT_GE(again.cached, done);
  Serving fresh(small_options(GetParam()));
  EXPECT_TRUE(same_bits(again.logprobs(), fresh.run(asking(prompt, {}, 5)).logprobs()));
}

TEST_P(Cached, ABudgetIsKeptWhateverIsAsked) {
  EngineOptions o = small_options(GetParam());
  const StateCost cost = state_cost(tiny().config, GetParam());
  o.cache_bytes = 3 * cost.of(200);
  o.state_bytes = 5 * cost.of(600);
  Serving serving(o);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    serving.run(asking(random_ids(seed % 7, 100 + 13 * seed, 320)));
    const EngineStats stats = serving.settled();
    EXPECT_LE(stats.cache_bytes, o.cache_bytes);
    EXPECT_LE(stats.cache_bytes + stats.sequences_bytes, o.state_bytes);
  }
  EXPECT_GT(serving.settled().cache_evictions, 0u);
  o.cache_bytes = 0;
  Serving none(o);
  none.run(asking(random_ids(1, 100, 320)));
  EXPECT_EQ(none.run(asking(random_ids(1, 100, 320))).cached, 0u);
  EXPECT_EQ(none.settled().cache_entries, 0u);
}

TEST_P(Cached, KeepsNothingOfARequestThatAsksForIt) {
  Serving serving(small_options(GetParam()));
  Request r = asking(random_ids(1, 150, 320));
  r.keep = false;
  serving.run(std::move(r));
  EXPECT_EQ(serving.settled().cache_entries, 0u);
}

INSTANTIATE_TEST_SUITE_P(Modes, Cached, testing::Values(Precision::f32, Precision::bf16),
                         [](const auto& p) {
                           return std::string(p.param == Precision::f32 ? "f32" : "bf16");
                         });

class OnDisk : public testing::Test {
 protected:
  EngineOptions options(const std::string& identity = "weights-1") {
    EngineOptions o = small_options();
    o.cache_folder = folder.path();
    o.model_identity = identity;
    return o;
  }
  test::TempFolder folder;
  const Ids prompt = random_ids(1, 150, 320);
};

TEST_F(OnDisk, AConversationGoesOnAfterARestart) {
  Heard first;
  {
    Serving serving(options());
    first = serving.run(asking(prompt));
  }
  const Ids longer = joined(joined(prompt, first.ids()), random_ids(2, 30, 320));
  Heard want;
  {
    Serving memory(small_options());
    memory.run(asking(prompt));
    want = memory.run(asking(longer));
  }
  Serving serving(options());
  const Heard got = serving.run(asking(longer));
  EXPECT_EQ(got.cached, 161u);
  EXPECT_TRUE(same_bits(got.logprobs(), want.logprobs()));
  EXPECT_EQ(serving.settled().disk_reads, 1u);
}

TEST_F(OnDisk, TurnsAreRememberedAfterARestart) {
  {
    Serving serving(options());
    serving->turns().remember("hello", prompt, Ids{1, 2});
  }
  {
    Serving serving(options());
    EXPECT_EQ(serving->turns().find("hello", prompt), (Ids{1, 2}));
  }
  Serving other(options("weights-2"));
  EXPECT_FALSE(other->turns().find("hello", prompt));
}

TEST_F(OnDisk, AnotherModelsStatesAreNotUsed) {
  Heard first;
  {
    Serving serving(options());
    first = serving.run(asking(prompt));
  }
  Serving serving(options("weights-2"));
  EXPECT_EQ(serving.run(asking(joined(prompt, first.ids()))).cached, 0u);
}

TEST_F(OnDisk, ADamagedStateIsAsIfItWereNotThere) {
  Heard first;
  {
    Serving serving(options());
    first = serving.run(asking(prompt));
  }
  for (const auto& f : fs::recursive_directory_iterator(folder.path())) {
    if (f.path().extension() != kSnapshotSuffix) continue;
    std::fstream file(f.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(f.file_size() / 2));
    file.put('x').put('y').put('z');
  }
  std::vector<std::string> told;
  EngineOptions telling = options();
  telling.warn = [&](const std::string& line) { told.push_back(line); };
  Serving serving(telling);
  const Ids longer = joined(joined(prompt, first.ids()), {1, 2, 3});
  const Heard got = serving.run(asking(longer));
  EXPECT_EQ(got.cached, 0u);
  EXPECT_EQ(serving.settled().disk_faults, 1u);
  ASSERT_EQ(told.size(), 1u) << "once";
  EXPECT_EQ(told[0].find('\n'), std::string::npos);
  Serving fresh(small_options());
  EXPECT_TRUE(same_bits(got.logprobs(), fresh.run(asking(longer)).logprobs()));
}

}  // namespace
}  // namespace triax
