// From a configuration to a trained model.
#include "triax/train/run.h"

#include <algorithm>

#include "triax/checkpoint/checkpoint.h"
#include "triax/checkpoint/file.h"
#include "triax/core/error.h"
#include "triax/core/rng.h"
#include "triax/train/evaluate.h"
#include "triax/train/export.h"
#include "triax/train/make_tokenizer.h"
#include "triax/train/repeats.h"
#include "triax/train/report.h"
#include "triax/train/substitute.h"

namespace triax::train {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;
constexpr const char* kConfigName = "train.json";
// What a training writes into its folder.
constexpr const char* kOwn[] = {kConfigName,   "tokenizer", "tokenizer.partial", "metrics.jsonl",
                                "checkpoints", "model",     "model.partial",     "report.html"};

// The tensors of two configurations are the same, or an Error that names the first that is not.
void check_same_tensors(const K3Config& wanted, const K3Config& found, const std::string& where) {
  const ParameterLayout a(wanted), b(found);
  const auto x = a.tensors(), y = b.tensors();
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (x[i].name == y[i].name && x[i].shape == y[i].shape) continue;
    fail(
        "{}: the model to go on from has another shape than [model] says, first at {}; leave "
        "[model] out, or make a new model",
        where, y[i].name);
  }
  if (x.size() != y.size()) {
    fail("{}: the model to go on from has {} tensors, [model] says {}", where, y.size(), x.size());
  }
}

}  // namespace

VocabularyIds vocabulary_of(const SpecialTokens& specials) {
  return {static_cast<std::size_t>(specials.first_id()) + kSpecialTokens, specials.id_of(Role::Bos),
          specials.id_of(Role::Eos), specials.id_of(Role::Pad)};
}

VocabularyIds planned_vocabulary(const TrainConfig& config) {
  fs::path folder = config.tokenizer.folder;
  if (folder.empty()) folder = config.init_from;
  if (!folder.empty()) return vocabulary_of(Tokenizer::load(folder).specials());
  return vocabulary_of(SpecialTokens::standard(
      static_cast<std::int32_t>(config.tokenizer.vocabulary - kSpecialTokens)));
}

K3Config resolve_model(const TrainConfig& config, const VocabularyIds& ids,
                       std::string& config_text) {
  if (config.init_from.empty()) {
    config_text = model_config_text(config.shape, config.shape_changes, ids);
    return K3Config::parse(config_text, "model");
  }
  const fs::path file = config.init_from / "config.json";
  config_text = read_whole(file, kMaxConfigBytes);
  K3Config out = K3Config::parse(config_text, file.string());
  if (out.vocab_size < ids.size) {
    fail("{}: the model has {} ids, the tokenizer {}; they are not of one model", file.string(),
         out.vocab_size, ids.size);
  }
  if (!config.shape.empty()) {
    VocabularyIds same = ids;
    same.size = out.vocab_size;
    const std::string text = model_config_text(config.shape, config.shape_changes, same);
    check_same_tensors(K3Config::parse(text, "model"), out, file.string());
  }
  return out;
}

TrainRun::TrainRun(Context& ctx, TrainConfig config, RunOptions options, RunEvents events)
    : ctx_(ctx),
      config_(std::move(config)),
      options_(std::move(options)),
      events_(std::move(events)) {
  ctx_.precision = Precision::f32;  // of all that is no product with weights
  open_folder();
  std::vector<std::vector<RawDocument>> documents, held_out;
  std::vector<std::string> digests(config_.data.size()), held_digests(config_.held_out.size());
  for (std::size_t s = 0; s < config_.data.size(); ++s) {
    documents.push_back(read_documents(config_.data[s], digests[s]));
  }
  for (std::size_t s = 0; s < config_.held_out.size(); ++s) {
    held_out.push_back(read_documents(config_.held_out[s], held_digests[s]));
  }
  open_tokenizer(documents);
  sources_ = tokenize(config_.data, documents, digests);
  held_out_ = tokenize(config_.held_out, held_out, held_digests);
  open_model();
  metrics_ = std::make_unique<MetricsLog>(options_.out / "metrics.jsonl", trainer_->steps_taken());
  saved_step_ = trainer_->steps_taken();
}

void TrainRun::open_folder() {
  const fs::path& out = options_.out;
  std::error_code code;
  checkpoint_ = latest_train_checkpoint(out / "checkpoints");
  if (!options_.resume) {
    clear_folder();
    write_resolved();
    return;
  }
  if (!fs::exists(out / kConfigName)) {
    fail("{}: there is no training to resume (no {}); leave --resume out", out.string(),
         kConfigName);
  }
  const TrainConfig before = load_train_config(out / kConfigName);
  const std::string difference = first_difference(before, config_);
  if (!difference.empty()) {
    fail(
        "{}: {} is not as it was when the training began; resume without CONFIG, or begin a new "
        "training with --init-from {}",
        (out / kConfigName).string(), difference, (out / "model").string());
  }
  write_resolved();
}

// What a training that never came to a checkpoint left is removed; anything else is kept and said.
void TrainRun::clear_folder() {
  const fs::path& out = options_.out;
  std::error_code code;
  fs::create_directories(out, code);
  if (code) fail("{}: cannot create the folder: {}", out.string(), code.message());
  std::vector<fs::path> mine;
  for (const auto& entry : fs::directory_iterator(out)) {
    const auto same = [&](const char* name) { return entry.path().filename() == name; };
    if (checkpoint_ || std::none_of(std::begin(kOwn), std::end(kOwn), same)) {
      fail(
          "{}: the folder is not empty; --resume goes on with the training in it, another --out "
          "begins a new one",
          out.string());
    }
    mine.push_back(entry.path());
  }
  for (const fs::path& path : mine) fs::remove_all(path, code);
}

void TrainRun::write_resolved() const {
  AtomicFile resolved(options_.out / kConfigName);
  resolved.write(resolved_text(config_));
  resolved.commit();
}

void TrainRun::open_tokenizer(const std::vector<std::vector<RawDocument>>& documents) {
  const fs::path folder = options_.out / "tokenizer";
  if (!fs::exists(folder / "tiktoken.model")) {
    fs::path from = config_.tokenizer.folder;
    if (from.empty() && !config_.init_from.empty()) from = config_.init_from;
    if (from.empty()) {
      const fs::path made = options_.out / "tokenizer.partial";
      make_tokenizer(config_, documents, made, [&](std::uint64_t done, std::uint64_t total) {
        if (events_.preparing) events_.preparing("making a tokenizer", done, total);
        return !(events_.stop && events_.stop());
      });
      replace_folder(made, folder);
    } else {
      copy_tokenizer(from, folder);
    }
  }
  tokenizer_ = Tokenizer::load(folder);
}

std::vector<DocumentSet> TrainRun::tokenize(const std::vector<DataSource>& sources,
                                            const std::vector<std::vector<RawDocument>>& documents,
                                            const std::vector<std::string>& digests) {
  std::vector<DocumentSet> out;
  // what is drawn for held-out sources is other
  const std::uint64_t source_seed =
      splitmix64_at(config_.seed, &sources == &config_.held_out ? 1 : 0);
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const std::string what = fmt::format("reading {}", sources[s].name);
    const auto progress = [&](std::uint64_t done, std::uint64_t total) {
      if (events_.preparing) events_.preparing(what, done, total);
    };
    out.push_back(sources[s].kind == SourceKind::repeats
                      ? make_repeats(sources[s], *tokenizer_, source_seed + s)
                      : tokenize_documents(sources[s], documents[s], digests[s], *tokenizer_,
                                           ctx_.pool, source_seed + s, progress));
    const DocumentSet& set = out.back();
    if (&sources == &config_.data) check_lengths(set);
    say(fmt::format("{}: {} documents, {} tokens, {} of them learned{}", set.name, set.documents(),
                    set.ids.size(), set.targets(),
                    set.dropped == 0 ? ""
                                     : fmt::format("; {} documents with nothing to learn dropped",
                                                   set.dropped)) +
        (set.substituted == 0 ? "" : fmt::format("; words replaced in {}", set.substituted)));
  }
  return out;
}

// Whoever trains short contexts first should know what they leave out.
void TrainRun::check_lengths(const DocumentSet& set) const {
  for (std::size_t i = 0; i < config_.stages.size(); ++i) {
    const std::size_t context = config_.stages[i].context, fit = set.drawable(context);
    if (fit == set.documents()) continue;
    if (fit == 0) {
      fail(
          "data source {}: none of its documents fits the context of {} of stage {}; lengthen it, "
          "or set longer = \"cut\"",
          in_quotes(set.name), context, i);
    }
    say(fmt::format("{}: {} of {} documents fit the context of {} (stage {}), the others wait",
                    set.name, fit, set.documents(), context, i));
  }
}

void TrainRun::open_model() {
  const K3Config model =
      resolve_model(config_, vocabulary_of(tokenizer_->specials()), config_text_);
  layout_ = std::make_unique<ParameterLayout>(model);
  trainer_ = std::make_unique<Trainer>(ctx_, config_, *layout_, sources_);
  if (checkpoint_) {
    trainer_->restore(*checkpoint_);
    say(fmt::format("goes on from {}: {} steps, {} tokens", checkpoint_->string(),
                    trainer_->steps_taken(), trainer_->tokens()));
  } else if (!config_.init_from.empty()) {
    load_parameters(*Checkpoint::open(config_.init_from), trainer_->masters());
    say(fmt::format("begins with the weights of {}", config_.init_from.string()));
  }
}

void TrainRun::evaluate_now(bool exported) {
  if (held_out_.empty() || evaluated_step_ == trainer_->steps_taken()) return;
  EvaluationPlan plan;
  plan.tokens = config_.evaluation.tokens;
  plan.context = 2 * config_.last_context();
  plan.pass_rows = config_.stages.back().micro_batch_tokens;
  plan.seed = config_.seed;
  const Parameters<float>& weights =
      exported ? trainer_->exported_weights() : trainer_->pass_weights();
  EvaluationRecord record = evaluate(ctx_, weights, held_out_, plan);
  record.step = trainer_->steps_taken();
  record.tokens = trainer_->tokens();
  record.exported = exported;
  metrics_->add(to_json_line(record));
  evaluated_step_ = record.step;
  if (events_.evaluated) events_.evaluated(record);
}

void TrainRun::checkpoint_now() {
  if (saved_step_ == trainer_->steps_taken()) return;
  metrics_->sync();
  trainer_->save(options_.out / "checkpoints", config_.checkpoint.keep);
  export_model(ctx_, trainer_->masters(), config_text_, options_.out / "tokenizer",
               options_.out / "model");
  write_report(options_.out / "metrics.jsonl", config_, options_.out / "report.html");
  saved_step_ = trainer_->steps_taken();
  since_checkpoint_.restart();
}

bool TrainRun::run() {
  const auto due = [](std::size_t every, std::size_t step) {
    return every != 0 && step % every == 0;
  };
  while (!trainer_->done()) {
    const std::size_t before = trainer_->steps_taken();
    if (options_.stop_after != 0 && before >= options_.stop_after) break;
    const StepRecord record = trainer_->step();
    metrics_->add(to_json_line(record, config_));
    if (events_.step) events_.step(record, *trainer_);
    if (trainer_->done()) break;
    if (due(config_.evaluation.every_steps, record.step)) evaluate_now(false);
    const double minutes = since_checkpoint_.seconds() / 60;
    const bool by_time =
        config_.checkpoint.every_minutes > 0 && minutes >= config_.checkpoint.every_minutes;
    if (by_time || due(config_.checkpoint.every_steps, record.step)) checkpoint_now();
    if (events_.stop && events_.stop()) break;
  }
  if (trainer_->done() && saved_step_ != trainer_->steps_taken()) evaluate_now(true);
  checkpoint_now();
  return trainer_->done();
}

}  // namespace triax::train
