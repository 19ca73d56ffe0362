// A whole training: data, tokenizer, model, loop, and the folder that it writes:
//
//   train.json      the configuration as it was resolved
//   tokenizer/      the tokenizer that the data were encoded with
//   metrics.jsonl   a line for each step and each evaluation
//   checkpoints/    what a training goes on from
//   model/          the model as exported at the last checkpoint, in the released layout
//   report.html     plots
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/core/clock.h"
#include "triax/train/metrics.h"
#include "triax/train/shapes.h"
#include "triax/train/trainer.h"

namespace triax::train {

struct RunOptions {
  std::filesystem::path out;
  bool resume = false;
  std::size_t stop_after = 0;  // steps in all, then a checkpoint and the end; 0: all stages
};

// Whoever runs it is told; nothing is printed here. All may be empty.
struct RunEvents {
  std::function<void(std::string_view)> line;  // one line to show
  std::function<void(std::string_view what, std::uint64_t done, std::uint64_t total)> preparing;
  std::function<void(const StepRecord&, const Trainer&)> step;
  std::function<void(const EvaluationRecord&)> evaluated;
  std::function<bool()> stop;  // asked after each step: end here, with a checkpoint?
};

// The model of a configuration: its config.json, from [model] or from the model to go on from.
K3Config resolve_model(const TrainConfig& config, const VocabularyIds& vocabulary,
                       std::string& config_text);
VocabularyIds vocabulary_of(const SpecialTokens& specials);
// What the vocabulary will be, before a tokenizer is made.
VocabularyIds planned_vocabulary(const TrainConfig& config);

class TrainRun {
 public:
  // Reads the data, makes or copies the tokenizer, makes the model or goes on from a checkpoint.
  // The context's precision becomes f32; the configuration's is that of products. Throws Error for
  // anything that is wrong with configuration, data or folder.
  TrainRun(Context& ctx, TrainConfig config, RunOptions options, RunEvents events);

  // True when all stages are done, false when it was stopped before.
  bool run();

  const TrainConfig& config() const { return config_; }
  const K3Config& model() const { return layout_->config(); }
  const ParameterLayout& layout() const { return *layout_; }
  std::span<const DocumentSet> sources() const { return sources_; }
  Trainer& trainer() { return *trainer_; }
  const std::filesystem::path& out() const { return options_.out; }

 private:
  void open_folder();
  void clear_folder();
  void write_resolved() const;
  void open_tokenizer(const std::vector<std::vector<RawDocument>>& documents);
  std::vector<DocumentSet> tokenize(const std::vector<DataSource>& sources,
                                    const std::vector<std::vector<RawDocument>>& documents,
                                    const std::vector<std::string>& digests);
  void check_lengths(const DocumentSet& set) const;
  void open_model();
  void evaluate_now(bool exported);
  void checkpoint_now();
  void say(std::string_view line) const {
    if (events_.line) events_.line(line);
  }

  Context& ctx_;
  TrainConfig config_;
  RunOptions options_;
  RunEvents events_;
  std::optional<std::filesystem::path> checkpoint_;  // to go on from
  std::optional<Tokenizer> tokenizer_;
  std::string config_text_;
  std::vector<DocumentSet> sources_, held_out_;
  std::unique_ptr<ParameterLayout> layout_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<MetricsLog> metrics_;
  Stopwatch since_checkpoint_;
  std::size_t saved_step_ = 0, evaluated_step_ = 0;
};

}  // namespace triax::train
