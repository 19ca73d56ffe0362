// `triax selftest`: does this build compute K3 right on this machine? Does a server keep its
// contract?
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "triax/cli/commands.h"
#include "triax/cli/format.h"
#include "triax/cli/selftest_checks.h"
#include "triax/cli/server_checks.h"
#include "triax/core/clock.h"

namespace triax::cli {
namespace {

// Prints each result as it comes, or collects them for JSON.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  // A check that throws has failed.
  template <class Check>
  void run(const char* what, Check&& check) {
    CheckResult r;
    try {
      r = check();
    } catch (const std::exception& e) {
      r = {what, false, e.what()};
    }
    add(std::move(r));
  }
  void add(CheckResult r) {
    if (!json_) {
      fmt::print("{} {:<56} {}\n", r.passed ? "✓" : "✗", r.name, r.detail);
      std::fflush(stdout);
    }
    results_.push_back(std::move(r));
  }
  const std::vector<CheckResult>& results() const { return results_; }
  std::size_t failed() const {
    return static_cast<std::size_t>(std::count_if(results_.begin(), results_.end(),
                                                  [](const CheckResult& r) { return !r.passed; }));
  }

 private:
  bool json_;
  std::vector<CheckResult> results_;
};

std::vector<Isa> available() {
  std::vector<Isa> out;
  for (int i = 0; i < kIsaCount; ++i) {
    if (isa_available(static_cast<Isa>(i))) out.push_back(static_cast<Isa>(i));
  }
  return out;
}

void check_model(Report& report, const GoldenModel& golden, Isa chosen, std::size_t threads) {
  ThreadPool pool(1);  // models so small are not faster with more
  for (const Isa isa : available()) {
    use_isa(isa);
    report.run("f32", [&] { return check_f32(golden, pool); });
    report.run("bf16", [&] { return check_bf16(golden, pool); });
  }
  use_isa(chosen);
  for (const Precision p : {Precision::f32, Precision::bf16}) {
    report.run("threads", [&] { return check_threads(golden, p, threads); });
    report.run("batch", [&] { return check_batch(golden, p, pool); });
    report.run("fork", [&] { return check_fork(golden, p, pool); });
  }
}

std::string verdict(const Report& report) {
  if (report.failed() == 0) {
    return fmt::format("this build computes K3 right on this machine ({} checks)",
                       report.results().size());
  }
  std::string names;
  for (const CheckResult& r : report.results()) {
    if (!r.passed) names += (names.empty() ? "" : "; ") + r.name;
  }
  return fmt::format(
      "this build does not compute K3 right on this machine: {} of {} checks differ: {}",
      report.failed(), report.results().size(), names);
}

// `more`: members of the command at hand.
void print_json(const Report& report, double seconds, const std::string& said,
                const nlohmann::ordered_json& more) {
  nlohmann::ordered_json json;
  json["passed"] = report.failed() == 0;
  json["verdict"] = said;
  json.update(more);
  json["seconds"] = seconds;
  json["checks"] = nlohmann::ordered_json::array();
  for (const CheckResult& r : report.results()) {
    json["checks"].push_back({{"name", r.name}, {"passed", r.passed}, {"detail", r.detail}});
  }
  fmt::print("{}\n", json.dump(2));
}

int check_server(const SelftestCommand& c) {
  const Stopwatch watch;
  std::string key = c.api_key;
  if (const char* known = std::getenv("TRIAX_API_KEY"); key.empty() && known != nullptr) {
    key = known;
  }
  const HttpClient client(ServerAddress::parse(c.server), key,
                          std::chrono::seconds(c.timeout_seconds));
  Report report(c.json);
  ServerChecks checks(client, [&](const CheckResult& r) {
    CheckResult one_line = r;
    if (one_line.detail.size() > 160) one_line.detail = one_line.detail.substr(0, 160) + "...";
    std::replace(one_line.detail.begin(), one_line.detail.end(), '\n', ' ');
    report.add(std::move(one_line));
  });
  checks.run(c.profile);
  const char* profile = checks.profile() == ServerProfile::kimi ? "kimi" : "open";
  const std::size_t all = report.results().size(), failed = report.failed();
  const std::string said = fmt::format("{} passed, {} failed", all - failed, failed);
  if (c.json) {
    print_json(report, watch.seconds(), said,
               {{"server", c.server}, {"model", checks.model()}, {"profile", profile}});
  } else {
    fmt::print("\n{} at {}, profile {}, {}\n", checks.model(), c.server, profile,
               human_seconds(watch.seconds()));
    for (const CheckResult& r : report.results()) {
      if (!r.passed) fmt::print("failed: {}: {}\n", r.name, r.detail);
    }
    fmt::print("{}\n", said);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int execute(const SelftestCommand& c) {
  if (!c.server.empty()) return check_server(c);
  const Stopwatch watch;
  const Isa chosen = kernels().isa;
  const std::size_t threads =
      std::max<std::size_t>(4, c.threads == 0 ? ThreadPool::available_cores() : c.threads);
  Report report(c.json);
  report.run("tokenizer", check_tokenizer);
  for (const char* variant : {"tiny-a", "tiny-c"}) {
    std::optional<GoldenModel> golden;
    report.run(variant, [&] {
      golden.emplace(variant);
      return CheckResult{fmt::format("{}: opens, every tensor checked", variant), true,
                         fmt::format("{} tensors", golden->loaded().checkpoint->tensors().size())};
    });
    if (golden) check_model(report, *golden, chosen, threads);
  }
  use_isa(chosen);
  if (c.json) {
    print_json(report, watch.seconds(), verdict(report), {{"instruction_set", kernels().name}});
  } else {
    fmt::print("\n{}, {}; `run` uses {}\n", verdict(report), human_seconds(watch.seconds()),
               isa_name(chosen));
  }
  return report.failed() == 0 ? 0 : 1;
}

}  // namespace triax::cli
