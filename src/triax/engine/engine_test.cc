// What one request gets, and what it may ask.
#include "triax/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <future>

#include "support/compare.h"
#include "support/model_folder.h"
#include "triax/engine/engine_testing.h"
#include "triax/engine/generate.h"

namespace triax {
namespace {

using test::error_of;
using test::greedy;
using test::Heard;
using test::random_ids;
using test::Runner;
using test::Serving;
using test::small_options;
using test::tiny;
using Ids = std::vector<std::int32_t>;

const Ids kPrompt = random_ids(1, 150, 320);

const Tokenizer& k3() {
  static const Tokenizer t =
      Tokenizer::load(std::string(TRIAX_SOURCE_DIR) + "/src/triax/tokenizer/k3");
  return t;
}

TEST(Engine, GreedyIsWhatGenerateGives) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    Serving serving(small_options(precision));
    const Heard got = serving.run(greedy(kPrompt, 20));
    Runner runner(precision);
    SequenceState state(tiny().config, precision);
    GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = 20, .chunk = 64};
    EXPECT_EQ(got.ids(), generate(runner.ctx, tiny().model(), state, kPrompt, options).ids);
    EXPECT_EQ(got.reason(), FinishReason::length);
    EXPECT_EQ(got.choices.at(0).ids, got.ids());
    EXPECT_EQ(got.progress, (std::vector<std::size_t>{64, 128, 150}));
    EXPECT_EQ(got.end.usage.prompt_tokens, 150u);
    EXPECT_EQ(got.end.usage.completion_tokens, 20u);
    EXPECT_EQ(got.end.usage.cached_tokens, 0u);
  }
}

TEST(Engine, ChoicesDrawWithTheirOwnSeeds) {
  Serving serving(small_options());
  Request all = greedy(kPrompt, 15);
  all.sampling = {.temperature = 1, .seed = 5};
  all.n = 4;
  all.cache = CacheUse::none;
  all.keep = false;
  const Heard together = serving.run(std::move(all));
  EXPECT_EQ(together.choices.size(), 4u);
  EXPECT_EQ(together.end.usage.completion_tokens, 60u);
  for (std::size_t i = 0; i < 4; ++i) {
    Request one = greedy(kPrompt, 15);
    one.sampling = {.temperature = 1, .seed = 5 + i};
    EXPECT_EQ(serving.run(std::move(one)).ids(), together.ids(i)) << i;
  }
  EXPECT_NE(together.ids(0), together.ids(1));
}

TEST(Engine, StopIdsCountAndAreNotTold) {
  Serving serving(small_options());
  const Ids free = serving.run(greedy(kPrompt)).ids();
  const std::int32_t stop = free[5];
  const auto first = std::find(free.begin(), free.end(), stop);
  Request r = greedy(kPrompt);
  r.stop_ids = {stop};
  const Heard got = serving.run(std::move(r));
  EXPECT_EQ(got.reason(), FinishReason::stop);
  EXPECT_EQ(got.choices.at(0).stop_id, stop);
  EXPECT_EQ(got.ids(), Ids(free.begin(), first));
  EXPECT_EQ(got.end.usage.completion_tokens, got.ids().size() + 1);
}

TEST(Engine, NoStopIdBeforeTheMinimum) {
  Serving serving(small_options());
  const Ids free = serving.run(greedy(kPrompt, 30)).ids();
  Request r = greedy(kPrompt, 30);
  r.stop_ids = {free[0], free[1], free[2]};
  r.min_tokens = 8;
  const Heard got = serving.run(std::move(r));
  EXPECT_GE(got.ids().size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NE(got.ids()[i], free[0]);
    EXPECT_NE(got.ids()[i], free[2]);
  }
}

TEST(Engine, StopStringsAcrossTokens) {
  Serving serving(small_options(), tiny(), &k3());
  const Ids free = serving.run(greedy(kPrompt, 20)).ids();
  const std::string text = k3().decode_bytes(free);
  const std::size_t fourth = k3().decode_bytes(std::span(free).first(4)).size();
  Request r = greedy(kPrompt, 20);
  r.stop_strings = {"never in there", text.substr(fourth - 1, 3)};
  const Heard got = serving.run(std::move(r));
  EXPECT_EQ(got.reason(), FinishReason::stop);
  EXPECT_EQ(got.choices.at(0).stop_string, 1u);
  std::string told;
  for (const TokenOut& t : got.tokens.at(0)) {
    told += std::string(k3().token_bytes(t.id)).substr(0, t.keep_bytes);
  }
  EXPECT_EQ(told, text.substr(0, text.find(text.substr(fourth - 1, 3))));
  // Held tokens come out when nothing became of them.
  Request none = greedy(kPrompt, 20);
  none.stop_strings = {text.substr(text.size() - 1) + "x"};
  EXPECT_EQ(serving.run(std::move(none)).ids(), free);
}

TEST(Engine, LogprobsAreOfTheModelsOwnDistribution) {
  Serving serving(small_options());
  Request r = greedy(kPrompt, 3);
  r.logprobs = true;
  r.top_logprobs = 4;
  const Heard got = serving.run(std::move(r));
  Runner runner(Precision::f32);
  SequenceState state(tiny().config, Precision::f32);
  const auto logits = runner.run(tiny(), state, kPrompt, {64, 64, 22});
  const auto last = std::span<const float>(logits).last(320);
  const TokenOut& first = got.tokens.at(0).at(0);
  EXPECT_EQ(first.logprob, logprob_of(last, first.id));
  EXPECT_EQ(first.top.size(), 4u);
  EXPECT_EQ(first.top[0].id, first.id);
  EXPECT_EQ(first.top[0].logprob, first.logprob);
}

// Only even ids, and the end after ten of them.
class EvenIds : public TokenConstraint {
 public:
  explicit EvenIds(std::int32_t end) : end_(end) {}
  void fill_mask(std::span<std::uint64_t> bits) override {
    for (auto& word : bits) word = count_ < 10 ? 0x5555555555555555u : 0;
    if (count_ >= 10) bits[static_cast<std::size_t>(end_) / 64] |= std::uint64_t{1} << end_ % 64;
  }
  bool accept(std::int32_t id) override {
    const bool fits = count_ < 10 ? id % 2 == 0 : id == end_;
    count_ += fits ? 1 : 0;
    return fits;
  }
  std::unique_ptr<TokenConstraint> fork() const override {
    return std::make_unique<EvenIds>(*this);
  }

 private:
  std::int32_t end_;
  int count_ = 0;
};

TEST(Engine, AConstraintIsKeptInEveryChoice) {
  Serving serving(small_options());
  Request r = greedy(kPrompt, 100);
  r.sampling = {.temperature = 1, .seed = 3};
  r.n = 3;
  r.constraint = std::make_unique<EvenIds>(317);
  r.stop_ids = {317};
  const Heard got = serving.run(std::move(r));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got.reason(i), FinishReason::stop);
    EXPECT_EQ(got.ids(i).size(), 10u);
    for (const std::int32_t id : got.ids(i)) EXPECT_EQ(id % 2, 0);
  }
  EXPECT_NE(got.ids(0), got.ids(1));
}

TEST(Engine, AConstraintWithNowhereToGoEndsItsRequestOnly) {
  Serving serving(small_options());
  Request r = greedy(kPrompt, 100);
  r.constraint = std::make_unique<EvenIds>(317);
  r.stop_ids = {1};
  r.min_tokens = 50;
  const RequestId other = serving.submit(greedy(kPrompt, 30));
  r.stop_ids = {317};  // banned by the minimum, and all else by the constraint
  const Heard got = serving.run(std::move(r));
  EXPECT_EQ(got.reason(), FinishReason::failed);
  EXPECT_NE(got.choices.at(0).error.find("all are excluded"), std::string::npos);
  EXPECT_EQ(got.ids().size(), 10u);
  EXPECT_EQ(serving.wait(other).ids().size(), 30u);
}

TEST(Engine, BiasAndPenaltiesReachTheSampler) {
  Serving serving(small_options());
  Request r = greedy(kPrompt, 5);
  r.logit_bias = {{77, 100}};
  EXPECT_EQ(serving.run(std::move(r)).ids(), Ids(5, 77));
  Request p = greedy(kPrompt, 60);
  p.logit_bias = {{77, 20}};
  p.sampling.frequency_penalty = 2;
  const Ids ids = serving.run(std::move(p)).ids();
  EXPECT_EQ(ids[0], 77);
  EXPECT_LT(std::count(ids.begin(), ids.end(), 77), 50);
}

TEST(Engine, CancelledInTheQueueInThePromptAndWhileItSpeaks) {
  EngineOptions o = small_options();
  o.max_sequences = 1;
  Serving serving(o);
  const RequestId talking = serving.submit(greedy(kPrompt, 3900));
  while (!std::holds_alternative<TokenOut>(serving.next(talking))) {
  }
  const RequestId queued = serving.submit(greedy(kPrompt, 5));
  serving->cancel(queued);
  const Heard q = serving.wait(queued);
  EXPECT_EQ(q.reason(), FinishReason::cancelled);
  EXPECT_EQ(q.starts, 0u);
  serving->cancel(talking);
  const Heard t = serving.wait(talking);
  EXPECT_EQ(t.reason(), FinishReason::cancelled);
  EXPECT_LT(t.ids().size(), 3900u);
  const RequestId reading = serving.submit(greedy(random_ids(9, 3900, 320), 5));
  while (!std::holds_alternative<PromptProgress>(serving.next(reading))) {
  }
  serving->cancel(reading);
  const Heard r = serving.wait(reading);
  EXPECT_EQ(r.reason(), FinishReason::cancelled);
  EXPECT_TRUE(r.ids().empty());
  EXPECT_EQ(serving.run(greedy(kPrompt, 5)).reason(), FinishReason::length);
  EXPECT_EQ(serving.settled().running, 0u);
  EXPECT_EQ(serving.settled().sequences_bytes, 0u);
}

TEST(Engine, NothingIsToldAfterThePassInWhichARequestWasCancelled) {
  EngineOptions o = small_options();
  Runner unused(Precision::f32, 1);
  ThreadPool pool(1);
  Engine engine(tiny().model(), pool, nullptr, o);
  engine.start();
  std::atomic<bool> cancelled{false};
  std::atomic<int> late{0};
  std::promise<void> ended;
  RequestId id = 0;
  std::promise<RequestId> known;
  auto known_id = known.get_future().share();
  int tokens = 0;
  const Submitted s = engine.submit(greedy(kPrompt, 3000), [&](const Event& e) {
    if (std::holds_alternative<TokenOut>(e)) {
      if (cancelled) ++late;
      if (++tokens == 5) {
        engine.cancel(known_id.get());
        cancelled = true;
      }
    }
    if (std::holds_alternative<RequestEnd>(e)) ended.set_value();
    return Verdict::go_on;
  });
  known.set_value(id = s.id);
  ended.get_future().wait();
  EXPECT_EQ(late, 0);
  EXPECT_EQ(tokens, 5);
}

TEST(Engine, TheSinkCanStopAChoiceOrTheRequest) {
  ThreadPool pool(1);
  Engine engine(tiny().model(), pool, nullptr, small_options());
  engine.start();
  for (const Verdict verdict : {Verdict::stop, Verdict::cancel}) {
    std::promise<Heard> done;
    Heard heard;
    Request r = greedy(kPrompt, 100);
    r.n = 2;
    r.sampling.temperature = 1;
    engine.submit(std::move(r), [&](const Event& e) {
      test::note(heard, e);
      if (std::holds_alternative<RequestEnd>(e)) done.set_value(heard);
      const auto* token = std::get_if<TokenOut>(&e);
      return token != nullptr && token->choice == 1 && heard.tokens[1].size() == 3 ? verdict
                                                                                   : Verdict::go_on;
    });
    const Heard got = done.get_future().get();
    EXPECT_EQ(got.ids(1).size(), 3u);
    EXPECT_EQ(got.reason(1),
              verdict == Verdict::stop ? FinishReason::stop : FinishReason::cancelled);
    EXPECT_EQ(got.reason(0),
              verdict == Verdict::stop ? FinishReason::length : FinishReason::cancelled);
  }
  std::promise<void> ended;
  bool once = false;
  engine.submit(greedy(kPrompt, 100), [&](const Event& e) {
    const bool first = !std::exchange(once, true);
    // The last word: who waits for it takes `once` away.
    if (std::holds_alternative<RequestEnd>(e)) ended.set_value();
    if (!first) return Verdict::go_on;
    throw std::runtime_error("a broken sink");
  });
  ended.get_future().wait();
}

TEST(Engine, DeadlinesEndWhatRunsAndWhatWaits) {
  EngineOptions o = small_options();
  o.max_sequences = 1;
  Serving serving(o);
  Request runs = greedy(kPrompt, 3900);
  runs.deadline = EngineClock::now() + std::chrono::milliseconds(200);
  const RequestId a = serving.submit(std::move(runs));
  Request waits = greedy(kPrompt, 5);
  waits.deadline = EngineClock::now() + std::chrono::milliseconds(50);
  const RequestId b = serving.submit(std::move(waits));
  EXPECT_EQ(serving.wait(b).reason(), FinishReason::expired);
  EXPECT_EQ(serving.wait(a).reason(), FinishReason::expired);
}

TEST(Engine, AFullQueueSaysBusyAndWhenToComeBack) {
  ThreadPool pool(1);
  EngineOptions o = small_options();
  o.max_queue = 2;
  Engine engine(tiny().model(), pool, nullptr, o);  // not started: all wait
  std::vector<std::unique_ptr<EventQueue>> queues;
  for (int i = 0; i < 3; ++i) {
    queues.push_back(std::make_unique<EventQueue>());
    const Submitted s = engine.submit(greedy(kPrompt), queues.back()->sink());
    EXPECT_EQ(s.accepted(), i < 2);
    if (i == 2) {
      EXPECT_GE(s.retry_after_seconds, 1);
    }
  }
  EXPECT_EQ(engine.stats().queued, 2u);
  EXPECT_EQ(engine.stats().refused, 1u);
  engine.stop();
  for (int i = 0; i < 2; ++i) {
    Heard heard;
    while (heard.ends == 0) test::note(heard, queues[static_cast<std::size_t>(i)]->pop());
    EXPECT_EQ(heard.reason(), FinishReason::cancelled);
  }
  EXPECT_FALSE(
      engine.submit(greedy(kPrompt), [](const Event&) { return Verdict::go_on; }).accepted());
}

TEST(Engine, BadRequestsAreNamed) {
  Serving serving(small_options());
  const auto error = [&](auto change) {
    Request r = greedy(kPrompt);
    change(r);
    return error_of(
        [&] { serving->submit(std::move(r), [](const Event&) { return Verdict::go_on; }); });
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(error([](Request& r) { r.prompt.clear(); }), "no tokens");
  has(error([](Request& r) { r.prompt[3] = 320; }), "outside the vocabulary");
  has(error([](Request& r) { r.prompt.resize(5000, 1); }), "at most 4095 can be served");
  has(error([](Request& r) { r.cuts = {5, 5}; }), "ascend");
  has(error([](Request& r) { r.history_end = 7; }), "not among the cuts");
  has(error([](Request& r) { r.n = 0; }), "n is 0");
  has(error([](Request& r) { r.n = 17; }), "expected 1 to 16");
  has(error([](Request& r) { r.max_tokens = 0; }), "max_tokens");
  has(error([](Request& r) { r.top_logprobs = 21; }), "top_logprobs");
  has(error([](Request& r) { r.priority = 9; }), "priority 9");
  has(error([](Request& r) { r.stop_strings = {"a"}; }), "tokenizer");
  has(error([](Request& r) { r.sampling.presence_penalty = 3; }), "presence penalty");
  has(error([](Request& r) { r.logit_bias = {{320, 1}}; }), "logit bias");
}

TEST(Engine, OptionsThatMakeNoSenseAreNamed) {
  ThreadPool pool(1);
  const auto error = [&](auto change) {
    EngineOptions o = small_options();
    change(o);
    return error_of([&] { Engine engine(tiny().model(), pool, nullptr, o); });
  };
  EXPECT_NE(error([](auto& o) { o.chunk = 100; }).find("multiple of 64"), std::string::npos);
  EXPECT_NE(error([](auto& o) { o.prompt_budget = 10; }).find("at least a piece"),
            std::string::npos);
  EXPECT_NE(error([](auto& o) { o.state_bytes = 1000; }).find("raise the budget"),
            std::string::npos);
}

// A row of the embedding that is not a number: who uses the token fails, the others do not notice.
TEST(Engine, NaNEndsTheRequestThatMetIt) {
  test::TempFolder folder;
  test::copy_edited(
      std::string(TRIAX_GOLDEN_DIR) + "/text/tiny-a", folder.path(), [](auto& tensors) {
        for (auto& t : tensors) {
          if (t.info.name.find("embed_tokens") == std::string::npos) continue;
          const std::size_t row = t.data.size() / 320;
          std::fill_n(t.data.begin() + static_cast<std::ptrdiff_t>(7 * row), row, std::byte{0xFF});
        }
      });
  const test::TestModel broken(folder.path());
  Serving serving(small_options(), broken);
  Ids good = kPrompt, bad = kPrompt;
  std::replace(good.begin(), good.end(), 7, 8);
  bad[140] = 7;
  const RequestId a = serving.submit(greedy(good, 30));
  const RequestId b = serving.submit(greedy(bad, 30));
  const Heard failed = serving.wait(b);
  EXPECT_EQ(failed.reason(), FinishReason::failed);
  EXPECT_NE(failed.choices.at(0).error.find("NaN"), std::string::npos);
  const Heard fine = serving.wait(a);
  Serving healthy(small_options());
  EXPECT_EQ(fine.ids(), healthy.run(greedy(good, 30)).ids());
}

TEST(Engine, DrainLetsThemFinishAndStopDoesNot) {
  for (const bool patient : {true, false}) {
    Serving serving(small_options());
    std::vector<RequestId> ids;
    for (std::uint64_t i = 0; i < 6; ++i)
      ids.push_back(serving.submit(greedy(random_ids(i, 100, 320), 200)));
    if (patient) {
      serving->drain(std::chrono::minutes(5));
    } else {
      serving->stop();
    }
    for (const RequestId id : ids) {
      const Heard heard = serving.wait(id);
      EXPECT_EQ(heard.ends, 1u);
      if (patient) {
        EXPECT_EQ(heard.reason(), FinishReason::length);
      }
    }
  }
}

TEST(Engine, SaysHowManyFit) {
  Serving serving(small_options());
  EXPECT_NE(serving->capacity().text().find("users at once"), std::string::npos);
  EXPECT_EQ(serving->longest_sequence(), 4096u);
  const StateCost cost = serving->capacity().cost;
  EngineOptions o = small_options();
  o.state_bytes = cost.of(640);
  Serving narrow(o);
  EXPECT_EQ(narrow->longest_sequence(), 640u);
  const Heard got = narrow.run(greedy(random_ids(1, 600, 320), 1000));
  EXPECT_EQ(got.reason(), FinishReason::length);
  EXPECT_EQ(got.ids().size(), 40u);
}

}  // namespace
}  // namespace triax
