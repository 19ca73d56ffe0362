// From a model and a configuration to teachers and their student.
#include "triax/distill/distill.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "triax/checkpoint/checkpoint.h"
#include "triax/checkpoint/file.h"
#include "triax/core/clock.h"
#include "triax/core/error.h"
#include "triax/train/export.h"
#include "triax/train/run.h"
#include "triax/world/corpus.h"

namespace triax::distill {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;
constexpr std::uint64_t kEndless = std::uint64_t{1} << 40;  // tokens: the steps end it

void write_file(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

train::TrainConfig teacher_config(const DistillConfig& config, std::size_t teacher,
                                  const fs::path& documents) {
  const TeacherPlan& plan = config.teacher;
  train::TrainConfig out;
  out.seed = config.seed + teacher;
  out.init_from = config.model;
  train::DataSource source;
  source.name = config.teacher_name(teacher);
  source.files = {documents};
  source.kind = train::SourceKind::jsonl;
  out.data = {source};
  train::Stage stage;
  stage.tokens = plan.tokens;
  stage.context = plan.context;
  stage.batch_tokens = plan.batch_tokens;
  stage.micro_batch_tokens = std::max(plan.context, std::min<std::size_t>(plan.batch_tokens, 4096));
  out.stages = {stage};
  out.peak_rate = plan.rate;
  out.warmup = plan.warmup;
  out.final_fraction = plan.final_fraction;
  out.balance_keep = plan.balance_keep;
  out.qat.from = 0;  // it begins with exported numbers, and is used as exported
  out.checkpoint.every_steps = 0;
  out.checkpoint.every_minutes = 2;
  out.checkpoint.keep = 1;
  return out;
}

train::TrainConfig student_config(const DistillConfig& config) {
  const StudentPlan& plan = config.student;
  train::TrainConfig out;
  out.seed = config.seed;
  out.init_from = config.model;
  train::Stage stage;
  stage.tokens = kEndless;
  stage.micro_batch_tokens = plan.micro_batch_tokens;
  out.stages = {stage};
  out.peak_rate = plan.rate;
  out.warmup = plan.warmup;
  out.final_fraction = plan.final_fraction;
  out.balance_keep = plan.balance_keep;
  out.qat.from = 0;          // samples come from the exported numbers
  out.guard.loss_above = 0;  // a weighted loss has no level of its own
  return out;
}

ordered_json json_of(const Divergence& d) {
  return {{"sum", d.sum}, {"tokens", d.tokens}};
}

}  // namespace

void Divergence::add(const std::vector<TokenScore>& scores) {
  for (const TokenScore& s : scores) sum += static_cast<double>(s.divergence);
  tokens += scores.size();
}

double Grade::accuracy() const {
  return items == 0 ? 0 : static_cast<double>(right) / static_cast<double>(items);
}

double Grade::thinking() const {
  return items == 0 ? 0 : static_cast<double>(thinking_tokens) / static_cast<double>(items);
}

void add_sample(const Prompt& prompt, std::span<const std::int32_t> sample,
                std::span<const float> rewards, train::PackedBatch& batch) {
  TRIAX_CHECK(!prompt.ids.empty() && !sample.empty() && rewards.size() == sample.size());
  const std::size_t rows = prompt.ids.size() + sample.size() - 1;
  batch.documents.push_back({batch.ids.size(), rows});
  batch.ids.insert(batch.ids.end(), prompt.ids.begin(), prompt.ids.end());
  batch.ids.insert(batch.ids.end(), sample.begin(), sample.end() - 1);
  batch.targets.insert(batch.targets.end(), prompt.ids.size() - 1, ops::kNoTarget);
  batch.targets.insert(batch.targets.end(), sample.begin(), sample.end());
  batch.weights.insert(batch.weights.end(), prompt.ids.size() - 1, 0.0f);
  batch.weights.insert(batch.weights.end(), rewards.begin(), rewards.end());
  batch.counted += sample.size();
}

Distillation::Distillation(Context& ctx, DistillConfig config, fs::path out, DistillEvents events)
    : ctx_(ctx),
      config_(std::move(config)),
      out_(std::move(out)),
      events_(std::move(events)),
      train_ctx_{ctx.pool, ctx.arena, Precision::f32, nullptr},
      train_config_(student_config(config_)) {
  if (!fs::exists(config_.model / "config.json")) {
    fail("{}: no model there (config.json is missing); `model` names the one to begin with",
         config_.model.string());
  }
  tokenizer_ = Tokenizer::load(config_.model);
  open_folder();
  for (std::size_t t = 0; t < config_.teachers(); ++t) {
    TeacherResult& r = result_.teachers.emplace_back();
    r.name = config_.teacher_name(t);
    r.domain = config_.domain(t).name;
    r.effort = DistillConfig::effort(t);
  }
}

void Distillation::open_folder() {
  std::error_code code;
  fs::create_directories(out_ / "teachers", code);
  if (code) fail("{}: cannot create the folder: {}", out_.string(), code.message());
  const fs::path resolved = out_ / "config.json";
  if (fs::exists(resolved)) {
    const std::string difference = first_difference(load_distill_config(resolved), config_);
    if (!difference.empty()) {
      fail("{}: {} is not as it was when this distillation began; take another --out",
           resolved.string(), difference);
    }
  } else if (std::distance(fs::directory_iterator(out_), fs::directory_iterator()) > 1) {
    fail("{}: the folder holds something else; take another --out", out_.string());
  }
  write_file(resolved, resolved_text(config_));
}

RolloutProgress Distillation::told(std::string what) const {
  return [this, what = std::move(what)](std::size_t done, std::size_t total) {
    if (events_.progress) events_.progress(what, false, done, total);
    return !stopped();
  };
}

bool Distillation::make_teacher(std::size_t teacher) {
  const std::string name = config_.teacher_name(teacher);
  const fs::path& ready = config_.domain(teacher).teachers[teacher % kEfforts];
  if (!ready.empty()) {
    teachers_.push_back(std::make_unique<OpenModel>(ready));
    return true;
  }
  const fs::path folder = out_ / "teachers" / name;
  const fs::path done = out_ / "teachers" / (name + ".done");
  if (!fs::exists(done)) {
    const fs::path documents = out_ / "teachers" / (name + ".jsonl");
    if (!fs::exists(documents)) {
      write_file(documents, teacher_documents(config_, teacher, config_.teacher.tokens));
    }
    train::RunEvents events;
    double loss = 0;
    events.step = [&](const train::StepRecord& record, const train::Trainer&) {
      loss = record.loss;
      if (events_.progress) {
        events_.progress("teacher " + name, true, record.tokens, config_.teacher.tokens);
      }
    };
    events.stop = [this] { return stopped(); };
    const bool resume = fs::exists(folder / "train.json");
    train::TrainRun run(train_ctx_, teacher_config(config_, teacher, documents),
                        {folder, resume, 0}, events);
    if (!run.run()) return false;
    write_file(done, fmt::format("loss {:.4f}\n", loss));
    fs::remove_all(folder / "checkpoints");  // nobody goes on with it
    say(fmt::format("teacher {}: {} tokens, loss {:.4f} in the last step", name,
                    run.trainer().tokens(), loss));
  }
  teachers_.push_back(std::make_unique<OpenModel>(folder / "model"));
  return true;
}

void Distillation::open_student() {
  const K3Config model = train::resolve_model(
      train_config_, train::vocabulary_of(tokenizer_->specials()), config_text_);
  layout_ = std::make_unique<train::ParameterLayout>(model);
  trainer_ = std::make_unique<train::Trainer>(train_ctx_, train_config_, *layout_,
                                              std::span<const train::DocumentSet>{});
  const auto checkpoint = train::latest_train_checkpoint(out_ / "checkpoints");
  if (checkpoint) {
    trainer_->restore(*checkpoint);
    say(fmt::format("the student goes on after step {}", trainer_->steps_taken()));
  } else {
    load_parameters(*Checkpoint::open(config_.model), trainer_->masters());
  }
  export_student();
  metrics_ = std::make_unique<train::MetricsLog>(out_ / "metrics.jsonl", trainer_->steps_taken());
}

void Distillation::export_student() {
  train::export_model(train_ctx_, trainer_->masters(), config_text_, config_.model,
                      student_folder());
}

bool Distillation::measure(Divergence TeacherResult::* to, std::string_view what) {
  const OpenModel student(student_folder());
  std::vector<Prompt> prompts;
  for (std::size_t t = 0; t < config_.teachers(); ++t) {
    for (std::size_t i = 0; i < config_.evaluation.prompts; ++i) {
      prompts.push_back(make_prompt(config_, *tokenizer_, t, "evaluation", i));
    }
  }
  RolloutOptions options;
  options.seed = world::stream_key("distill evaluation", config_.seed, 0);
  options.max_tokens = config_.student.max_tokens;
  const auto samples = rollout(ctx_.pool, student, *tokenizer_, prompts, options,
                               told(fmt::format("divergence {}", what)));
  if (samples.empty()) return false;
  for (std::size_t t = 0; t < config_.teachers(); ++t) {
    std::vector<const Prompt*> of;
    std::vector<const std::vector<std::int32_t>*> ids;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      if (prompts[i].teacher != t) continue;
      of.push_back(&prompts[i]);
      ids.push_back(&samples[i]);
    }
    Divergence& sum = result_.teachers[t].*to = {};
    for (const auto& scores : compare(ctx_, student, *teachers_[t], of, ids)) sum.add(scores);
    if (stopped()) return false;
  }
  return true;
}

bool Distillation::measure_before() {
  const fs::path file = out_ / "before.json";
  if (fs::exists(file)) {
    const auto json = ordered_json::parse(read_whole(file, kMaxConfigBytes));
    for (TeacherResult& r : result_.teachers) {
      r.before = {json.at(r.name).at("sum"), json.at(r.name).at("tokens")};
    }
    return true;
  }
  TRIAX_CHECK(trainer_->steps_taken() == 0);
  if (!measure(&TeacherResult::before, "before")) return false;
  ordered_json out;
  for (const TeacherResult& r : result_.teachers) out[r.name] = json_of(r.before);
  write_file(file, out.dump(1) + "\n");
  return true;
}

bool Distillation::step() {
  const StudentPlan& plan = config_.student;
  const std::size_t number = trainer_->steps_taken();
  DistillStep told_step;
  Stopwatch watch;
  std::vector<Prompt> prompts;
  for (std::size_t i = 0; i < plan.samples; ++i) {  // all teachers in turn, over all steps
    const std::uint64_t at = number * plan.samples + i;
    prompts.push_back(make_prompt(config_, *tokenizer_, at % config_.teachers(), "student",
                                  at / config_.teachers()));
  }
  RolloutOptions options;
  options.seed = world::stream_key("distill student", config_.seed, number);
  options.max_tokens = plan.max_tokens;
  const OpenModel student(student_folder());
  const auto samples = rollout(ctx_.pool, student, *tokenizer_, prompts, options,
                               [this](std::size_t, std::size_t) { return !stopped(); });
  if (samples.empty()) return false;
  told_step.sample_seconds = watch.seconds();

  watch.restart();
  std::vector<std::vector<float>> rewards(samples.size());
  told_step.by_teacher.resize(config_.teachers());
  Divergence all;
  double reward_sum = 0;
  for (std::size_t t = 0; t < config_.teachers(); ++t) {
    std::vector<const Prompt*> of;
    std::vector<const std::vector<std::int32_t>*> ids;
    std::vector<std::size_t> place;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (prompts[i].teacher != t) continue;
      of.push_back(&prompts[i]);
      ids.push_back(&samples[i]);
      place.push_back(i);
    }
    const auto scores = compare(ctx_, student, *teachers_[t], of, ids);
    for (std::size_t k = 0; k < scores.size(); ++k) {
      told_step.by_teacher[t].add(scores[k]);
      all.add(scores[k]);
      for (const TokenScore& s : scores[k]) {
        rewards[place[k]].push_back(reward(s, plan.reward_limit));
        reward_sum += static_cast<double>(rewards[place[k]].back());
      }
    }
  }
  told_step.score_seconds = watch.seconds();

  watch.restart();
  std::vector<train::PackedBatch> batches(1);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t rows = prompts[i].ids.size() + samples[i].size() - 1;
    const std::size_t filled = batches.back().ids.size();
    if (filled != 0 && filled + rows > plan.micro_batch_tokens) batches.emplace_back();
    add_sample(prompts[i], samples[i], rewards[i], batches.back());
    told_step.cut += samples[i].size() == plan.max_tokens ? 1 : 0;
  }
  const train::Schedule schedule{plan.rate, plan.warmup, plan.final_fraction, plan.steps};
  told_step.record = trainer_->step_on(batches, schedule.rate(number));
  export_student();
  told_step.train_seconds = watch.seconds();
  told_step.step = trainer_->steps_taken();
  told_step.samples = samples.size();
  told_step.sampled_tokens = all.tokens;
  told_step.divergence = all.mean();
  told_step.reward = reward_sum / static_cast<double>(std::max<std::size_t>(all.tokens, 1));
  metrics_->add(to_json_line(told_step, config_));
  if (events_.step) events_.step(told_step);
  return true;
}

bool Distillation::learn() {
  std::size_t saved = trainer_->steps_taken();
  const auto save = [&] {
    if (saved == trainer_->steps_taken()) return;
    metrics_->sync();
    trainer_->save(out_ / "checkpoints", 1);
    saved = trainer_->steps_taken();
  };
  while (trainer_->steps_taken() < config_.student.steps) {
    if (stopped() || !step()) {
      save();
      return false;
    }
    if (trainer_->steps_taken() % config_.checkpoint_steps == 0) save();
  }
  save();
  result_.steps = trainer_->steps_taken();
  return true;
}

bool Distillation::grade(const OpenModel& model, std::string_view what,
                         std::span<const std::size_t> teachers, Grade TeacherResult::* to) {
  std::vector<world::SuiteItem> items;
  std::vector<Prompt> prompts;
  for (const std::size_t t : teachers) {
    for (world::SuiteItem& item : suite_items(config_, t)) {
      prompts.push_back({t, suite_prompt(item, *tokenizer_)});
      items.push_back(std::move(item));
    }
    result_.teachers[t].*to = {};
  }
  if (items.empty()) return true;
  RolloutOptions options;
  options.temperature = 0;
  options.max_tokens = config_.student.max_tokens;
  const auto answers = rollout(ctx_.pool, model, *tokenizer_, prompts, options,
                               told(fmt::format("grading {}", what)));
  if (answers.empty()) return false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const ReadTurn turn = read_turn(answers[i], *tokenizer_);
    Grade& g = result_.teachers[prompts[i].teacher].*to;
    ++g.items;
    g.right += world::judge(items[i], turn.answer).correct ? 1 : 0;
    g.thinking_tokens += turn.thinking_tokens;
  }
  return true;
}

bool Distillation::grade_all() {
  std::vector<std::size_t> all;
  for (std::size_t t = 0; t < config_.teachers(); ++t) all.push_back(t);
  const OpenModel student(student_folder()), beginning(config_.model);
  if (!grade(student, "the student", all, &TeacherResult::student)) return false;
  if (!grade(beginning, "the beginning model", all, &TeacherResult::beginning)) return false;
  for (const std::size_t& t : all) {
    const std::string what = "teacher " + config_.teacher_name(t);
    if (!grade(*teachers_[t], what, {&t, 1}, &TeacherResult::teacher)) return false;
  }
  return true;
}

bool Distillation::run() {
  Stopwatch watch;
  for (std::size_t t = teachers_.size(); t < config_.teachers(); ++t) {
    if (stopped() || !make_teacher(t)) return false;
  }
  result_.teacher_seconds = watch.seconds();
  watch.restart();
  if (!trainer_) open_student();
  if (!measure_before() || !learn()) return false;
  result_.student_seconds = watch.seconds();
  if (!measure(&TeacherResult::after, "after") || !grade_all()) return false;
  write_results(result_, config_, out_);
  return true;
}

}  // namespace triax::distill
