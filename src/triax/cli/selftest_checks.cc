// The checks of `triax selftest`: golden values, invariances, tokenizer.
#include "triax/cli/selftest_checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "triax/model/recorder.h"

namespace triax::cli {
namespace {

const char* precision_name(Precision p) {
  return p == Precision::f32 ? "f32" : "bf16";
}

// Where an array stands in the pass: its layer, or after all layers.
std::size_t place_of(const std::string& name) {
  if (!name.starts_with("layer")) return ~std::size_t{0};
  return std::stoul(name.substr(5));
}

// The largest difference so far, as a part of what is allowed, and the earliest that is too large.
struct Worst {
  double ratio = 0;
  std::string array;
  std::size_t compared = 0;
  std::string early;  // of the arrays too far off, one of the earliest layer
  double early_ratio = 0;
  std::string fault;  // something other than a value too far off

  void see(double r, const std::string& name) {
    if (std::isnan(r)) r = INFINITY;
    if (r > ratio) {
      ratio = r;
      array = name;
    }
    if (r <= 1) return;
    if (early.empty() || place_of(name) < place_of(early)) {
      early = name;
      early_ratio = r;
    }
  }
  bool good() const { return ratio <= 1 && fault.empty() && compared > 0; }
  std::string say() const {
    if (!fault.empty()) return fault;
    if (ratio > 1) {
      return fmt::format(
          "{} is off by {:.3g} of the tolerance, the first in the pass; worst {:.3g} ({})", early,
          early_ratio, ratio, array);
    }
    return fmt::format("{} arrays, worst at {:.2f} of the tolerance ({})", compared, ratio, array);
  }
};

bool is_state(const std::string& name) {
  return name.ends_with("_after_prompt");
}

// Arrays that a recorder has and the golden file knows; state arrays or all others.
void compare(const GoldenModel& g, const Recorder& recorder, bool states, Worst& worst) {
  for (const auto& [name, entry] : g.arrays().items()) {
    if (name == "input_ids" || is_state(name) != states) continue;
    const auto found = recorder.arrays().find(name);
    if (found == recorder.arrays().end()) {
      worst.fault = fmt::format("the pass reports no {}", name);
      return;
    }
    ++worst.compared;
    if (entry["dtype"] == "I32") {
      if (found->second.ids != g.integers(name)) worst.fault = fmt::format("{} differs", name);
      continue;
    }
    const std::vector<float> want = g.floats(name);
    const std::vector<float>& have = found->second.values;
    if (have.size() != want.size()) {
      worst.fault = fmt::format("{} has {} values instead of {}", name, have.size(), want.size());
      return;
    }
    double diff = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double d = std::fabs(static_cast<double>(have[i]) - static_cast<double>(want[i]));
      diff = std::isnan(d) ? INFINITY : std::max(diff, d);
    }
    worst.see(diff / entry["tolerance"].get<double>(), name);
  }
}

// Feeds ids in the given pieces and returns the logits of all rows.
std::vector<float> feed(Context& ctx, const GoldenModel& g, SequenceState& state,
                        std::span<const std::int32_t> ids, const std::vector<std::size_t>& pieces) {
  const std::size_t vocab = g.loaded().config.vocab_size;
  std::vector<float> logits(ids.size() * vocab);
  std::size_t at = 0;
  for (const std::size_t n : pieces) {
    forward_all(ctx, g.loaded().model(), state, ids.subspan(at, n), n,
                Mat<float>(logits.data() + at * vocab, {n, vocab}));
    at += n;
  }
  return logits;
}

void check_pieces(const GoldenModel& g, ThreadPool& pool, const std::vector<std::size_t>& prompt,
                  const std::vector<std::size_t>& rest, Worst& worst) {
  Recorder recorder;
  Arena arena;
  Context ctx{pool, arena, Precision::f32, &recorder};
  SequenceState state(g.loaded().config, Precision::f32);
  const std::span<const std::int32_t> ids(g.ids());
  feed(ctx, g, state, ids.first(g.prompt()), prompt);
  compare(g, recorder, /*states=*/true, worst);
  feed(ctx, g, state, ids.subspan(g.prompt()), rest);
  compare(g, recorder, /*states=*/false, worst);
}

std::vector<std::size_t> ones(std::size_t n) {
  return std::vector<std::size_t>(n, 1);
}

std::size_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return i;
  }
  return a.size();
}

CheckResult equal_bits(std::string name, const GoldenModel& g, const std::vector<float>& a,
                       const std::vector<float>& b) {
  const std::size_t at = first_difference(a, b);
  if (at == a.size()) return {std::move(name), true, "equal to the bit"};
  const std::size_t vocab = g.loaded().config.vocab_size;
  return {std::move(name), false,
          fmt::format("logits differ, first at token {}: {} and {}", at / vocab, a[at], b[at])};
}

// A prompt of its own for a second sequence.
std::vector<std::int32_t> other_ids(const GoldenModel& g) {
  std::vector<std::int32_t> out(g.ids().rbegin(), g.ids().rend());
  out.resize(out.size() - 3);
  return out;
}

}  // namespace

GoldenModel::GoldenModel(const std::string& variant) : name_(variant) {
  write_embedded(variant, folder_.path());
  loaded_ = std::make_unique<LoadedModel>(folder_.path());
  golden_ = Checkpoint::open_file(folder_.path() / "golden.safetensors");
  manifest_ = nlohmann::json::parse(embedded(variant + "/manifest.json"));
  ids_ = integers("input_ids");
  prompt_ = manifest_["prompt_tokens"].get<std::size_t>();
}

std::vector<float> GoldenModel::floats(const std::string& array) const {
  const TensorEntry* entry = golden_->find(array);
  TRIAX_CHECK(entry != nullptr && entry->dtype == DType::F32);
  std::vector<float> out(entry->bytes / sizeof(float));
  std::memcpy(out.data(), golden_->data(*entry).data(), entry->bytes);
  return out;
}

std::vector<std::int32_t> GoldenModel::integers(const std::string& array) const {
  const TensorEntry* entry = golden_->find(array);
  TRIAX_CHECK(entry != nullptr && entry->dtype == DType::I32);
  std::vector<std::int32_t> out(entry->bytes / sizeof(std::int32_t));
  std::memcpy(out.data(), golden_->data(*entry).data(), entry->bytes);
  return out;
}

CheckResult check_f32(const GoldenModel& g, ThreadPool& pool) {
  const std::size_t prompt = g.prompt(), rest = g.ids().size() - prompt;
  Worst worst;
  check_pieces(g, pool, {prompt}, ones(rest), worst);
  check_pieces(g, pool, ones(prompt), ones(rest), worst);
  for (const std::size_t k : {std::size_t{1}, std::size_t{2}, prompt / 2, prompt - 3}) {
    check_pieces(g, pool, {k, prompt - k}, {rest}, worst);
  }
  return {fmt::format("{} {} f32: whole, token by token, split", g.name(), kernels().name),
          worst.good(), worst.say()};
}

CheckResult check_bf16(const GoldenModel& g, ThreadPool& pool) {
  const std::vector<float> want = g.floats("logits");
  double norm = 0;
  for (const float x : want) norm += static_cast<double>(x) * static_cast<double>(x);
  double worst = 0;
  std::string fault;
  std::size_t compared = 0;
  const std::size_t n = g.ids().size();
  for (const auto& pieces : {std::vector<std::size_t>{n}, ones(n)}) {
    Recorder recorder([](std::string_view name) { return name.ends_with("moe.ids"); });
    Arena arena;
    Context ctx{pool, arena, Precision::bf16, &recorder};
    SequenceState state(g.loaded().config, Precision::bf16);
    const std::vector<float> have = feed(ctx, g, state, g.ids(), pieces);
    double error = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double d = static_cast<double>(have[i]) - static_cast<double>(want[i]);
      error += d * d;
    }
    const double relative = std::sqrt(error / norm);
    worst = std::isnan(relative) ? INFINITY : std::max(worst, relative);
    for (const auto& [name, array] : recorder.arrays()) {
      if (!g.arrays().contains(name)) continue;
      ++compared;
      if (array.ids != g.integers(name)) fault = fmt::format("{}: other experts are chosen", name);
    }
  }
  if (compared == 0) fault = "the pass reports no experts";
  return {fmt::format("{} {} bf16: logits, experts", g.name(), kernels().name),
          fault.empty() && worst <= g.bf16_limit(),
          fault.empty() ? fmt::format("relative error {:.4f}, allowed {}; the same experts", worst,
                                      g.bf16_limit())
                        : fault};
}

CheckResult check_threads(const GoldenModel& g, Precision precision, std::size_t most) {
  std::vector<float> first;
  std::string name =
      fmt::format("{} {}: 1, 2, 3 and {} threads", g.name(), precision_name(precision), most);
  for (const std::size_t threads : {std::size_t{1}, std::size_t{2}, std::size_t{3}, most}) {
    ThreadPool pool(threads);
    Arena arena;
    Context ctx{pool, arena, precision, nullptr};
    SequenceState state(g.loaded().config, precision);
    std::vector<float> logits =
        feed(ctx, g, state, g.ids(), {g.prompt(), g.ids().size() - g.prompt()});
    if (first.empty()) {
      first = std::move(logits);
    } else if (first_difference(first, logits) != first.size()) {
      return equal_bits(std::move(name), g, first, logits);
    }
  }
  return {std::move(name), true, "equal to the bit"};
}

CheckResult check_batch(const GoldenModel& g, Precision precision, ThreadPool& pool) {
  Arena arena;
  Context ctx{pool, arena, precision, nullptr};
  const K3Config& config = g.loaded().config;
  const std::vector<std::int32_t> others = other_ids(g);
  SequenceState alone(config, precision), other_alone(config, precision);
  std::vector<float> want = feed(ctx, g, alone, g.ids(), {g.ids().size()});
  const std::vector<float> more = feed(ctx, g, other_alone, others, {others.size()});
  want.insert(want.end(), more.begin(), more.end());

  SequenceState a(config, precision), b(config, precision);
  const BatchEntry entries[] = {{&a, g.ids(), LogitRows::all}, {&b, others, LogitRows::all}};
  std::vector<float> have(want.size());
  forward(ctx, g.loaded().model(), entries,
          Mat<float>(have.data(), {g.ids().size() + others.size(), config.vocab_size}));
  return equal_bits(fmt::format("{} {}: alone or in a batch", g.name(), precision_name(precision)),
                    g, want, have);
}

CheckResult check_fork(const GoldenModel& g, Precision precision, ThreadPool& pool) {
  Arena arena;
  Context ctx{pool, arena, precision, nullptr};
  const std::span<const std::int32_t> ids(g.ids());
  const std::span<const std::int32_t> rest = ids.subspan(g.prompt());
  const std::vector<std::int32_t> others = other_ids(g);
  SequenceState state(g.loaded().config, precision), plain(g.loaded().config, precision);
  feed(ctx, g, state, ids.first(g.prompt()), {g.prompt()});
  SequenceState forked = state.fork();
  feed(ctx, g, state, others, {others.size()});  // must not reach the fork
  const std::vector<float> have = feed(ctx, g, forked, rest, ones(rest.size()));
  feed(ctx, g, plain, ids.first(g.prompt()), {g.prompt()});
  const std::vector<float> want = feed(ctx, g, plain, rest, ones(rest.size()));
  return equal_bits(
      fmt::format("{} {}: forked or uninterrupted", g.name(), precision_name(precision)), g, want,
      have);
}

CheckResult check_tokenizer() {
  const std::string name = "tokenizer: K3's vocabulary";
  const Tokenizer tokenizer = open_tokenizer("");
  if (tokenizer.vocab_size() != 163840) {
    return {name, false, fmt::format("{} ids instead of 163840", tokenizer.vocab_size())};
  }
  struct Known {
    std::string_view text;
    std::vector<std::int32_t> ids;
  };
  const Known known[] = {
      {"The quick brown fox jumps over the lazy dog.",
       {1008, 5072, 16331, 69275, 60062, 1312, 276, 29292, 7751, 13}},
      {"I'M YOU'RE HE'S WE'VE THEY'LL SHE'D DON'T",
       {40, 103645, 22700, 6, 1046, 19697, 34480, 40893, 6, 4571, 131665, 6, 5847, 142214, 75231,
        92629, 64833}},
      {"a1b22c333d4444", {64, 16, 65, 2270, 66, 15176, 67, 24446, 19}},
      {"https://example.com/a/b?c=d&e=f#g",
       {1927, 1316, 17480, 1304, 18825, 3969, 30, 66, 28224, 135873, 33067, 86727}},
      {"@@ -1,3 +1,4 @@\n-old\n+new\n context\n",
       {12345, 635, 16, 11, 18, 715, 16, 11, 19, 57207, 198, 14053, 198, 10, 3514, 198, 4122, 198}},
      {"中文English混排2026年11月30日",
       {16717, 44372, 5239, 2062, 2975, 21, 532, 1228, 892, 1341, 778}},
      {"私はJavaScriptが好きです2026年",
       {5036, 8831, 16176, 7748, 10389, 628, 21768, 54319, 2975, 21, 532}},
      {"한국어와 English 섞기 123",
       {17079, 54078, 28763, 46570, 9159, 25817, 252, 20883, 220, 6694}},
      {"Привет, мир! Ёжик", {159025, 63694, 11, 5993, 17898, 0, 739, 223, 7064, 8381}},
  };
  for (const Known& k : known) {
    const std::vector<std::int32_t> ids = tokenizer.encode(k.text);
    if (ids != k.ids) return {name, false, fmt::format("{} has other ids", in_quotes(k.text))};
    if (tokenizer.decode(ids) != k.text) {
      return {name, false, fmt::format("{} does not come back", in_quotes(k.text))};
    }
  }
  if (tokenizer.stop_ids().size() != 3) return {name, false, "an end token is missing"};
  return {name, true, fmt::format("{} texts have the ids of the release", std::size(known))};
}

}  // namespace triax::cli
