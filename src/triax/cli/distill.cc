// `triax distill`: teachers of domains and thinking efforts, and their student.
#include "triax/distill/distill.h"

#include <fstream>
#include <iterator>
#include <optional>

#include "triax/cli/commands.h"
#include "triax/cli/format.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/progress.h"
#include "triax/kernels/kernels.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;
using distill::DistillResult;
using distill::Grade;
using distill::TeacherResult;

constexpr std::size_t kLineEvery = 10;  // steps between two lines

// One piece of work at a time, each with its rate and time to go.
class View {
 public:
  void progress(std::string_view what, Unit unit, std::uint64_t done, std::uint64_t total) {
    if (what != what_) {
      line_.reset();
      what_ = what;
      line_.emplace(what_, unit, total);
    }
    line_->update(done);
    if (done >= total) close();
  }
  void line(std::string_view text) {
    close();
    fmt::print(stderr, "{}\n", text);
  }

 private:
  void close() {
    line_.reset();
    what_.clear();
  }
  std::string what_;
  std::optional<Progress> line_;
};

std::string percent(const Grade& g) {
  return g.items == 0 ? "-" : fmt::format("{:.1f} %", 100 * g.accuracy());
}

void print_row(std::string_view name, const distill::Divergence& before,
               const distill::Divergence& after, const Grade& teacher, const Grade& student,
               const Grade& beginning) {
  fmt::print("{:<20} {:>9.4f} {:>9.4f} {:>6} {:>9} {:>9} {:>9} {:>9.1f} {:>9.1f}\n", name,
             before.mean(), after.mean(), student.items, percent(teacher), percent(student),
             percent(beginning), teacher.thinking(), student.thinking());
}

void print_results(const DistillResult& r, const fs::path& out) {
  fmt::print("{:<20} {:>19} {:>6} {:>29} {:>19}\n", "", "divergence (nats)", "items", "right",
             "thinking (tokens)");
  fmt::print("{:<20} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "teacher", "before",
             "after", "", "teacher", "student", "beginning", "teacher", "student");
  for (const TeacherResult& t : r.teachers) {
    print_row(t.name, t.before, t.after, t.teacher, t.student, t.beginning);
  }
  print_row("all", r.before(), r.after(), r.total(&TeacherResult::teacher),
            r.total(&TeacherResult::student), r.total(&TeacherResult::beginning));
  const auto says = [](bool yes) { return yes ? "yes" : "no"; };
  fmt::print(
      "\ndivergence more than halved: {}; thinking low < high < max in every domain: {}; right at "
      "most 2 points less often than the teachers: {}\n",
      says(r.halved()), says(r.thinking_ordered()), says(r.as_right()));
  fmt::print("try it:  triax run -m {} \"...\"\n", (out / "model").string());
}

}  // namespace

int execute(const DistillCommand& c) {
  const distill::DistillConfig config = distill::load_distill_config(c.config);
  kernels();  // a wrong TRIAX_ISA is told first
  ThreadPool pool(c.threads == 0 ? ThreadPool::available_cores() : c.threads);
  Arena arena;
  Context ctx{pool, arena, Precision::bf16, nullptr};
  const InterruptGuard guard;
  View view;
  distill::DistillEvents events;
  events.line = [&](std::string_view text) { view.line(text); };
  events.progress = [&](std::string_view what, bool tokens, std::uint64_t done,
                        std::uint64_t total) {
    view.progress(what, tokens ? Unit::tokens : Unit::items, done, total);
  };
  events.step = [&](const distill::DistillStep& s) {
    if (!s.record.applied) {
      view.line(fmt::format("step {} left out: {}", s.step, s.record.note));
    } else if (s.step == 1 || s.step % kLineEvery == 0) {
      view.line(fmt::format(
          "step {} of {}: divergence {:.4f}, {:.1f} tokens a sample; {:.1f} s sampling, {:.1f} s "
          "scoring, {:.1f} s learning",
          s.step, config.student.steps, s.divergence,
          static_cast<double>(s.sampled_tokens) / static_cast<double>(s.samples), s.sample_seconds,
          s.score_seconds, s.train_seconds));
    }
    view.progress("student, steps", Unit::items, s.step, config.student.steps);
  };
  events.stop = [] { return interrupted(); };
  distill::Distillation run(ctx, config, c.out, events);
  const bool done = run.run();
  if (!done) {
    view.line(fmt::format("stopped; the same command goes on with what is in {}", c.out));
    return kInterruptedExit;
  }
  if (c.json) {
    std::ifstream file(fs::path(c.out) / "distill.json", std::ios::binary);
    fmt::print("{}", std::string(std::istreambuf_iterator<char>(file), {}));
  } else {
    print_results(run.result(), c.out);
  }
  return 0;
}

}  // namespace triax::cli
