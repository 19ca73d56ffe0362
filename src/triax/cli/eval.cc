// `triax eval`: how well the model predicts a text, and how alike two ways of computing are.
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "triax/cli/commands.h"
#include "triax/cli/eval_score.h"
#include "triax/cli/eval_suite.h"
#include "triax/cli/format.h"
#include "triax/cli/ids_file.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/load_model.h"
#include "triax/cli/score.h"
#include "triax/cli/settings.h"

namespace triax::cli {
namespace {

struct Text {
  std::vector<std::int32_t> ids;
  std::optional<std::size_t> bytes;  // of the predicted tokens; none without a tokenizer
};

Text read_text(const EvalCommand& c, const LoadedModel& m) {
  Text out;
  if (c.ids) {
    out.ids = read_ids(c.file);
    check_ids(out.ids, m.config.vocab_size, input_name(c.file));
  } else {
    const Tokenizer& tokenizer = m.required_tokenizer("give a file of ids with --ids");
    out.ids = tokenizer.encode(read_input(c.file));
  }
  if (out.ids.size() < 2) {
    wrong_use("eval: {} has {} tokens; two or more are needed to predict one", input_name(c.file),
              out.ids.size());
  }
  if (m.tokenizer) {
    out.bytes = 0;
    for (std::size_t i = 1; i < out.ids.size(); ++i) {
      if (out.ids[i] >= m.tokenizer->vocab_size()) {
        out.bytes.reset();
        break;
      }
      *out.bytes += m.tokenizer->token_bytes(out.ids[i]).size();
    }
  }
  return out;
}

std::optional<double> bits_per_byte(const Text& text, const Scores& scores) {
  if (!text.bytes || *text.bytes == 0) return std::nullopt;
  return mean(scores.losses) * static_cast<double>(scores.losses.size()) /
         (std::log(2.0) * static_cast<double>(*text.bytes));
}

nlohmann::ordered_json comparison_json(const Comparison& c) {
  nlohmann::ordered_json json{{"settings", to_string(c.settings)},
                              {"loss", mean(c.losses)},
                              {"mean_kl", mean(c.distances)},
                              {"p99_kl", quantile(c.distances, 0.99)},
                              {"top1_agreement", c.top1_agreement()}};
  if (c.settings.int8.any()) {
    json["trunk"] = trunk_text(c.settings.int8);
    json["saved_bytes"] = c.saved_bytes;
  }
  return json;
}

void print_json(const EvalCommand& c, const Text& text, const Settings& settings,
                const Scores& scores) {
  const double loss = mean(scores.losses);
  const auto bits = bits_per_byte(text, scores);
  nlohmann::ordered_json json;
  json["file"] = c.file;
  json["tokens"] = text.ids.size();
  json["predicted_tokens"] = scores.losses.size();
  json["predicted_bytes"] = text.bytes ? nlohmann::ordered_json(*text.bytes) : nullptr;
  json["loss"] = loss;
  json["perplexity"] = std::exp(loss);
  json["bits_per_byte"] = bits ? nlohmann::ordered_json(*bits) : nullptr;
  json["seconds"] = scores.seconds;
  json["tokens_per_second"] = static_cast<double>(text.ids.size()) / scores.seconds;
  json["settings"] = to_string(settings);
  if (!scores.others.empty()) json["against"] = comparison_json(scores.others[0]);
  if (c.by_family) {
    json["families"] = nlohmann::ordered_json::array();
    for (std::size_t i = 1; i < scores.others.size(); ++i) {
      json["families"].push_back(comparison_json(scores.others[i]));
    }
  }
  fmt::print("{}\n", json.dump(2));
}

void print_families(const Scores& scores) {
  constexpr auto kRow = "{:<28} {:>11} {:>11} {:>10} {:>12}\n";
  fmt::print("\n");
  fmt::print(kRow, "8-bit", "mean KL", "p99 KL", "same top", "saved");
  for (const Comparison& c : scores.others) {
    fmt::print(kRow, c.name.empty() ? "trunk=" + trunk_text(c.settings.int8) : c.name,
               fmt::format("{:.3e}", mean(c.distances)),
               fmt::format("{:.3e}", quantile(c.distances, 0.99)),
               fmt::format("{:.2f} %", 100 * c.top1_agreement()), human_bytes(c.saved_bytes));
  }
}

void print_text(const EvalCommand& c, const Text& text, const Settings& settings,
                const Scores& scores) {
  const double loss = mean(scores.losses);
  fmt::print("tokens         {} ({} predicted)\n", grouped(text.ids.size()),
             grouped(scores.losses.size()));
  fmt::print("loss           {:.6f} nats a token\n", loss);
  fmt::print("perplexity     {:.4f}\n", std::exp(loss));
  if (const auto bits = bits_per_byte(text, scores)) fmt::print("bits per byte  {:.6f}\n", *bits);
  fmt::print("speed          {} tokens/s\n",
             human_rate(static_cast<double>(text.ids.size()) / scores.seconds));
  if (scores.others.empty()) return;
  const Comparison& other = scores.others[0];
  fmt::print("\n{}  against  {}\n", to_string(settings), to_string(other.settings));
  fmt::print("loss there     {:.6f} nats a token\n", mean(other.losses));
  fmt::print("KL             mean {:.3e}, 99th percentile {:.3e} nats\n", mean(other.distances),
             quantile(other.distances, 0.99));
  fmt::print("same top token {:.2f} %\n", 100 * other.top1_agreement());
  if (other.settings.int8.any()) fmt::print("saved          {}\n", human_bytes(other.saved_bytes));
  if (c.by_family) print_families(scores);
}

void check_use(const EvalCommand& c, const std::optional<Settings>& against) {
  const bool int8 = against && against->int8.any();
  if (c.by_family && !int8) {
    wrong_use("eval: --by-family compares families of 8-bit weights; give --against trunk=int8");
  }
  if (int8 && c.trunk == TrunkChoice::int8) {
    wrong_use(
        "eval: --against trunk=int8 compares with the trunk as it is stored; leave --trunk int8 "
        "out");
  }
}

// Weights that are 8-bit in the folder already have no stored form to compare with.
void check_model(const LoadedModel& m, const std::optional<Settings>& against) {
  if (!against || against->int8.none()) return;
  TrunkOptions options;
  options.format = TrunkFormat::int8;
  options.resident = false;
  options.components = against->int8;
  if (plan_trunk(m.config, m.weights, options).bytes > 0) return;
  fail(
      "{}: holds no weights that trunk={} would make 8-bit; compare the checkpoint it was packed "
      "from",
      m.folder.string(), trunk_text(against->int8));
}

}  // namespace

int execute(const EvalCommand& c) {
  if (!c.suite.empty()) {
    if (!c.file.empty()) wrong_use("eval: a text and --suite do not go together; give one of them");
    return execute_suite(c);
  }
  if (c.file.empty()) wrong_use("eval: give a text, - to read standard input, or --suite nano");
  Settings settings{c.precision, kernels().isa, c.chunk, c.threads};
  if (settings.threads == 0) settings.threads = ThreadPool::available_cores();
  std::optional<Settings> against;
  if (!c.against.empty()) against = parse_settings(c.against, settings);
  check_use(c, against);
  Session session(c, c.precision);
  check_model(*session.loaded, against);
  const Text text = read_text(c, *session.loaded);
  const InterruptGuard guard;
  const Scores scores = score(session, text.ids, settings, against, c.by_family);
  if (c.json) {
    print_json(c, text, settings, scores);
  } else {
    print_text(c, text, settings, scores);
  }
  return 0;
}

}  // namespace triax::cli
