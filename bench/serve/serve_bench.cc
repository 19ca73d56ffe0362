// Load on `triax serve` over HTTP: many streams whose answers are known beforehand, rates by users,
// and a short request beside a long prompt.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "load_client.h"
#include "load_report.h"
#include "server_process.h"
#include "triax/core/error.h"
#include "triax/core/rng.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax::bench {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr const char* kCompletions = "/v1/completions";
constexpr std::size_t kPrintable = 94, kMerges = 512;  // tokens of the made-up vocabulary

struct Options {
  std::string triax = "triax", model, json_file;
  std::vector<std::string> serve;  // more words for the server
  std::size_t clients = 500, pool = 256, longest_prompt = 600, longest_answer = 160;
  double seconds = 0, minutes = 0, rate = 0;
  std::uint64_t seed = 1;
  std::vector<std::size_t> users;
  std::size_t answer_tokens = 48, prompt_tokens = 32, rounds = 1;
  std::size_t long_prompt = 0, shorts = 6;
};

double since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}
Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  double unit() {
    return static_cast<double>(splitmix64_at(seed_, n_++) >> 11) / 9007199254740992.0;
  }
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(unit() * static_cast<double>(n));
  }
  // Short ones are many, long ones few.
  std::size_t length(std::size_t least, std::size_t most) {
    const double l = static_cast<double>(least), m = static_cast<double>(most);
    return static_cast<std::size_t>(l * std::pow(m / l, unit()));
  }

 private:
  std::uint64_t seed_, n_ = 0;
};

std::string words_of(Dice& dice, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) {
    for (std::size_t n = 2 + dice.below(7); n > 0; --n) {
      out += static_cast<char>('a' + dice.below(26));
    }
    out += ' ';
  }
  return out.substr(0, bytes);
}

// Bans what is no printable text of its own (the made-up vocabulary begins with the printable
// bytes, then the others, then pairs of letters, then special ids): every token shows when it came.
json visible_tokens() {
  json bias = json::object();
  for (std::size_t id = kPrintable; id < 256 + kMerges + 256; ++id) {
    if (id < 256 || id >= 256 + kMerges) bias[std::to_string(id)] = -100;
  }
  return bias;
}

// A request and what it must say.
struct Known {
  std::string body;
  std::size_t tokens = 0;
  std::string expected;
};

// The server of a run; without a model, a tiny one is made.
class Bench {
 public:
  explicit Bench(const Options& options) : o_(options) {
    if (!o_.model.empty() && fs::exists(fs::path(o_.model) / "tiktoken.model")) return;
    folder_ = fs::temp_directory_path() / fmt::format("triax-bench-serve-{}", ::getpid());
    fs::create_directories(folder_);
    if (!o_.model.empty()) {
      // A random model without a vocabulary is served from links beside a made-up one.
      for (const auto& file : fs::directory_iterator(o_.model)) {
        fs::create_symlink(fs::absolute(file.path()), folder_ / file.path().filename());
      }
      o_.model = folder_.string();
      write_byte_tokenizer(o_.model, kMerges);
      return;
    }
    o_.model = (folder_ / "tiny").string();
    run_program({o_.triax, "synth", "--config", "tiny", "--out", o_.model});
    write_byte_tokenizer(o_.model, kMerges);
    tiny_ = true;
  }
  ~Bench() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  json load();
  json by_users();
  json beside_a_long_prompt();

 private:
  std::vector<std::string> words(std::size_t users) const;
  std::vector<Known> known_requests(ServerProcess& server);
  double round_of(ServerProcess& server, std::size_t users, std::size_t round, LoadFigures& f);
  std::string random_prompt(std::size_t tokens, std::size_t tag, std::size_t answer) const;

  Options o_;
  fs::path folder_;
  bool tiny_ = false;
};

std::vector<std::string> Bench::words(std::size_t users) const {
  std::vector<std::string> out{"-m",
                               o_.model,
                               "--users",
                               std::to_string(std::max<std::size_t>(users, 1)),
                               "--queue",
                               std::to_string(4 * users + 64),
                               "--connections",
                               std::to_string(2 * users + 64)};
  out.insert(out.end(), o_.serve.begin(), o_.serve.end());
  return out;
}

// Asks each alone, one after the other.
std::vector<Known> Bench::known_requests(ServerProcess& server) {
  Dice dice(o_.seed);
  const json bias = visible_tokens();
  std::vector<Known> out;
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < o_.pool; ++i) {
    Known k;
    k.tokens = dice.length(8, o_.longest_answer);
    json body{
        {"prompt", fmt::format("{} {}", i, words_of(dice, dice.length(16, o_.longest_prompt)))},
        {"max_tokens", k.tokens},
        {"ignore_eos", true},
        {"stream", true},
        {"temperature", i % 2},
        {"seed", i}};
    if (tiny_) body["logit_bias"] = bias;
    k.body = body.dump();
    LoadClient client(server.port());
    client.start(i, kCompletions, k.body);
    std::vector<Answer> answers;
    while (answers.empty()) answers = client.wait(after(60));
    const Answer& a = answers[0];
    if (a.status != 200 || !a.done || a.completion_tokens != k.tokens) {
      fail("request {} alone: status {}, {} of {} tokens: {}", i, a.status, a.completion_tokens,
           k.tokens, in_quotes(a.body));
    }
    k.expected = a.text;
    out.push_back(std::move(k));
    if (i % 16 == 15) {
      fmt::print(stderr, "\ralone: {} of {}, to go {:.0f} s ", i + 1, o_.pool,
                 since(begin) / static_cast<double>(i + 1) * static_cast<double>(o_.pool - i - 1));
    }
  }
  fmt::print(stderr, "\n");
  return out;
}

// What a finished request adds to the figures.
void take(const Answer& a, const Known& k, bool each_token_shows, LoadFigures& f) {
  if (a.status == 503) {
    ++f.refused;
    return;
  }
  if (a.status != 200 || !a.done) {
    ++f.lost;
    return;
  }
  ++f.answers;
  const bool all = a.completion_tokens == k.tokens && (!each_token_shows || a.events == k.tokens);
  if (a.text != k.expected || !all) ++f.wrong;
  f.tokens += a.completion_tokens;
  f.prompt_tokens += a.prompt_tokens;
  f.cached_tokens += a.cached_tokens;
  f.first.push_back(std::chrono::duration<float>(a.first - a.sent).count());
  f.whole.push_back(std::chrono::duration<float>(a.last - a.sent).count());
  f.gaps.insert(f.gaps.end(), a.gaps.begin(), a.gaps.end());
}

json Bench::load() {
  ServerProcess server(o_.triax, words(o_.clients));
  const std::vector<Known> known = known_requests(server);
  const double seconds = o_.minutes > 0 ? 60 * o_.minutes : o_.seconds > 0 ? o_.seconds : 30;
  Dice dice(o_.seed + 1);
  LoadFigures f;
  f.clients = o_.clients;
  f.memory_from = std::min(60.0, seconds / 10);
  LoadClient client(server.port());
  const auto begin = Clock::now();
  double told = 0, looked = 0, arrival = 0;
  std::uint64_t told_events = 0;
  bool going = true;
  std::size_t most_open = 0;
  while (going || client.open() > 0) {
    const double now = since(begin);
    going = now < seconds;
    if (now > seconds + 120) fail("{} answers did not come within two minutes", client.open());
    const auto next = [&] {
      const std::size_t i = dice.below(known.size());
      client.start(i, kCompletions, known[i].body);
    };
    // Open loop: requests come when they come. Else so many clients, each with its next request.
    for (; going && o_.rate > 0 && arrival <= now; arrival -= std::log(1 - dice.unit()) / o_.rate) {
      next();
    }
    while (going && o_.rate <= 0 && client.open() < o_.clients) next();
    most_open = std::max(most_open, client.open());
    for (const Answer& a : client.wait(after(o_.rate > 0 ? 0.005 : 0.1))) {
      take(a, known[a.tag], tiny_, f);
    }
    if (now - looked >= std::min(2.0, seconds / 20)) {
      f.memory.emplace_back(now, server.resident_bytes());
      looked = now;
    }
    if (now - told >= 1) {
      fmt::print(
          stderr,
          "\r{:.0f} s, {} open, {} answers, {} wrong, {:.0f} tokens/s, {} MiB, to go {:.0f} s   ",
          now, client.open(), f.answers, f.wrong + f.lost,
          static_cast<double>(client.events() - told_events) / (now - told),
          server.resident_bytes() >> 20, std::max(0.0, seconds - now));
      told_events = client.events();
      told = now;
    }
  }
  fmt::print(stderr, "\n");
  f.seconds = since(begin);
  json out = figures_json(f);
  out["most_open"] = most_open;
  out["server_gone"] = server.metric("triax_http_gone_total");
  out["server_exit"] = server.stop();
  std::fputs(figures_text(out).c_str(), stdout);
  out["good"] =
      f.wrong == 0 && f.lost == 0 && f.refused == 0 && f.answers > 0 && out["server_exit"] == 0;
  return out;
}

// A prompt of random ids: no two requests share a start.
std::string Bench::random_prompt(std::size_t tokens, std::size_t tag, std::size_t answer) const {
  json ids = json::array();
  for (std::size_t i = 0; i < tokens; ++i) {
    ids.push_back(splitmix64_at(o_.seed + 1000 * tag, i) % kMerges);  // every vocabulary has those
  }
  json body{{"prompt", ids},
            {"max_tokens", answer},
            {"ignore_eos", true},
            {"temperature", 0},
            {"stream", true}};
  if (!folder_.empty()) {
    json printable = json::object();  // of a made-up vocabulary: each token shows when it came
    for (std::size_t id = 0; id < kPrintable; ++id) printable[std::to_string(id)] = 100;
    body["logit_bias"] = printable;
  }
  return body.dump();
}

// All users ask at once; seconds until the last answer is whole.
double Bench::round_of(ServerProcess& server, std::size_t users, std::size_t round,
                       LoadFigures& f) {
  LoadClient client(server.port());
  const auto begin = Clock::now();
  for (std::size_t u = 0; u < users; ++u) {
    client.start(
        u, kCompletions,
        random_prompt(o_.prompt_tokens, 100 * users + 10000 * round + u + 1, o_.answer_tokens));
  }
  while (client.open() > 0) {
    for (const Answer& a : client.wait(after(1))) {
      Known k{"", o_.answer_tokens, a.text};
      take(a, k, false, f);
    }
    fmt::print(stderr, "\r{} users, round {}: {:.0f} s, {} open  ", users, round + 1, since(begin),
               client.open());
  }
  return since(begin);
}

json Bench::by_users() {
  const std::size_t most = *std::max_element(o_.users.begin(), o_.users.end());
  ServerProcess server(o_.triax, words(most));
  LoadFigures warm;
  round_of(server, 1, 99, warm);
  json out;
  std::vector<double> rates;
  bool good = true;
  std::vector<LoadFigures> figures(o_.users.size());
  for (std::size_t round = 0; round < o_.rounds; ++round) {
    for (std::size_t i = 0; i < o_.users.size(); ++i) {
      figures[i].clients = o_.users[i];
      figures[i].seconds += round_of(server, o_.users[i], round, figures[i]);
    }
  }
  fmt::print(stderr, "\n");
  for (LoadFigures& f : figures) {
    json one = figures_json(f);
    one.erase("memory");
    rates.push_back(one["tokens_per_second"]);
    good = good && f.lost == 0 && f.wrong == 0 && f.refused == 0;
    fmt::print(
        "{:>4} users: {:7.2f} tokens/s, {:.2f} times the first; first token p50 {:.2f} s, gap p50 "
        "{:.3f} s\n",
        f.clients, rates.back(), rates.back() / rates[0],
        one["first_token_seconds"]["p50"].get<double>(), one["gap_seconds"]["p50"].get<double>());
    out["users"].push_back(std::move(one));
  }
  for (std::size_t i = 1; i < rates.size(); ++i) {
    out["ratios"].push_back(rates[i] / rates[i - 1]);
    fmt::print("{} users over {}: {:.2f}\n", o_.users[i], o_.users[i - 1], rates[i] / rates[i - 1]);
  }
  server.stop();
  out["good"] = good;
  return out;
}

json Bench::beside_a_long_prompt() {
  ServerProcess server(o_.triax, words(8));
  LoadClient client(server.port());
  constexpr std::size_t kLong = 1000000;
  LoadFigures alone, f;
  const auto short_one = [&](std::size_t tag) { return random_prompt(24, tag, 8); };
  const auto ask = [&](std::size_t tag, LoadFigures& to) {
    client.start(tag, kCompletions, short_one(tag));
    bool came = false;
    while (!came) {
      for (const Answer& a : client.wait(after(1))) {
        if (a.tag != tag) return false;  // the long one has ended
        take(a, Known{"", 8, a.text}, false, to);
        came = true;
      }
    }
    return true;
  };
  ask(1, alone);
  ask(2, alone);
  const double before = server.metric("triax_prefill_tokens_total");
  client.start(kLong, kCompletions, random_prompt(o_.long_prompt, kLong, 8));
  double most_a_pass = 0, read = 0;
  const auto begin = Clock::now();
  const auto look = [&] {
    const double tokens = server.metric("triax_prefill_tokens_total") - before;
    most_a_pass = std::max(most_a_pass, tokens - read);
    read = tokens;
  };
  while (read < 1 && since(begin) < 600) {
    client.wait(after(0.02));
    look();
  }
  for (std::size_t i = 0; i < o_.shorts; ++i) {
    if (!ask(10 + i, f)) break;
    read = server.metric("triax_prefill_tokens_total") - before;
    const double reached = read + 1;
    while (read < reached && client.peek(kLong) != nullptr) {
      client.wait(after(0.02));
      look();
    }
    fmt::print(stderr,
               "\rbeside a prompt of {}: {} read, {:.0f} tokens/s, first token after {:.2f} s  ",
               o_.long_prompt, read, read / since(begin), f.first.back());
  }
  const bool still = client.peek(kLong) != nullptr;
  const double rate = read / since(begin);
  client.leave(kLong);
  fmt::print(stderr, "\n");
  server.stop();
  json out;
  out["long_prompt"] = o_.long_prompt;
  out["prefill_tokens_per_second"] = rate;
  out["largest_piece_seen"] = most_a_pass;
  out["short_first_token_alone"] = quantile(alone.first, 0.5);
  out["short_first_token_p50"] = quantile(f.first, 0.5);
  out["short_first_token_max"] = quantile(f.first, 1);
  out["asked"] = f.first.size();
  out["good"] = still && f.lost == 0 && !f.first.empty();
  fmt::print(
      "beside a prompt of {} tokens (read at {:.1f} tokens/s, at most {:.0f} between two looks): "
      "first token of a short request after {:.2f} s (median of {}), {:.2f} s at most; alone "
      "{:.2f} s\n",
      o_.long_prompt, rate, most_a_pass, quantile(f.first, 0.5), f.first.size(),
      quantile(f.first, 1), quantile(alone.first, 0.5));
  return out;
}

int run(const Options& o) {
  json out;
  {
    Bench bench(o);
    if (!o.users.empty()) {
      out = bench.by_users();
    } else if (o.long_prompt > 0) {
      out = bench.beside_a_long_prompt();
    } else {
      out = bench.load();
    }
  }
  if (!o.json_file.empty()) std::ofstream(o.json_file) << out.dump(1) << "\n";
  return out["good"] == true ? 0 : 1;
}

}  // namespace
}  // namespace triax::bench

int main(int argc, char** argv) {
  using namespace triax::bench;
  CLI::App app("load on `triax serve`; without -m on a tiny model that is made for it");
  Options o;
  app.add_option("--triax", o.triax, "the program")->capture_default_str();
  app.add_option("-m,--model", o.model, "model folder");
  app.add_option("--serve", o.serve, "more words for `triax serve`, such as --serve=--threads=2");
  app.add_option("--json", o.json_file, "write the figures to this file");
  app.add_option("--seed", o.seed, "of requests and arrivals")->capture_default_str();
  app.add_option("--clients", o.clients, "streams at once")->capture_default_str();
  app.add_option("--rate", o.rate, "requests a second, at random times, instead of --clients");
  app.add_option("--minutes", o.minutes, "length of the run");
  app.add_option("--seconds", o.seconds, "the same (default 30)");
  app.add_option("--pool", o.pool, "different requests")->capture_default_str();
  app.add_option("--longest-prompt", o.longest_prompt, "bytes")->capture_default_str();
  app.add_option("--longest-answer", o.longest_answer, "tokens")->capture_default_str();
  app.add_option("--users", o.users, "rates with so many users at once, such as 1,8,32")
      ->delimiter(',');
  app.add_option("--rounds", o.rounds, "of --users")->capture_default_str();
  app.add_option("--answer-tokens", o.answer_tokens, "of --users")->capture_default_str();
  app.add_option("--prompt-tokens", o.prompt_tokens, "of --users")->capture_default_str();
  app.add_option("--short-under-prefill", o.long_prompt,
                 "tokens of a prompt beside which short requests are asked");
  app.add_option("--shorts", o.shorts, "of --short-under-prefill")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 1;
  }
}
