// Constrained decoding at a full vocabulary: how long a schema compiles, and what a token costs
// (mask and bookkeeping) on one core.
//
//   triax_bench_grammar TOKENIZER-FOLDER SCHEMAS.json [TOKENS]
//
// SCHEMAS is a list of objects with a `schema`. Each becomes the parameters of a tool whose call is
// forced, and the format of an answer; both are walked at random, as if a model wrote them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "triax/core/clock.h"
#include "triax/core/error.h"
#include "triax/core/rng.h"
#include "triax/sampling/grammar/grammar.h"
#include "triax/tokenizer/rank_file.h"

namespace {

using namespace triax;
using namespace triax::grammar;

void report(const char* what, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  double sum = 0;
  for (const double s : seconds) sum += s;
  const auto at = [&](double share) {
    return 1e3 *
           seconds[std::min(seconds.size() - 1,
                            static_cast<std::size_t>(share * static_cast<double>(seconds.size())))];
  };
  fmt::print("{:<34} {:>7} avg {:.4f} ms  p50 {:.4f}  p95 {:.4f}  p99 {:.4f}  most {:.4f}\n", what,
             seconds.size(), 1e3 * sum / static_cast<double>(seconds.size()), at(0.5), at(0.95),
             at(0.99), 1e3 * seconds.back());
}

// A random allowed token: now and then one that ends something, or no text would end.
std::int32_t choose(const std::vector<std::uint64_t>& mask,
                    const std::vector<std::int32_t>& closing, double hurry, Rng& rng) {
  if (rng.uniform() < hurry) {
    const std::size_t start = static_cast<std::size_t>(rng.next() % closing.size());
    for (std::size_t i = 0; i < closing.size(); ++i) {
      const std::int32_t id = closing[(start + i) % closing.size()];
      if (mask_allows(mask, static_cast<std::size_t>(id))) return id;
    }
  }
  const std::size_t words = mask.size(), start = static_cast<std::size_t>(rng.next() % words);
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = mask[(start + i) % words];
    if (word == 0) continue;
    std::size_t bit = static_cast<std::size_t>(rng.next() % 64);
    while ((word >> bit & 1) == 0) bit = (bit + 1) % 64;
    return static_cast<std::int32_t>((start + i) % words * 64 + bit);
  }
  fail("no token is allowed");
}

struct Times {
  std::vector<double> compile, token, first;  // first: the first 16 tokens of each grammar
};

void walk(const std::shared_ptr<const Grammar>& grammar, std::size_t tokens,
          const std::vector<std::int32_t>& closing, Rng& rng, Times& times) {
  GrammarMatcher matcher(grammar);
  std::vector<std::uint64_t> mask(grammar->index->words());
  for (std::size_t i = 0; i < tokens && !matcher.finished(); ++i) {
    Stopwatch clock;
    matcher.fill_mask(mask);
    double spent = clock.seconds();
    const std::int32_t id = choose(mask, closing, i > tokens / 2 ? 0.7 : 0.1, rng);
    clock.restart();
    if (!matcher.accept(id)) fail("token {} is in the mask but not accepted", id);
    spent += clock.seconds();
    times.token.push_back(spent);
    if (i < 16) times.first.push_back(spent);
  }
}

int run(int argc, char** argv) {
  if (argc < 3) {
    fmt::print("usage: {} TOKENIZER-FOLDER SCHEMAS.json [TOKENS]\n", argv[0]);
    return 2;
  }
  const std::size_t tokens = argc > 3 ? std::stoul(argv[3]) : 200;
  const Tokenizer tokenizer = Tokenizer::load(argv[1]);
  Stopwatch clock;
  const auto index = std::make_shared<const TokenIndex>(tokenizer);
  fmt::print("vocabulary of {}: index in {:.1f} ms, {} tree nodes\n", index->vocab(),
             1e3 * clock.seconds(), index->tree().size());
  std::vector<std::int32_t> closing = tokenizer.stop_ids();
  for (const Role role : {Role::Close, Role::Sep, Role::EndOfMsg}) {
    closing.push_back(tokenizer.required_id(role));
  }
  for (const char c : {'}', ']', '"', ':', ','}) closing.push_back(tokenizer.ranks().find_byte(c));
  Rng rng(1);
  Times document, turn;
  for (const auto& entry : nlohmann::ordered_json::parse(read_text_file(argv[2]))) {
    const std::string schema = entry["schema"].dump();
    clock.restart();
    const auto grammar = compile_document(index, schema);
    document.compile.push_back(clock.seconds());
    walk(grammar, tokens, closing, rng, document);
    TurnRules rules;
    rules.opened = TurnRules::Opened::response;
    rules.tools = {{"tool", schema}};
    rules.choice = TurnRules::Choice::required;
    clock.restart();
    const auto calls = compile_turn(index, rules);
    turn.compile.push_back(clock.seconds());
    walk(calls, tokens, closing, rng, turn);
  }
  report("documents: compile", document.compile);
  report("documents: mask + accept a token", document.token);
  report("documents: the first 16 tokens", document.first);
  report("turns: compile", turn.compile);
  report("turns: mask + accept a token", turn.token);
  report("turns: the first 16 tokens", turn.first);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
