// One step of a training.
#include "triax/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "triax/core/clock.h"
#include "triax/core/error.h"
#include "triax/train/init.h"
#include "triax/train/qat.h"
#include "triax/weights/accounting.h"

namespace triax::train {
namespace {

constexpr std::size_t kCountsEvery = 10;  // steps between two full counts of tokens an expert

std::vector<std::size_t> moe_layers_of(const K3Config& c) {
  std::vector<std::size_t> out;
  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) {
    if (c.ffn(l) == Ffn::moe) out.push_back(l);
  }
  return out;
}

bool finite(Mat<const float> x) {
  for (std::size_t t = 0; t < x.shape[0]; ++t) {
    float sum = 0;  // of numbers in [0, 1]
    for (std::size_t i = 0; i < x.shape[1]; ++i) sum += x[t][i];
    if (!std::isfinite(sum)) return false;
  }
  return true;
}

}  // namespace

StepOptions step_options(const TrainConfig& config) {
  StepOptions out;
  if (config.precision == Precision::bf16) out.products = ops::Products::bf16;
  return out;
}

OptimizerSettings optimizer_settings(const TrainConfig& config) {
  OptimizerSettings out = config.optimizer;
  if (config.precision == Precision::bf16) out.muon_products = ops::Products::bf16;
  return out;
}

std::uint64_t active_parameters(const K3Config& config) {
  return account(config).active_without_embedding;
}

Trainer::Trainer(Context& ctx, const TrainConfig& config, const ParameterLayout& layout,
                 std::span<const DocumentSet> sources)
    : ctx_(ctx),
      config_(config),
      layout_(layout),
      sources_(sources),
      masters_(layout),
      gradients_(layout),
      optimizer_(layout, optimizer_settings(config)),
      sampler_(sources, config.seed),
      moe_layers_(moe_layers_of(layout.config())),
      guard_(config.guard, moe_layers_.size()),
      operations_per_token_(6 * static_cast<double>(active_parameters(layout.config()))) {
  const K3Config& c = layout.config();
  for (std::size_t i = 0; i < moe_layers_.size(); ++i) {
    balancers_.emplace_back(c.num_experts, c.num_experts_per_token);
  }
  for (const DocumentSet& s : sources) {
    for (const std::int32_t id : s.ids) {
      if (id >= 0 && static_cast<std::size_t>(id) < c.vocab_size) continue;
      fail("data source {}: token {} is not in the vocabulary of {}", in_quotes(s.name), id,
           c.vocab_size);
    }
  }
  init_parameters(config.seed, masters_);
}

std::span<float> Trainer::bias(std::size_t layer) {
  return masters_.vector(layout_.names().layers[layer].moe.e_score_correction_bias).span();
}

bool Trainer::qat_at(std::uint64_t tokens) const {
  return config_.qat.from < 1 && static_cast<double>(tokens) >=
                                     config_.qat.from * static_cast<double>(config_.total_tokens());
}

const Parameters<float>& Trainer::pass_weights() {
  if (!qat()) return masters_;
  if (!rounded_) rounded_ = std::make_unique<Parameters<float>>(layout_);
  if (!rounded_valid_) {
    exported_values(ctx_, masters_, {config_.qat.trunk, config_.qat.experts}, *rounded_);
    rounded_valid_ = config_.qat.trunk && config_.qat.experts;
  }
  return *rounded_;
}

const Parameters<float>& Trainer::exported_weights() {
  if (!rounded_) rounded_ = std::make_unique<Parameters<float>>(layout_);
  if (!rounded_valid_) exported_values(ctx_, masters_, {}, *rounded_);
  rounded_valid_ = qat() && config_.qat.trunk && config_.qat.experts;
  return *rounded_;
}

StepLoss Trainer::passes(std::span<const PackedBatch> batches, float scale, StepWatch<float>& watch,
                         std::vector<ExpertLoad>& loads) {
  const Parameters<float>& weights = pass_weights();
  std::vector<std::size_t> place(layout_.config().num_hidden_layers);
  for (std::size_t i = 0; i < moe_layers_.size(); ++i) place[moe_layers_[i]] = i;
  watch.routed = [&](std::size_t layer, Mat<const float> scores, Mat<const std::int32_t> ids) {
    if (!finite(scores)) return;  // the guard will leave the step out
    balancers_[place[layer]].count(ctx_, scores);
    loads[place[layer]].count(ids);
  };
  std::fill(gradients_.all().begin(), gradients_.all().end(), 0.0f);
  for (std::size_t i = 0; i < moe_layers_.size(); ++i) {
    balancers_[i].begin_step(bias(moe_layers_[i]));
  }
  StepLoss total;
  for (const PackedBatch& batch : batches) {
    const StepLoss loss = loss_and_gradient<float>(ctx_, weights, batch.view(), scale, gradients_,
                                                   &watch, {}, step_options(config_));
    total.sum += loss.sum;
    total.counted += loss.counted;
  }
  return total;
}

void Trainer::apply(StepRecord& record, const StepWatch<float>& watch,
                    const std::vector<ExpertLoad>& loads) {
  optimizer_.step(ctx_, record.rate, gradients_, masters_);
  if (config_.optimizer.qk_clip_tau > 0) {
    record.heads_clipped = qk_clip(config_.optimizer.qk_clip_tau, watch.max_logits, masters_);
  }
  for (std::size_t i = 0; i < moe_layers_.size(); ++i) {
    const std::span<float> bias_of_layer = bias(moe_layers_[i]);
    if (config_.balance == Balance::sign) {
      sign_rule(loads[i], config_.balance_rate, bias_of_layer);
    } else {
      balancers_[i].end_step(bias_of_layer, config_.balance_keep);
    }
  }
  rounded_valid_ = false;
  ++state_.optimizer_steps;
}

StepRecord Trainer::step() {
  TRIAX_CHECK(!done());
  const Stopwatch watch;
  Stage stage = config_.stages[state_.stage];
  stage.batch_tokens =
      std::min<std::size_t>(stage.batch_tokens, stage.tokens - state_.stage_tokens);
  const std::vector<PackedBatch> batches = draw_step(sampler_, stage);
  std::size_t rows = 0;
  for (const PackedBatch& batch : batches) rows += batch.ids.size();
  // By tokens, at the middle of the step: steps need not be equally long.
  const Schedule schedule{config_.peak_rate, config_.warmup, config_.final_fraction,
                          config_.total_tokens()};
  return step_on(batches, schedule.rate(state_.tokens + rows / 2), watch);
}

StepRecord Trainer::step_on(std::span<const PackedBatch> batches, double rate, Stopwatch watch) {
  TRIAX_CHECK(!done());
  StepRecord record;
  for (const PackedBatch& batch : batches) {
    record.step_tokens += batch.ids.size();
    record.counted += batch.counted;
  }
  TRIAX_CHECK(record.counted > 0, "something to learn");
  record.rate = rate;
  record.qat = qat();
  record.stage = state_.stage;

  StepWatch<float> seen;
  std::vector<ExpertLoad> loads(moe_layers_.size(), ExpertLoad(layout_.config().num_experts));
  const StepLoss loss = passes(batches, 1 / static_cast<float>(record.counted), seen, loads);
  record.loss = loss.mean();
  record.gradient_norm = gradient_norm(ctx_, gradients_);
  record.note = guard_.judge(record.loss, record.gradient_norm, masters_, gradients_);
  record.applied = record.note.empty();
  if (record.applied) {
    apply(record, seen, loads);
    guard_.healthy(record.loss, record.gradient_norm);
  } else {
    guard_.skipped(record.note);
  }
  advance(record.step_tokens);
  describe(record, loads);
  if (record.applied) watch_loads(record);
  record.seconds = watch.seconds();
  record.gflops = operations_per_token_ * static_cast<double>(record.step_tokens) /
                  std::max(record.seconds, 1e-9) * 1e-9;
  state_.seconds += record.seconds;
  return record;
}

void Trainer::advance(std::size_t rows) {
  ++state_.step;
  state_.tokens += rows;
  state_.stage_tokens += rows;
  if (state_.stage_tokens < config_.stages[state_.stage].tokens) return;
  ++state_.stage;
  state_.stage_tokens = 0;
}

void Trainer::watch_loads(StepRecord& record) {
  std::vector<double> most, dead;
  for (const LayerLoad& load : record.loads) {
    most.push_back(load.max_over_mean);
    dead.push_back(load.dead);
  }
  guard_.loads(most, dead);
  record.note = load_fault();
  if (!record.note.empty() && config_.guard.load_stops) {
    fail("step {}: {}; set guard.load_stops = false to go on all the same", state_.step,
         record.note);
  }
}

void Trainer::describe(StepRecord& record, const std::vector<ExpertLoad>& loads) const {
  record.step = state_.step;
  record.tokens = state_.tokens;
  for (const SourcePosition& p : sampler_.positions()) record.source_tokens.push_back(p.tokens);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    LayerLoad& load = record.loads.emplace_back();
    load.layer = moe_layers_[i];
    load.max_over_mean = loads[i].max_over_mean();
    load.dead = loads[i].dead_fraction();
    if (record.step % kCountsEvery == 0 || record.step == 1 || done())
      load.tokens = loads[i].tokens;
  }
  record.heads = head_norms();
}

std::vector<HeadNorms> Trainer::head_norms() const {
  const K3Config& c = layout_.config();
  std::vector<HeadNorms> out;
  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) {
    out.push_back({l, std::vector<double>(c.is_kda(l) ? c.kda_num_heads : c.num_attention_heads)});
  }
  for (const ParameterLayout::Tensor& t : layout_.tensors()) {
    const Update update = t.id.row->update;
    if (update != Update::muon_heads && update != Update::muon_key_value) continue;
    std::vector<double>& norms = out[t.id.layer].norm;
    const std::span<const float> g = gradients_[t];
    const std::size_t part = g.size() / norms.size();
    for (std::size_t h = 0; h < norms.size(); ++h) {
      for (const float x : g.subspan(h * part, part)) {
        norms[h] += static_cast<double>(x) * static_cast<double>(x);
      }
    }
  }
  for (HeadNorms& layer : out) {
    for (double& x : layer.norm) x = std::sqrt(x);
  }
  return out;
}

void Trainer::save(const std::filesystem::path& folder, std::size_t keep) {
  state_.guard = guard_.state();
  state_.sources.assign(sampler_.positions().begin(), sampler_.positions().end());
  state_.digests.clear();
  for (const DocumentSet& s : sources_) state_.digests.push_back(s.digest);
  write_train_checkpoint(folder, state_, arrays(), keep);
}

void Trainer::restore(const std::filesystem::path& checkpoint) {
  TrainState state = read_train_checkpoint(checkpoint, arrays());
  const std::string where = checkpoint.string();
  if (state.digests.size() != sources_.size() || state.stage > config_.stages.size() ||
      state.guard.load.size() != moe_layers_.size()) {
    fail("{}: of another training than this configuration", where);
  }
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (state.digests[s] == sources_[s].digest) continue;
    fail(
        "{}: the files of data source {} changed since; start anew with --init-from, or put them "
        "back",
        where, in_quotes(sources_[s].name));
  }
  sampler_.set_positions(state.sources);
  guard_.set_state(state.guard);
  optimizer_.set_steps_taken(state.optimizer_steps);
  state_ = std::move(state);
  rounded_valid_ = false;
}

}  // namespace triax::train
