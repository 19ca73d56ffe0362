// Sampling by the engine, scoring by prefill.
#include "triax/distill/rollout.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/error.h"
#include "triax/core/rng.h"
#include "triax/engine/engine.h"
#include "triax/experts/mapped_experts.h"

namespace triax::distill {
namespace {

constexpr std::size_t kPassRows = 4096;   // of prompts and samples in one pass of compare()
constexpr std::size_t kLogitRows = 2048;  // of them with logits, for each model
constexpr std::chrono::milliseconds kTick{200};

// What the engine's thread leaves for the waiting one.
struct Answers {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<std::int32_t>> ids;
  std::size_t done = 0;
  std::string error;

  Verdict hear(std::size_t number, const Event& event) {
    const std::lock_guard lock(mutex);
    if (const auto* end = std::get_if<ChoiceEnd>(&event)) {
      ids[number] = end->ids;
      if (end->stop_id) ids[number].push_back(*end->stop_id);
      if (end->reason == FinishReason::failed && error.empty()) error = end->error;
    } else if (std::holds_alternative<RequestEnd>(event)) {
      ++done;
      changed.notify_one();
    }
    return Verdict::go_on;
  }
};

Request request_of(const Prompt& prompt, const RolloutOptions& options, std::uint64_t number,
                   const std::vector<std::int32_t>& stop_ids) {
  Request out;
  out.prompt = prompt.ids;
  out.sampling.temperature = options.temperature;
  out.sampling.seed = splitmix64_at(options.seed, number);
  out.max_tokens = options.max_tokens;
  out.stop_ids = stop_ids;
  out.cache = CacheUse::none;
  out.keep = false;
  return out;
}

// Log probabilities in place of a row of logits.
void log_softmax(float* row, std::size_t n) {
  const float largest = *std::max_element(row, row + n);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(std::exp(row[i] - largest));
  const float shift = largest + static_cast<float>(std::log(sum));
  for (std::size_t i = 0; i < n; ++i) row[i] -= shift;
}

// Logits before each token of the samples, one sample's rows after the other's. [rows, vocab]
void sample_logits(Context& ctx, const OpenModel& model, std::span<const Prompt* const> prompts,
                   std::span<const std::vector<std::int32_t>* const> samples, Mat<float> logits) {
  const std::size_t vocab = model.config.vocab_size;
  std::vector<SequenceState> states;
  states.reserve(samples.size());
  std::vector<BatchEntry> first, second;
  std::vector<std::size_t> begin, second_of;
  std::size_t row = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    states.emplace_back(model.config, ctx.precision);
    const std::vector<std::int32_t>& p = prompts[i]->ids;
    const std::vector<std::int32_t>& s = *samples[i];
    first.push_back({&states[i], Vec<const std::int32_t>(p), LogitRows::last});
    begin.push_back(row);
    row += s.size();
    if (s.size() < 2) continue;
    second.push_back(
        {&states[i], Vec<const std::int32_t>(s.data(), {s.size() - 1}), LogitRows::all});
    second_of.push_back(i);
  }
  std::vector<float> out(std::max(logit_row_count(first), logit_row_count(second)) * vocab);
  forward(ctx, model.model(), first, Mat<float>(out.data(), {first.size(), vocab}));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::copy_n(out.data() + i * vocab, vocab, logits[begin[i]].data);
  }
  if (second.empty()) return;
  forward(ctx, model.model(), second, Mat<float>(out.data(), {logit_row_count(second), vocab}));
  const float* from = out.data();
  for (const std::size_t i : second_of) {
    const std::size_t rows = samples[i]->size() - 1;
    std::copy_n(from, rows * vocab, logits[begin[i] + 1].data);
    from += rows * vocab;
  }
}

}  // namespace

OpenModel::OpenModel(const std::filesystem::path& folder) : config(K3Config::load(folder)) {
  const auto checkpoint = Checkpoint::open(folder);
  weights = K3Weights::load(config, checkpoint);
  experts = open_mapped_experts(config, checkpoint);
}

std::vector<std::vector<std::int32_t>> rollout(ThreadPool& pool, const OpenModel& model,
                                               const Tokenizer& tokenizer,
                                               std::span<const Prompt> prompts,
                                               const RolloutOptions& options,
                                               const RolloutProgress& progress) {
  EngineOptions engine_options;
  engine_options.max_sequences = options.sequences;
  engine_options.max_queue = prompts.size() + 1;
  engine_options.cache_bytes = 0;
  std::vector<std::int32_t> stop_ids = model.config.eos_token_ids;
  for (const std::int32_t id : tokenizer.stop_ids()) {
    if (std::find(stop_ids.begin(), stop_ids.end(), id) == stop_ids.end()) stop_ids.push_back(id);
  }
  Answers answers;
  answers.ids.resize(prompts.size());
  const Model view = model.model();
  Engine engine(view, pool, &tokenizer, engine_options);
  engine.start();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Submitted submitted =
        engine.submit(request_of(prompts[i], options, i, stop_ids),
                      [&answers, i](const Event& event) { return answers.hear(i, event); });
    TRIAX_CHECK(submitted.accepted(), "the queue has room for all prompts");
  }
  for (std::size_t done = 0; done < prompts.size();) {
    {
      std::unique_lock lock(answers.mutex);
      answers.changed.wait_for(lock, kTick, [&] { return answers.done > done; });
      done = answers.done;
    }
    if (progress && !progress(done, prompts.size())) {
      engine.stop();
      return {};
    }
  }
  engine.stop();
  if (!answers.error.empty()) fail("sampling: {}", answers.error);
  return std::move(answers.ids);
}

std::vector<std::vector<TokenScore>> compare(
    Context& ctx, const OpenModel& student, const OpenModel& teacher,
    std::span<const Prompt* const> prompts,
    std::span<const std::vector<std::int32_t>* const> samples) {
  TRIAX_CHECK(prompts.size() == samples.size());
  const std::size_t vocab = student.config.vocab_size;
  TRIAX_CHECK(teacher.config.vocab_size == vocab);
  std::vector<std::vector<TokenScore>> out(samples.size());
  std::vector<float> ours, theirs;
  for (std::size_t begin = 0; begin < samples.size();) {
    std::size_t end = begin, rows = 0, logit_rows = 0;
    do {
      rows += prompts[end]->ids.size() + samples[end]->size();
      logit_rows += samples[end]->size();
      ++end;
    } while (end < samples.size() && rows + prompts[end]->ids.size() <= kPassRows &&
             logit_rows + samples[end]->size() <= kLogitRows);
    ours.resize(logit_rows * vocab);
    theirs.resize(logit_rows * vocab);
    const auto p = prompts.subspan(begin, end - begin);
    const auto s = samples.subspan(begin, end - begin);
    sample_logits(ctx, student, p, s, Mat<float>(ours.data(), {logit_rows, vocab}));
    sample_logits(ctx, teacher, p, s, Mat<float>(theirs.data(), {logit_rows, vocab}));
    std::vector<std::int32_t> ids;
    for (const auto* sample : s) ids.insert(ids.end(), sample->begin(), sample->end());
    std::vector<TokenScore> scores(logit_rows);
    ctx.pool.parallel_for(logit_rows, [&](std::size_t t, std::size_t) {
      float* a = ours.data() + t * vocab;
      float* b = theirs.data() + t * vocab;
      log_softmax(a, vocab);
      log_softmax(b, vocab);
      double sum = 0;
      for (std::size_t v = 0; v < vocab; ++v) {
        sum += static_cast<double>(std::exp(a[v])) * static_cast<double>(a[v] - b[v]);
      }
      const auto id = static_cast<std::size_t>(ids[t]);
      scores[t] = {a[id], b[id], static_cast<float>(sum)};
    });
    auto next = scores.begin();
    for (std::size_t i = begin; i < end; ++i) {
      const auto length = static_cast<std::ptrdiff_t>(samples[i]->size());
      out[i].assign(next, next + length);
      next += length;
    }
    begin = end;
  }
  return out;
}

float reward(const TokenScore& score, double limit) {
  const double ratio = static_cast<double>(score.teacher) - static_cast<double>(score.student);
  return static_cast<float>(std::clamp(ratio, -limit, limit));
}

}  // namespace triax::distill
