#include "triax/cli/eval_score.h"

#include <algorithm>

#include "triax/cli/interrupt.h"
#include "triax/cli/progress.h"
#include "triax/cli/score.h"
#include "triax/core/checked.h"
#include "triax/sampling/sampler.h"

namespace triax::cli {
namespace {

// One way of computing the same sequence.
struct Way {
  // `own`: weights of its own, or none for the session's.
  Way(Session& session, const Settings& how, std::unique_ptr<K3Weights> own)
      : settings(how),
        weights(std::move(own)),
        own_pool(how.threads == session.threads ? nullptr
                                                : std::make_unique<ThreadPool>(how.threads)),
        ctx{own_pool ? *own_pool : session.pool, session.arena, how.precision, nullptr},
        state(session.config(), how.precision) {}

  void feed(const Session& session, std::span<const std::int32_t> ids, Mat<float> logits) {
    use_isa(settings.isa);
    const Model base = session.model();
    const Model model{base.config, weights ? *weights : base.weights, base.experts};
    forward_all(ctx, model, state, ids, settings.chunk, logits);
  }

  Settings settings;
  std::unique_ptr<K3Weights> weights;
  std::unique_ptr<ThreadPool> own_pool;
  Context ctx;
  SequenceState state;
};

// The ways to compare with, and their results so far.
class Others {
 public:
  Others(Session& s, const Settings& against, bool by_family) : s_(s) {
    if (against.int8.any()) make_packed(against.int8);
    add("", against);
    if (!by_family) return;
    for (std::size_t i = 0; i < kComponents; ++i) {
      if (!against.int8.test(i) || placed_.saved_bytes[i] == 0) continue;
      Settings one = against;
      one.int8.reset();
      one.int8.set(i);
      add("trunk=" + trunk_text(one.int8), one);
    }
  }

  std::vector<std::unique_ptr<Way>> ways;
  std::vector<Comparison> results;

 private:
  void make_packed(const Components& int8) {
    TrunkOptions options;
    options.format = TrunkFormat::int8;
    options.resident = false;
    options.components = int8;
    packed_ = s_.loaded->weights;
    Progress progress("making the trunk 8-bit", Unit::bytes);
    placed_ =
        place_trunk(s_.config(), options, s_.pool, packed_,
                    [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
  }

  void add(std::string name, const Settings& how) {
    std::unique_ptr<K3Weights> weights;
    Comparison result;
    result.name = std::move(name);
    result.settings = how;
    if (how.int8.any()) {
      weights = std::make_unique<K3Weights>(s_.loaded->weights);
      take_components(s_.config(), packed_, how.int8, *weights);
      for (std::size_t i = 0; i < kComponents; ++i) {
        if (how.int8.test(i)) result.saved_bytes += placed_.saved_bytes[i];
      }
    }
    ways.push_back(std::make_unique<Way>(s_, how, std::move(weights)));
    results.push_back(std::move(result));
  }

  Session& s_;
  K3Weights packed_;
  TrunkPlaced placed_;
};

// Logits of a pass, and the ids that its rows predict.
struct Pass {
  const float* logits;
  std::span<const std::int32_t> targets;
  std::size_t vocab;

  std::span<const float> row(std::size_t i) const { return {logits + i * vocab, vocab}; }
};

void score_rows(ThreadPool& pool, const Pass& pass, std::vector<double>& losses) {
  const std::size_t at = losses.size();
  losses.resize(at + pass.targets.size());
  pool.parallel_for(pass.targets.size(), [&](std::size_t i, std::size_t) {
    losses[at + i] = token_loss(pass.row(i), pass.targets[i]);
  });
}

void compare_rows(ThreadPool& pool, const Pass& first, const Pass& other, Comparison& out) {
  const std::size_t at = out.distances.size(), rows = first.targets.size();
  out.distances.resize(at + rows);
  std::vector<char> same(rows, 0);
  pool.parallel_for(rows, [&](std::size_t i, std::size_t) {
    out.distances[at + i] = kl_divergence(first.row(i), other.row(i));
    same[i] = argmax(first.row(i)) == argmax(other.row(i));
  });
  out.same_top += static_cast<std::size_t>(std::count(same.begin(), same.end(), 1));
}

}  // namespace

double Comparison::top1_agreement() const {
  return losses.empty() ? 1 : static_cast<double>(same_top) / static_cast<double>(losses.size());
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

Scores score(Session& s, std::span<const std::int32_t> ids, const Settings& settings,
             const std::optional<Settings>& against, bool by_family) {
  const std::size_t rows = std::min(settings.chunk, ids.size()), vocab = s.config().vocab_size;
  Way way(s, settings, nullptr);
  std::optional<Others> others;
  if (against) others.emplace(s, *against, by_family);
  std::vector<float> logits(checked_mul(rows, vocab)), other_logits(others ? logits.size() : 0);
  Scores out;
  Progress progress("evaluating", Unit::tokens, ids.size());
  for (std::size_t begin = 0; begin + 1 < ids.size(); begin += rows) {
    const std::size_t n = std::min(rows, ids.size() - begin);
    const auto targets = ids.subspan(begin + 1, std::min(n, ids.size() - 1 - begin));
    const Pass first{logits.data(), targets, vocab}, other{other_logits.data(), targets, vocab};
    way.feed(s, ids.subspan(begin, n), Mat<float>(logits.data(), {n, vocab}));
    score_rows(s.pool, first, out.losses);
    for (std::size_t i = 0; others && i < others->ways.size(); ++i) {
      others->ways[i]->feed(s, ids.subspan(begin, n), Mat<float>(other_logits.data(), {n, vocab}));
      score_rows(s.pool, other, others->results[i].losses);
      compare_rows(s.pool, first, other, others->results[i]);
      if (interrupted()) throw Interrupted();
    }
    progress.update(begin + n);
    if (interrupted()) throw Interrupted();
  }
  out.seconds = progress.seconds();
  if (others) out.others = std::move(others->results);
  use_isa(settings.isa);
  return out;
}

}  // namespace triax::cli
