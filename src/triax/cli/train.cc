// `triax train`: a model of K3's architecture from a configuration and texts.
#include <nlohmann/json.hpp>
#include <optional>

#include "triax/cli/commands.h"
#include "triax/cli/format.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/train_plan.h"
#include "triax/cli/train_view.h"
#include "triax/kernels/kernels.h"
#include "triax/machine/limits.h"
#include "triax/train/run.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;

// The configuration of the command line: a file, or with --resume the one in the folder.
train::TrainConfig config_of(const TrainCommand& c) {
  if (c.config.empty() && !c.resume) {
    wrong_use("train: CONFIG is missing: a .toml or .json file that says what to train");
  }
  train::TrainConfig config = train::load_train_config(
      c.config.empty() ? fs::path(c.out) / "train.json" : fs::path(c.config));
  if (!c.init_from.empty()) {
    config.init_from = fs::absolute(c.init_from);
    config.tokenizer.vocabulary = 0;
  }
  if (c.tokens != 0) train::scale_tokens(config, c.tokens);
  return config;
}

std::string evaluation_line(const train::EvaluationRecord& record) {
  std::string out = fmt::format("step {}: held out", grouped(record.step));
  for (const train::HeldOutLoss& h : record.held_out) {
    out += fmt::format(" {} {:.4f},", h.name, h.loss);
  }
  out.back() = record.exported ? ' ' : ';';
  if (record.exported) out += "(as exported);";
  if (!record.by_distance.empty()) {
    out += " recall";
    for (const train::Bucket& b : record.by_distance) {
      out += fmt::format(" {:.2f}@{}", b.value, b.begin);
    }
  }
  return out;
}

struct Totals {
  double seconds = 0, operations = 0;  // GFLOP
  std::uint64_t tokens = 0;
  train::StepRecord last;
  train::EvaluationRecord evaluation;
};

void print_summary(const TrainCommand& c, train::TrainRun& run, const Totals& totals, bool done,
                   double peak) {
  const double seconds = std::max(totals.seconds, 1e-9);
  const double rate = static_cast<double>(totals.tokens) / seconds;
  const double gflops = totals.operations / seconds;
  const std::string loads = run.trainer().load_fault();
  const auto model = (run.out() / "model").string();
  if (c.json) {
    nlohmann::ordered_json json{{"out", run.out().string()},
                                {"model", model},
                                {"done", done},
                                {"steps", run.trainer().steps_taken()},
                                {"tokens", run.trainer().tokens()},
                                {"loss", totals.last.loss},
                                {"steps_left_out", run.trainer().guard().skipped},
                                {"loads_ok", loads.empty()},
                                {"tokens_per_second", rate},
                                {"gflops", gflops},
                                {"peak_gflops", peak},
                                {"seconds", totals.seconds}};
    for (const train::HeldOutLoss& h : totals.evaluation.held_out) {
      json["held_out"][h.name] = h.loss;
    }
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{}: {} steps, {} tokens, loss {:.4f}; {} tokens/s, {} GFLOP/s ({:.0f} % of peak)\n",
             run.out().string(), grouped(run.trainer().steps_taken()),
             grouped(run.trainer().tokens()), totals.last.loss, human_rate(rate),
             human_rate(gflops), 100 * gflops / peak);
  if (!loads.empty()) fmt::print("experts: {}\n", loads);
  if (done) {
    fmt::print("try it:  triax run -m {} \"...\"\n", model);
  } else {
    fmt::print("goes on with:  triax train --resume --out {}\n", run.out().string());
  }
}

}  // namespace

int execute(const TrainCommand& c) {
  const train::TrainConfig config = config_of(c);
  const std::size_t threads = c.threads == 0 ? ThreadPool::available_cores() : c.threads;
  kernels();  // a wrong TRIAX_ISA is told first
  if (c.plan) {
    print_train_plan(config, threads, c.json);
    return 0;
  }
  if (c.out.empty()) wrong_use("train: --out FOLDER is missing: where checkpoints and model go");
  ThreadPool pool(threads);
  Arena arena;
  Context ctx{pool, arena, Precision::f32, nullptr};
  const double peak = measure_peak(pool, kernels().isa).operations_per_second * 1e-9;
  const InterruptGuard guard;
  Totals totals;
  std::optional<TrainView> view(std::in_place, config.total_tokens(), peak);
  train::RunEvents events;
  events.line = [&](std::string_view text) { view->line(text); };
  events.preparing = [&](std::string_view what, std::uint64_t done, std::uint64_t total) {
    view->preparing(what, done, total);
    if (interrupted()) throw Interrupted();
  };
  events.step = [&](const train::StepRecord& record, const train::Trainer&) {
    totals.seconds += record.seconds;
    totals.operations += record.gflops * record.seconds;
    totals.tokens += record.step_tokens;
    totals.last = record;
    if (!record.applied) {
      view->line(fmt::format("step {} left out: {}", grouped(record.step), record.note));
    }
    view->step(record);
  };
  events.evaluated = [&](const train::EvaluationRecord& record) {
    totals.evaluation = record;
    view->line(evaluation_line(record));
  };
  events.stop = [] { return interrupted(); };
  train::TrainRun run(ctx, config, {c.out, c.resume, c.steps}, events);
  if (run.trainer().done()) view->line("all stages are done already");
  const bool done = run.run();
  view.reset();
  print_summary(c, run, totals, done, peak);
  return interrupted() ? kInterruptedExit : 0;
}

}  // namespace triax::cli
