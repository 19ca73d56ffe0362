// On-policy distillation from many teachers (MOPD; Kimi K3 technical report, section 4.1.3): for
// each domain and thinking effort a teacher, a short fine-tune of the beginning model; then one
// student that learns on its own samples, each token rewarded with the clipped log-ratio of its
// matching teacher to itself. docs/math/training.md has the formulas. The folder that it writes:
//
//   config.json       the configuration as it was resolved
//   teachers/         documents, training and model of each teacher
//   before.json       divergences before the first step
//   metrics.jsonl     a line for each step
//   checkpoints/      what the student goes on from
//   model/            the student as exported after its last step, in the released layout
//   distill.json      what came out
//   report.html       the same, with plots
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/core/context.h"
#include "triax/distill/distill_config.h"
#include "triax/distill/rollout.h"
#include "triax/train/metrics.h"
#include "triax/train/trainer.h"

namespace triax::distill {

// KL(student || teacher) a token, on samples of the student.
struct Divergence {
  double sum = 0;
  std::size_t tokens = 0;
  double mean() const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }
  void add(const std::vector<TokenScore>& scores);
};

// A model on the items of one domain and effort.
struct Grade {
  std::size_t items = 0, right = 0, thinking_tokens = 0;
  double accuracy() const;
  double thinking() const;  // tokens a turn
};

struct TeacherResult {
  std::string name, domain;
  world::Effort effort = world::Effort::low;
  Divergence before, after;
  Grade beginning, student, teacher;
};

struct DistillResult {
  std::vector<TeacherResult> teachers;
  std::size_t steps = 0;
  double teacher_seconds = 0, student_seconds = 0;  // of this run of the program

  Divergence before() const;
  Divergence after() const;
  Grade total(Grade TeacherResult::* of) const;
  // What the method promises.
  bool halved() const;            // the divergence, over all teachers
  bool thinking_ordered() const;  // low < high < max in every domain of the suite
  bool as_right() const;          // the student at most 2 points below the matching teachers
};

// One step of the student.
struct DistillStep {
  std::size_t step = 0;
  double divergence = 0, reward = 0;  // means over the sampled tokens
  std::vector<Divergence> by_teacher;
  std::size_t samples = 0, sampled_tokens = 0, cut = 0;  // cut: by max_tokens
  train::StepRecord record;
  double sample_seconds = 0, score_seconds = 0, train_seconds = 0;
};

struct DistillEvents {
  std::function<void(std::string_view)> line;
  // "teacher stories-low", tokens or items so far and in all
  std::function<void(std::string_view what, bool tokens, std::uint64_t done, std::uint64_t total)>
      progress;
  std::function<void(const DistillStep&)> step;
  std::function<bool()> stop;
};

class Distillation {
 public:
  // Goes on with what is in `out` when that is of this configuration. Throws Error for anything
  // that is wrong with configuration or folder. ctx.precision is that of sampling and scoring.
  Distillation(Context& ctx, DistillConfig config, std::filesystem::path out, DistillEvents events);

  // True when all is done, false when it was stopped before.
  bool run();
  const DistillResult& result() const { return result_; }
  const DistillConfig& config() const { return config_; }
  train::Trainer& student() { return *trainer_; }

 private:
  bool stopped() const { return events_.stop && events_.stop(); }
  void say(std::string_view text) const {
    if (events_.line) events_.line(text);
  }
  RolloutProgress told(std::string what) const;
  void open_folder();
  bool make_teacher(std::size_t teacher);
  void open_student();
  std::filesystem::path student_folder() const { return out_ / "model"; }
  void export_student();
  bool measure(Divergence TeacherResult::* to, std::string_view what);
  bool measure_before();
  bool learn();
  bool step();
  bool grade_all();
  bool grade(const OpenModel& model, std::string_view what, std::span<const std::size_t> teachers,
             Grade TeacherResult::* to);

  Context& ctx_;
  DistillConfig config_;
  std::filesystem::path out_;
  DistillEvents events_;
  std::optional<Tokenizer> tokenizer_;
  std::string config_text_;
  std::vector<std::unique_ptr<OpenModel>> teachers_;
  Context train_ctx_;
  train::TrainConfig train_config_;
  std::unique_ptr<train::ParameterLayout> layout_;
  std::unique_ptr<train::Trainer> trainer_;
  std::unique_ptr<train::MetricsLog> metrics_;
  DistillResult result_;
};

// A student's sample as rows of a training pass: every sampled token a target, its reward the
// weight of -log p, so that the gradient is that of the policy.
void add_sample(const Prompt& prompt, std::span<const std::int32_t> sample,
                std::span<const float> rewards, train::PackedBatch& batch);

// Writes distill.json and report.html.
void write_results(const DistillResult& result, const DistillConfig& config,
                   const std::filesystem::path& out);
std::string to_json_line(const DistillStep& step, const DistillConfig& config);

}  // namespace triax::distill
