// Evaluation: passes without gradients over held-out documents.
#include "triax/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "triax/core/rng.h"
#include "triax/train/sampler.h"

namespace triax::train {
namespace {

constexpr std::size_t kPassage = 16;  // tokens that come again
constexpr std::size_t kJudged = 12;   // of them, the last ones
constexpr std::size_t kFirstBucket = 16;
constexpr std::size_t kTrials = 32;  // of a distance, at most

// Sequences packed into passes; `each` is told the losses of every sequence, by its number.
class Passes {
 public:
  using Each = std::function<void(std::size_t sequence, Vec<const float> losses,
                                  Vec<const std::int32_t> targets)>;
  Passes(Context& ctx, const Parameters<float>& weights, std::size_t rows, Each each)
      : ctx_(ctx), weights_(weights), rows_(rows), each_(std::move(each)) {}
  void add(const Piece& piece) {
    if (!batch_.ids.empty() && batch_.ids.size() + piece.rows > rows_) flush();
    batch_.add(piece);
  }
  void flush() {
    if (batch_.ids.empty()) return;
    std::vector<float> losses(batch_.ids.size());
    loss_only<float>(ctx_, weights_, batch_.view(), Vec<float>(losses));
    for (const Segment& s : batch_.documents) {
      each_(next_++, Vec<const float>(losses).slice(s.begin, s.begin + s.rows),
            Vec<const std::int32_t>(batch_.targets).slice(s.begin, s.begin + s.rows));
    }
    batch_ = {};
  }

 private:
  Context& ctx_;
  const Parameters<float>& weights_;
  std::size_t rows_, next_ = 0;
  Each each_;
  PackedBatch batch_;
};

HeldOutLoss held_out_loss(Context& ctx, const Parameters<float>& weights, const DocumentSet& set,
                          const EvaluationPlan& plan) {
  HeldOutLoss out{set.name, 0, 0};
  double sum = 0;
  Passes passes(ctx, weights, plan.pass_rows,
                [&](std::size_t, Vec<const float> losses, Vec<const std::int32_t> targets) {
                  for (std::size_t t = 0; t < losses.size(); ++t) {
                    if (targets[t] == ops::kNoTarget) continue;
                    sum += static_cast<double>(losses[t]);
                    ++out.counted;
                  }
                });
  std::size_t rows = 0;
  for (std::size_t d = 0; d < set.documents() && rows < plan.tokens; ++d) {
    for (std::size_t at = set.begin[d]; at + 1 < set.begin[d + 1] && rows < plan.tokens;) {
      const std::size_t n = std::min(plan.context, set.begin[d + 1] - 1 - at);
      passes.add({set.ids.data() + at, set.learn.data() + at, n, 0});
      at += n;
      rows += n;
    }
  }
  passes.flush();
  out.loss = out.counted == 0 ? 0 : sum / static_cast<double>(out.counted);
  return out;
}

// All held-out ids, sources in turn, documents one after the other: at most `tokens`.
struct Joined {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> learn;
};
Joined join(std::span<const DocumentSet> sets, std::size_t tokens) {
  Joined out;
  for (std::size_t d = 0; out.ids.size() < tokens; ++d) {
    bool any = false;
    for (const DocumentSet& set : sets) {
      if (d >= set.documents()) continue;
      any = true;
      const auto at = static_cast<std::ptrdiff_t>(set.begin[d]);
      const auto end = static_cast<std::ptrdiff_t>(set.begin[d + 1]);
      out.ids.insert(out.ids.end(), set.ids.begin() + at, set.ids.begin() + end);
      out.learn.insert(out.learn.end(), set.learn.begin() + at, set.learn.begin() + end);
    }
    if (!any) break;
  }
  return out;
}

std::vector<Bucket> loss_by_position(Context& ctx, const Parameters<float>& weights,
                                     const Joined& text, const EvaluationPlan& plan) {
  std::vector<Bucket> out;
  for (std::size_t begin = 0, end = kFirstBucket; begin < plan.context; begin = end, end *= 2) {
    out.push_back({begin, std::min(end, plan.context), 0, 0, 0});
  }
  Passes passes(ctx, weights, plan.pass_rows,
                [&](std::size_t, Vec<const float> losses, Vec<const std::int32_t> targets) {
                  std::size_t b = 0;
                  for (std::size_t t = 0; t < losses.size(); ++t) {
                    while (t >= out[b].end) ++b;
                    if (targets[t] == ops::kNoTarget) continue;
                    out[b].value += static_cast<double>(losses[t]);
                    ++out[b].counted;
                  }
                });
  for (std::size_t at = 0; at + plan.context + 1 <= text.ids.size(); at += plan.context) {
    passes.add({text.ids.data() + at, text.learn.data() + at, plan.context, 0});
  }
  passes.flush();
  std::erase_if(out, [](const Bucket& b) { return b.counted == 0; });
  for (Bucket& b : out) b.value /= static_cast<double>(b.counted);
  return out;
}

// Probability of the right token, mean over the judged rows of the passage that begins at `at`.
double recalled(Vec<const float> losses, std::size_t at) {
  double sum = 0;
  // row t predicts token t + 1
  for (std::size_t i = kPassage - kJudged; i < kPassage; ++i) {
    sum += std::exp(-static_cast<double>(losses[at + i - 1]));
  }
  return sum / static_cast<double>(kJudged);
}

Bucket recall_at(Context& ctx, const Parameters<float>& weights, const Joined& text,
                 std::size_t distance, const EvaluationPlan& plan) {
  Bucket out{distance, distance, 0, 0, 0};
  const std::size_t length = distance + kPassage;
  const std::size_t trials = std::clamp<std::size_t>(plan.tokens / 4 / length, 1, kTrials);
  Passes passes(ctx, weights, plan.pass_rows,
                [&](std::size_t, Vec<const float> losses, Vec<const std::int32_t>) {
                  out.reference += recalled(losses, 1);
                  out.value += recalled(losses, distance + 1);
                  ++out.counted;
                });
  Rng rng(plan.seed + distance);
  std::vector<std::vector<std::int32_t>> sequences;
  const std::vector<std::uint8_t> learn(length + 2, 1);
  for (std::size_t n = 0; n < trials; ++n) {
    // one token in front, so that the passage's first token has a row before it
    const std::size_t passage = rng.next() % (text.ids.size() - kPassage);
    const std::size_t filler = rng.next() % (text.ids.size() - distance);
    std::vector<std::int32_t>& s = sequences.emplace_back();
    const auto from = text.ids.begin();
    s.push_back(from[static_cast<std::ptrdiff_t>(filler)]);
    const auto add = [&](std::size_t at, std::size_t count) {
      s.insert(s.end(), from + static_cast<std::ptrdiff_t>(at),
               from + static_cast<std::ptrdiff_t>(at + count));
    };
    add(passage, kPassage);
    add(filler, distance - kPassage);
    add(passage, kPassage);
    passes.add({s.data(), learn.data(), s.size() - 1, 0});
  }
  passes.flush();
  out.value /= static_cast<double>(out.counted);
  out.reference /= static_cast<double>(out.counted);
  return out;
}

// Watches the running sums and works out the mixes' weights from them.
class DepthProbe : public Probe {
 public:
  DepthProbe(const Parameters<float>& weights, Vec<const std::int32_t> ids)
      : weights_(weights), config_(weights.layout().config()), names_(weights.layout().names()) {
    const Mat<const float> table = weights.matrix(names_.embed_tokens);
    Rows first(ids.size() * config_.hidden_size);
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const auto row = table[static_cast<std::size_t>(ids[t])];
      std::copy(row.begin(), row.end(), first.data() + t * config_.hidden_size);
    }
    before_layer(0, first);
  }

  bool wants(std::string_view name) const override {
    return name.ends_with(".after_attn") || name.ends_with(".out");
  }
  void value(std::string_view name, std::span<const std::size_t> shape,
             const float* data) override {
    const Rows rows(data, data + shape[0] * shape[1]);
    if (name.ends_with(".after_attn")) {
      site(fmt::format("layer{}.ffn", layer_), names_.layers[layer_].mlp_res, rows);
    } else {
      before_layer(++layer_, rows);
    }
  }
  void ids(std::string_view, std::span<const std::size_t>, const std::int32_t*) override {}

  std::vector<DepthSite> sites;

 private:
  using Rows = std::vector<float>;  // [T, hidden]

  void before_layer(std::size_t layer, const Rows& sum) {
    if (layer == config_.num_hidden_layers) {
      site("output", names_.output_attn_res, sum);
      return;
    }
    site(fmt::format("layer{}.attention", layer), names_.layers[layer].self_attention_res, sum);
    if (config_.opens_block(layer)) blocks_.push_back(sum);
  }

  void site(std::string name, const DepthMixWeights& mix, const Rows& sum) {
    if (!config_.uses_attn_res() || blocks_.empty()) return;
    const Vec<const float> norm = weights_.vector(mix.norm), proj = weights_.vector(mix.proj);
    const std::size_t d = config_.hidden_size, rows = sum.size() / d;
    std::vector<const Rows*> from;
    for (const Rows& block : blocks_) from.push_back(&block);
    from.push_back(&sum);
    DepthSite out{std::move(name), std::vector<double>(from.size())};
    std::vector<double> p(from.size());
    for (std::size_t t = 0; t < rows; ++t) {
      double most = -1e300, total = 0;
      for (std::size_t i = 0; i < from.size(); ++i) {
        const float* v = from[i]->data() + t * d;
        double dot = 0, squares = 0;
        for (std::size_t j = 0; j < d; ++j) {
          const double x = static_cast<double>(v[j]);
          dot += static_cast<double>(norm[j]) * static_cast<double>(proj[j]) * x;
          squares += x * x;
        }
        p[i] = dot / std::sqrt(squares / static_cast<double>(d) +
                               static_cast<double>(config_.rms_norm_eps));
        most = std::max(most, p[i]);
      }
      for (double& x : p) total += x = std::exp(x - most);
      for (std::size_t i = 0; i < p.size(); ++i) out.weights[i] += p[i] / total;
    }
    for (double& x : out.weights) x /= static_cast<double>(rows);
    sites.push_back(std::move(out));
  }

  const Parameters<float>& weights_;
  const K3Config& config_;
  const K3Weights& names_;
  std::vector<Rows> blocks_;
  std::size_t layer_ = 0;
};

}  // namespace

std::vector<DepthSite> depth_weights(Context& ctx, const Parameters<float>& weights,
                                     const TrainBatch& batch) {
  DepthProbe probe(weights, batch.ids);
  Context watched{ctx.pool, ctx.arena, ctx.precision, &probe};
  loss_only<float>(watched, weights, batch);
  return std::move(probe.sites);
}

EvaluationRecord evaluate(Context& ctx, const Parameters<float>& weights,
                          std::span<const DocumentSet> held_out, const EvaluationPlan& plan) {
  EvaluationRecord out;
  for (const DocumentSet& set : held_out) {
    out.held_out.push_back(held_out_loss(ctx, weights, set, plan));
  }
  const Joined text = join(held_out, plan.tokens + plan.context + 1);
  out.by_position = loss_by_position(ctx, weights, text, plan);
  for (std::size_t distance = 2 * kPassage; distance + kPassage <= plan.context; distance *= 2) {
    if (distance + 1 >= text.ids.size()) break;
    out.by_distance.push_back(recall_at(ctx, weights, text, distance, plan));
  }
  // the longest distance that a sequence of the plan's context has room for
  const std::size_t last = plan.context > 3 * kPassage ? plan.context - kPassage : 0;
  if (last > 0 && last + 1 < text.ids.size() &&
      (out.by_distance.empty() || out.by_distance.back().begin < last)) {
    out.by_distance.push_back(recall_at(ctx, weights, text, last, plan));
  }
  if (text.ids.size() > 1) {
    PackedBatch batch;
    const std::size_t rows = std::min({text.ids.size() - 1, plan.context, std::size_t{512}});
    batch.add({text.ids.data(), text.learn.data(), rows, 0});
    out.depth = depth_weights(ctx, weights, batch.view());
  }
  return out;
}

}  // namespace triax::train
