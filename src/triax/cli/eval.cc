// `triax eval`: how well the model predicts a text, and how alike two ways of computing are.
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "triax/cli/commands.h"
#include "triax/cli/format.h"
#include "triax/cli/ids_file.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/load_model.h"
#include "triax/cli/progress.h"
#include "triax/cli/score.h"
#include "triax/cli/settings.h"
#include "triax/sampling/sampler.h"

namespace triax::cli {
namespace {

// One way of computing the same sequence.
struct Way {
  Way(Session& session, const Settings& how, std::size_t rows)
      : settings(how),
        own_pool(how.threads == session.threads ? nullptr
                                                : std::make_unique<ThreadPool>(how.threads)),
        ctx{own_pool ? *own_pool : session.pool, session.arena, how.precision, nullptr},
        state(session.config(), how.precision),
        logits(checked_mul(rows, session.config().vocab_size)) {}

  void feed(const Session& session, std::span<const std::int32_t> ids) {
    use_isa(settings.isa);
    forward_all(ctx, session.model(), state, ids, settings.chunk,
                Mat<float>(logits.data(), {ids.size(), session.config().vocab_size}));
  }
  std::span<const float> row(std::size_t i, std::size_t vocab) const {
    return {logits.data() + i * vocab, vocab};
  }

  Settings settings;
  std::unique_ptr<ThreadPool> own_pool;
  Context ctx;
  SequenceState state;
  std::vector<float> logits;  // [rows of a pass, vocab]
};

struct Scores {
  std::vector<double> losses, other_losses, distances;  // one a predicted token
  std::size_t same_top = 0;
  double seconds = 0;
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Rows [0, n) of this pass predict ids[begin + 1 ...].
void score_rows(Session& s, const Way& way, const Way* other, std::span<const std::int32_t> ids,
                std::size_t begin, std::size_t n, Scores& out) {
  const std::size_t vocab = s.config().vocab_size;
  const std::size_t rows = std::min(n, ids.size() - 1 - begin);
  const std::size_t at = out.losses.size();
  out.losses.resize(at + rows);
  if (other != nullptr) {
    out.other_losses.resize(at + rows);
    out.distances.resize(at + rows);
  }
  std::vector<char> same(rows, 0);
  s.pool.parallel_for(rows, [&](std::size_t i, std::size_t) {
    const std::span<const float> p = way.row(i, vocab);
    out.losses[at + i] = token_loss(p, ids[begin + i + 1]);
    if (other == nullptr) return;
    const std::span<const float> q = other->row(i, vocab);
    out.other_losses[at + i] = token_loss(q, ids[begin + i + 1]);
    out.distances[at + i] = kl_divergence(p, q);
    same[i] = argmax(p) == argmax(q);
  });
  out.same_top += static_cast<std::size_t>(std::count(same.begin(), same.end(), 1));
}

Scores score(Session& s, std::span<const std::int32_t> ids, const Settings& settings,
             const std::optional<Settings>& against) {
  const std::size_t rows = std::min(settings.chunk, ids.size());
  Way way(s, settings, rows);
  std::optional<Way> other;
  if (against) other.emplace(s, *against, rows);
  Scores out;
  Progress progress("evaluating", Unit::tokens, ids.size());
  for (std::size_t begin = 0; begin + 1 < ids.size(); begin += rows) {
    const std::size_t n = std::min(rows, ids.size() - begin);
    way.feed(s, ids.subspan(begin, n));
    if (other) other->feed(s, ids.subspan(begin, n));
    score_rows(s, way, other ? &*other : nullptr, ids, begin, n, out);
    progress.update(begin + n);
    if (interrupted()) throw Interrupted();
  }
  out.seconds = progress.seconds();
  use_isa(settings.isa);
  return out;
}

struct Text {
  std::vector<std::int32_t> ids;
  std::optional<std::size_t> bytes;  // of the predicted tokens; none without a tokenizer
};

Text read_text(const EvalCommand& c, const LoadedModel& m) {
  Text out;
  if (c.ids) {
    out.ids = read_ids(c.file);
    check_ids(out.ids, m.config.vocab_size, input_name(c.file));
  } else {
    const Tokenizer& tokenizer = m.required_tokenizer("give a file of ids with --ids");
    out.ids = tokenizer.encode(read_input(c.file));
  }
  if (out.ids.size() < 2) {
    wrong_use("eval: {} has {} tokens; two or more are needed to predict one", input_name(c.file),
              out.ids.size());
  }
  if (m.tokenizer) {
    out.bytes = 0;
    for (std::size_t i = 1; i < out.ids.size(); ++i) {
      if (out.ids[i] >= m.tokenizer->vocab_size()) {
        out.bytes.reset();
        break;
      }
      *out.bytes += m.tokenizer->token_bytes(out.ids[i]).size();
    }
  }
  return out;
}

std::optional<double> bits_per_byte(const Text& text, const Scores& scores) {
  if (!text.bytes || *text.bytes == 0) return std::nullopt;
  return mean(scores.losses) * static_cast<double>(scores.losses.size()) /
         (std::log(2.0) * static_cast<double>(*text.bytes));
}

void print_json(const EvalCommand& c, const Text& text, const Settings& settings,
                const std::optional<Settings>& against, const Scores& scores) {
  const double loss = mean(scores.losses);
  const auto bits = bits_per_byte(text, scores);
  nlohmann::ordered_json json;
  json["file"] = c.file;
  json["tokens"] = text.ids.size();
  json["predicted_tokens"] = scores.losses.size();
  json["predicted_bytes"] = text.bytes ? nlohmann::ordered_json(*text.bytes) : nullptr;
  json["loss"] = loss;
  json["perplexity"] = std::exp(loss);
  json["bits_per_byte"] = bits ? nlohmann::ordered_json(*bits) : nullptr;
  json["seconds"] = scores.seconds;
  json["tokens_per_second"] = static_cast<double>(text.ids.size()) / scores.seconds;
  json["settings"] = to_string(settings);
  if (against) {
    json["against"] = {{"settings", to_string(*against)},
                       {"loss", mean(scores.other_losses)},
                       {"mean_kl", mean(scores.distances)},
                       {"p99_kl", quantile(scores.distances, 0.99)},
                       {"top1_agreement", static_cast<double>(scores.same_top) /
                                              static_cast<double>(scores.losses.size())}};
  }
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Text& text, const Settings& settings, const std::optional<Settings>& against,
                const Scores& scores) {
  const double loss = mean(scores.losses);
  fmt::print("tokens         {} ({} predicted)\n", grouped(text.ids.size()),
             grouped(scores.losses.size()));
  fmt::print("loss           {:.6f} nats a token\n", loss);
  fmt::print("perplexity     {:.4f}\n", std::exp(loss));
  if (const auto bits = bits_per_byte(text, scores)) fmt::print("bits per byte  {:.6f}\n", *bits);
  fmt::print("speed          {} tokens/s\n",
             human_rate(static_cast<double>(text.ids.size()) / scores.seconds));
  if (!against) return;
  fmt::print("\n{}  against  {}\n", to_string(settings), to_string(*against));
  fmt::print("loss there     {:.6f} nats a token\n", mean(scores.other_losses));
  fmt::print("KL             mean {:.3e}, 99th percentile {:.3e} nats\n", mean(scores.distances),
             quantile(scores.distances, 0.99));
  fmt::print("same top token {:.2f} %\n", 100.0 * static_cast<double>(scores.same_top) /
                                              static_cast<double>(scores.losses.size()));
}

}  // namespace

int execute(const EvalCommand& c) {
  Settings settings{c.precision, kernels().isa, c.chunk, c.threads};
  if (settings.threads == 0) settings.threads = ThreadPool::available_cores();
  std::optional<Settings> against;
  if (!c.against.empty()) against = parse_settings(c.against, settings);
  Session session(c, c.precision);
  const Text text = read_text(c, *session.loaded);
  const InterruptGuard guard;
  const Scores scores = score(session, text.ids, settings, against);
  if (c.json) {
    print_json(c, text, settings, against, scores);
  } else {
    print_text(text, settings, against, scores);
  }
  return 0;
}

}  // namespace triax::cli
