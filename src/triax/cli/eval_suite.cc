// The report of a suite: accuracy by group and kind, baselines, unseen shares, load of experts.
#include "triax/cli/eval_suite.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <unordered_set>

#include "triax/cli/format.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/load_model.h"
#include "triax/cli/progress.h"
#include "triax/cli/suite_run.h"
#include "triax/core/clock.h"
#include "triax/world/suite.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;
using world::Json;
using world::SuiteItem;

struct Tally {
  std::size_t items = 0, right = 0, well_formed = 0;
  void add(const world::Verdict& v) {
    ++items;
    right += v.correct ? 1 : 0;
    well_formed += v.well_formed ? 1 : 0;
  }
  double share() const {
    return items == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(items);
  }
  double formed() const {
    return items == 0 ? 0.0 : static_cast<double>(well_formed) / static_cast<double>(items);
  }
  Json json() const { return {{"items", items}, {"right", share()}, {"well_formed", formed()}}; }
};

struct Report {
  std::map<std::string, Tally> groups, kinds, efforts, unseen;
  std::map<std::string, std::pair<std::size_t, std::size_t>> thinking;  // effort: tokens, items
  std::size_t stories = 0, last = 0, frequent = 0;

  void add(const SuiteItem& item, const world::Verdict& verdict, std::size_t thought) {
    groups[item.group].add(verdict);
    kinds[item.group + ": " + item.kind].add(verdict);
    const std::string effort = world::effort_name(item.effort);
    efforts[item.group + ", " + effort].add(verdict);
    thinking[effort].first += thought;
    ++thinking[effort].second;
    if (item.group != "arithmetic") {
      unseen[item.group +
             (item.unseen_asked ? ", asks about unseen entities" : ", asks about known entities")]
          .add(verdict);
    }
    if (item.unseen.templates) unseen[item.group + ", unseen phrasings"].add(verdict);
    if (item.group != "story") return;
    ++stories;
    last += item.baselines.last == item.truth ? 1 : 0;
    frequent += item.baselines.frequent == item.truth ? 1 : 0;
  }
  double part(std::size_t n) const {
    return stories == 0 ? 0.0 : static_cast<double>(n) / static_cast<double>(stories);
  }
};

world::SuiteOptions suite_options(const EvalCommand& c) {
  world::SuiteOptions options;
  options.seed = c.seed;
  options.stories = c.stories;
  options.sums = c.sums;
  options.tools = c.tools;
  for (const world::Effort effort : {world::Effort::low, world::Effort::high, world::Effort::max}) {
    if (c.effort == world::effort_name(effort)) options.effort = effort;
  }
  return options;
}

// Items whose prompt is a user message of the folder's training documents.
std::size_t shared_with(const std::string& folder, const std::vector<SuiteItem>& items) {
  std::unordered_set<std::string> prompts;
  for (const SuiteItem& item : items) prompts.insert(item.prompt() + "\n" + item.tools.dump());
  const fs::path train = fs::path(folder) / "train";
  if (!fs::is_directory(train)) {
    fail("{}: no folder `train` there; give a folder that `triax data` wrote", folder);
  }
  std::unordered_set<std::string> shared;
  for (const auto& entry : fs::directory_iterator(train)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const Json document = Json::parse(line, nullptr, false);
      if (document.is_discarded() || !document.contains("messages")) continue;
      const std::string tools =
          document.contains("tools") ? document["tools"].dump() : Json::array().dump();
      for (const Json& message : document["messages"]) {
        if (message["role"] != "user") continue;
        const std::string key = message["content"].get<std::string>() + "\n" + tools;
        if (prompts.contains(key)) shared.insert(key);
      }
    }
  }
  return shared.size();
}

void print_tallies(const char* title, const std::map<std::string, Tally>& tallies) {
  fmt::print("\n{:<44} {:>7} {:>9} {:>12}\n", title, "items", "right", "well-formed");
  for (const auto& [name, tally] : tallies) {
    fmt::print("{:<44} {:>7} {:>9} {:>12}\n", name, grouped(tally.items),
               fmt::format("{:.1f} %", 100 * tally.share()),
               fmt::format("{:.1f} %", 100 * tally.formed()));
  }
}

void print_text(const Report& r, const LoadProbe::Load& load, const SuiteRunResult& run,
                double seconds, std::optional<std::size_t> shared) {
  print_tallies("group", r.groups);
  print_tallies("kind", r.kinds);
  print_tallies("effort", r.efforts);
  print_tallies("unseen", r.unseen);
  fmt::print("\n");
  if (r.stories > 0) {
    fmt::print("baselines      the last mention {:.1f} %, the most frequent mention {:.1f} %\n",
               100 * r.part(r.last), 100 * r.part(r.frequent));
  }
  for (const auto& [effort, sum] : r.thinking) {
    fmt::print("thinking {:<5} {:.1f} tokens a turn\n", effort,
               static_cast<double>(sum.first) / static_cast<double>(sum.second));
  }
  if (load.layers > 0) {
    fmt::print("experts        {} dead of {} in {} layers; max/mean load {:.2f} in the worst\n",
               load.dead, load.experts * load.layers, load.layers, load.max_over_mean);
  }
  if (shared) fmt::print("in training    {} items\n", *shared);
  fmt::print("tokens         {} of prompts, {} generated, in {}\n", grouped(run.prompt_tokens),
             grouped(run.generated_tokens), human_seconds(seconds));
}

Json tallies_json(const std::map<std::string, Tally>& tallies) {
  Json out = Json::object();
  for (const auto& [name, tally] : tallies) out[name] = tally.json();
  return out;
}

void print_json(const EvalCommand& c, const Report& r, const LoadProbe::Load& load,
                const SuiteRunResult& run, double seconds, std::optional<std::size_t> shared) {
  Json out;
  out["suite"] = c.suite;
  out["seed"] = c.seed;
  out["groups"] = tallies_json(r.groups);
  out["kinds"] = tallies_json(r.kinds);
  out["efforts"] = tallies_json(r.efforts);
  out["unseen"] = tallies_json(r.unseen);
  out["baselines"] = {{"last_mention", r.part(r.last)},
                      {"most_frequent_mention", r.part(r.frequent)}};
  for (const auto& [effort, sum] : r.thinking) {
    out["thinking_tokens"][effort] =
        static_cast<double>(sum.first) / static_cast<double>(sum.second);
  }
  out["experts"] = {{"dead", load.dead}, {"max_over_mean", load.max_over_mean}};
  if (shared) out["shared_with_training"] = *shared;
  out["prompt_tokens"] = run.prompt_tokens;
  out["generated_tokens"] = run.generated_tokens;
  out["seconds"] = seconds;
  fmt::print("{}\n", out.dump(2));
}

}  // namespace

int execute_suite(const EvalCommand& c) {
  const std::vector<SuiteItem> items = world::make_suite(suite_options(c));
  std::optional<std::size_t> shared;
  if (!c.data.empty()) shared = shared_with(c.data, items);
  std::ofstream out;
  if (!c.items.empty()) {
    out.open(c.items, std::ios::binary);
    if (!out) fail("{}: cannot be written", c.items);
  }
  Session session(c, c.precision);
  LoadProbe probe;
  session.ctx.probe = &probe;
  const InterruptGuard guard;
  const Stopwatch watch;
  SuiteRunResult run;
  {
    Progress progress("answering", Unit::items, items.size());
    run = run_suite(session, items, {.batch = c.batch}, [&](std::size_t done) {
      progress.update(done);
      return !interrupted();
    });
  }
  session.ctx.probe = nullptr;
  if (interrupted()) throw Interrupted();
  Report report;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const world::Verdict verdict = world::judge(items[i], run.answers[i]);
    report.add(items[i], verdict, run.thinking_tokens[i]);
    if (out.is_open()) {
      out << world::item_record(items[i], run.answers[i], verdict)
                 .dump(-1, ' ', false, Json::error_handler_t::replace)
          << '\n';
    }
  }
  if (out.is_open() && !out.flush()) fail("{}: cannot be written; is the disk full?", c.items);
  const LoadProbe::Load load = probe.load(session.config().num_experts);
  if (c.json) {
    print_json(c, report, load, run, watch.seconds(), shared);
  } else {
    print_text(report, load, run, watch.seconds(), shared);
  }
  return 0;
}

}  // namespace triax::cli
