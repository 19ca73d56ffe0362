// A request's answer is the same alone and in any company.
#include <algorithm>
#include <chrono>
#include <thread>

#include "support/compare.h"
#include "triax/engine/engine_testing.h"

namespace triax {
namespace {

using test::greedy;
using test::Heard;
using test::random_ids;
using test::Serving;
using test::small_options;
using Ids = std::vector<std::int32_t>;

// A request of many kinds, the same for a number; some share the start of others.
Request some_request(std::uint64_t number) {
  Rng rng(splitmix64_mix(number));
  Request r;
  const std::size_t shared = rng.next() % 3 == 0 ? 64 + 32 * (rng.next() % 8) : 0;
  r.prompt = random_ids(1000 + number % 3, shared, 320);
  r.prompt = test::joined(r.prompt, random_ids(number, 1 + rng.next() % 220, 320));
  if (shared != 0 && rng.next() % 2 == 0) r.cuts = {shared};
  if (r.cuts.empty() && rng.next() % 2 == 0) r.cuts = {1 + r.prompt.size() / 2};
  if (!r.cuts.empty()) r.history_end = r.cuts.back();
  r.max_tokens = 1 + rng.next() % 24;
  r.sampling.temperature = rng.next() % 2 == 0 ? 0.0f : 1.0f;
  r.sampling.seed = number;
  r.sampling.top_p = rng.next() % 2 == 0 ? 1.0f : 0.9f;
  r.sampling.frequency_penalty = rng.next() % 4 == 0 ? 0.5f : 0.0f;
  r.n = rng.next() % 5 == 0 ? 2 : 1;
  r.priority = static_cast<int>(rng.next() % 5) - 2;
  r.client = std::string(1, static_cast<char>('a' + rng.next() % 3));
  r.logprobs = true;
  r.top_logprobs = 20;
  r.cache = CacheUse::exact;
  return r;
}

// Alone: an engine of its own, nothing in its cache.
Heard alone(std::uint64_t number, Precision precision) {
  Serving serving(small_options(precision), test::tiny(), nullptr, 1);
  return serving.run(some_request(number));
}

void expect_same(const Heard& got, const Heard& want, std::uint64_t number) {
  ASSERT_EQ(got.choices.size(), want.choices.size()) << number;
  for (const auto& [choice, end] : want.choices) {
    EXPECT_EQ(got.ids(choice), want.ids(choice)) << number;
    EXPECT_EQ(got.reason(choice), end.reason) << number;
    EXPECT_TRUE(test::same_bits(got.logprobs(choice), want.logprobs(choice))) << number;
  }
}

class Company : public testing::TestWithParam<Precision> {};

// Random arrivals, cancelled neighbours, a cache that is always short of room.
TEST_P(Company, EveryAnswerEqualsTheLoneOneBitForBit) {
  std::vector<Heard> want;
  for (std::uint64_t i = 0; i < 24; ++i) want.push_back(alone(i, GetParam()));
  for (std::uint64_t round = 0; round < 3; ++round) {
    EngineOptions o = small_options(GetParam());
    o.max_sequences = round == 0 ? 16 : 5;
    const StateCost cost = state_cost(test::tiny().config, GetParam());
    if (round == 2) o.state_bytes = 4 * cost.of(600);
    Serving serving(o);
    Rng rng(round);
    std::vector<std::pair<std::uint64_t, RequestId>> asked;
    std::vector<RequestId> noise;
    for (int i = 0; i < 48; ++i) {
      const std::uint64_t number = rng.next() % 24;
      asked.emplace_back(number, serving.submit(some_request(number)));
      if (rng.next() % 3 == 0) {
        noise.push_back(
            serving.submit(greedy(random_ids(rng.next(), 1 + rng.next() % 500, 320), 50)));
      }
      if (!noise.empty() && rng.next() % 2 == 0) {
        serving->cancel(noise[rng.next() % noise.size()]);
      }
      if (rng.next() % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(rng.next() % 15));
      }
    }
    for (const auto& [number, id] : asked) expect_same(serving.wait(id), want[number], number);
    for (const RequestId id : noise) EXPECT_EQ(serving.wait(id).ends, 1u);
    EXPECT_GT(serving.settled().cached_tokens, 0u);
  }
}

// Memory for a third of what they grow to: states are given up and computed again.
TEST_P(Company, ShortMemoryChangesNoAnswer) {
  EngineOptions o = small_options(GetParam());
  const StateCost cost = state_cost(test::tiny().config, GetParam());
  o.state_bytes = cost.of(2600) + 3 * cost.fixed;
  const auto request = [](std::uint64_t seed) {
    Request r = greedy(random_ids(seed, 100, 320), 900);
    r.logprobs = true;
    r.keep = false;
    return r;
  };
  std::vector<Heard> want;
  for (std::uint64_t i = 0; i < 4; ++i) {
    Serving lone(small_options(GetParam()));
    want.push_back(lone.run(request(i)));
  }
  Serving serving(o);
  std::vector<RequestId> ids;
  for (std::uint64_t i = 0; i < 4; ++i) ids.push_back(serving.submit(request(i)));
  for (std::uint64_t i = 0; i < 4; ++i) expect_same(serving.wait(ids[i]), want[i], i);
  EXPECT_GT(serving.settled().replayed_tokens, 0u);
  EXPECT_EQ(serving.settled().sequences_bytes, 0u);
}

// Equal prompts that come together are computed once.
TEST_P(Company, EqualPromptsAreComputedOnce) {
  Serving serving(small_options(GetParam()));
  const Ids prompt = random_ids(4, 500, 320);
  std::vector<RequestId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(serving.submit(greedy(prompt)));
  const Heard first = serving.wait(ids[0]);
  for (int i = 1; i < 4; ++i) {
    const Heard other = serving.wait(ids[static_cast<std::size_t>(i)]);
    EXPECT_EQ(other.ids(), first.ids());
    EXPECT_EQ(other.cached, 500u);
  }
  EXPECT_EQ(serving.settled().forwarded_prompt_tokens, 500u);
}

INSTANTIATE_TEST_SUITE_P(Modes, Company, testing::Values(Precision::f32, Precision::bf16),
                         [](const auto& p) {
                           return std::string(p.param == Precision::f32 ? "f32" : "bf16");
                         });

// While a long prompt is read, a short one is answered before it ends.
TEST(Scheduling, AShortRequestDoesNotWaitForALongPrompt) {
  Serving serving(small_options());
  const RequestId longest = serving.submit(greedy(random_ids(1, 4000, 320), 2));
  std::size_t done = 0;
  while (done == 0) {
    const Event e = serving.next(longest);
    if (const auto* p = std::get_if<PromptProgress>(&e)) done = p->done;
  }
  const Heard small = serving.run(greedy(random_ids(2, 60, 320), 3));
  EXPECT_EQ(small.reason(), FinishReason::length);
  std::size_t left = 0;
  for (;;) {  // progress told since then
    const Event e = serving.next(longest);
    if (std::holds_alternative<RequestEnd>(e)) break;
    left += std::holds_alternative<PromptProgress>(e) ? 1 : 0;
  }
  EXPECT_GT(left, 20u);
}

}  // namespace
}  // namespace triax
