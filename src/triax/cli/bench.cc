// `triax bench`: how fast, and how close to what this machine can do.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "triax/cli/bench_report.h"
#include "triax/cli/commands.h"
#include "triax/cli/format.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/progress.h"
#include "triax/kernels/kernels.h"

namespace triax::cli {
namespace {

using Json = nlohmann::ordered_json;

// The better of this measurement and `before`: neighbours only take away.
MachineLimits measure_limits(ThreadPool& pool, std::size_t mib, const MachineLimits& before) {
  if (mib == 0) return before;
  const Progress progress("limits of this machine", Unit::bytes);
  const Peak peak = measure_peak(pool, kernels().isa);
  return {std::max(before.read_bytes_per_second, measure_read_bandwidth(pool, mib << 20)),
          peak.operations_per_second > before.peak.operations_per_second ? peak : before.peak};
}

// Opening and the first pass of one token: what a user waits before anything can come.
double first_token_seconds(const Session& session, BenchRunner& runner) {
  const Sample first = runner.measure({true, 1, 0, 1}, "first token");
  return session.load_seconds + first.passes.seconds;
}

Json settings_json(const BenchCommand& c, const Session& s) {
  Json out;
  out["model"] = s.loaded->folder.string();
  out["precision"] = c.precision == Precision::f32 ? "f32" : "bf16";
  out["trunk"] = trunk_name(s.loaded->trunk);
  out["isa"] = kernels().name;
  out["threads"] = s.threads;
  out["chunk"] = c.chunk;
  out["ids_seed"] = c.ids_seed;
  out["load_seconds"] = s.load_seconds;
  out["weight_bytes"] = s.loaded->checkpoint->total_bytes();
  return out;
}

struct Report {
  const BenchCommand& command;
  const Session& session;
  const std::vector<BenchResult>& results;
  MachineLimits limits;
  MemoryUse memory;
  double first_token_seconds = 0;
};

void print_json(const Report& r) {
  Json out = settings_json(r.command, r.session);
  out["first_token_seconds"] = r.first_token_seconds;
  out["machine"] = limits_json(r.limits);
  out["measurements"] = Json::array();
  for (const BenchResult& result : r.results) {
    out["measurements"].push_back(result_json(result, r.limits, r.command.profile));
  }
  out["memory"] = memory_json(r.memory);
  fmt::print("{}\n", out.dump(2));
}

void print_text(const Report& r) {
  const Session& s = r.session;
  fmt::print("{}: {} of weights, trunk {}, {}, {}, {} threads\n", s.loaded->folder.string(),
             human_bytes(s.loaded->checkpoint->total_bytes()), trunk_name(s.loaded->trunk),
             r.command.precision == Precision::f32 ? "f32" : "bf16", kernels().name, s.threads);
  fmt::print("opened in {}, first token after {}; peak memory {}, of it {} not from files\n",
             human_seconds(s.load_seconds), human_seconds(r.first_token_seconds),
             human_bytes(r.memory.peak), human_bytes(r.memory.own));
  if (r.limits.read_bytes_per_second > 0) {
    fmt::print("this machine, same threads: reads {:.2f} GB/s, multiply-adds {:.0f} GFLOP/s ({})\n",
               r.limits.read_bytes_per_second / 1e9, r.limits.peak.operations_per_second / 1e9,
               r.limits.peak.instruction);
  }
  fmt::print("\n{}", result_heading());
  for (const BenchResult& result : r.results) {
    fmt::print("{}", result_line(result, r.limits));
  }
  if (!r.command.profile) return;
  for (const BenchResult& result : r.results) {
    fmt::print("\n{}\n{}", result.what.name(), profile_table(result.passes()));
  }
}

// ---- Measurements by name, for a script ---------------------------------------------------------

Json answer(const std::string& name, const BenchCommand& c, Session& session, BenchRunner& runner) {
  if (name == "warm") {
    runner.warm_up();
    return {{"name", name}};
  }
  Json out;
  if (name == "memory") {
    out = memory_json(memory_use());
  } else if (name == "limits") {
    out = limits_json(measure_limits(session.pool, c.limits_mib, {}));
    if (out.is_null()) out = Json::object();
  } else {
    out = sample_json(runner.measure(parse_measurement(name), name));
  }
  out["name"] = name;
  return out;
}

void say(const Json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

int serve(const BenchCommand& c, Session& session, BenchRunner& runner) {
  Json ready = settings_json(c, session);
  ready["name"] = "ready";
  say(ready);
  for (std::string name; std::getline(std::cin, name);) {
    try {
      say(answer(name, c, session, runner));
    } catch (const Error& e) {  // the next name may go better
      say({{"name", name}, {"error", e.what()}});
    }
  }
  return 0;
}

}  // namespace

int execute(const BenchCommand& c) {
  const std::vector<Measurement> plan = plan_measurements(c);
  const InterruptGuard guard;
  if (c.serve) {
    Session session(c, c.precision);
    BenchRunner runner(session, c.chunk, c.ids_seed);
    return serve(c, session, runner);
  }
  Session session(c, c.precision);
  BenchRunner runner(session, c.chunk, c.ids_seed);
  const double first_token = first_token_seconds(session, runner);
  runner.warm_up();
  std::vector<BenchResult> results;
  for (const Measurement& what : plan) {
    results.push_back({what, {}});
    for (std::size_t run = 1; run <= c.repeats; ++run) {
      const std::string label = fmt::format("{}, {} of {}", what.name(), run, c.repeats);
      results.back().samples.push_back(runner.measure(what, label));
    }
  }
  // After the model's own peak was read: the limits need a large buffer.
  const MemoryUse memory = memory_use();
  MachineLimits limits = measure_limits(session.pool, c.limits_mib, {});
  limits = measure_limits(session.pool, c.limits_mib, limits);
  const Report report{c, session, results, limits, memory, first_token};
  c.json ? print_json(report) : print_text(report);
  return 0;
}

}  // namespace triax::cli
