// Reads the lists and names of measurements.
#include "triax/cli/bench_plan.h"

#include <charconv>
#include <optional>

namespace triax::cli {
namespace {

// Decoding of several sequences: so many tokens each, from so deep.
constexpr std::size_t kSequenceTokens = 64, kSequenceDepth = 16;
constexpr std::size_t kMostTokens = std::size_t{1} << 24, kMostSequences = 1024;

std::vector<std::string_view> split(std::string_view list, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = list.find(at);
    if (!list.substr(0, end).empty()) out.push_back(list.substr(0, end));
    if (end == std::string_view::npos) return out;
    list.remove_prefix(end + 1);
  }
}

std::optional<std::size_t> whole(std::string_view text, std::size_t low, std::size_t high) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || value < low || value > high) return std::nullopt;
  return value;
}

// "128@16"
std::optional<Measurement> parse_decode(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto tokens = whole(text.substr(0, at), 1, kMostTokens);
  const auto depth = whole(text.substr(at + 1), 1, kMostTokens);
  if (!tokens || !depth) return std::nullopt;
  return Measurement{false, *tokens, *depth, 1};
}

std::optional<Measurement> parse_name(std::string_view name) {
  if (name.starts_with("pp")) {
    const auto tokens = whole(name.substr(2), 1, kMostTokens);
    return tokens ? std::optional(Measurement{true, *tokens, 0, 1}) : std::nullopt;
  }
  if (!name.starts_with("tg")) return std::nullopt;
  const std::size_t times = name.find('x');
  auto out = parse_decode(name.substr(2, times == std::string_view::npos ? times : times - 2));
  if (!out || times == std::string_view::npos) return out;
  const auto sequences = whole(name.substr(times + 1), 1, kMostSequences);
  if (!sequences) return std::nullopt;
  out->sequences = *sequences;
  return out;
}

}  // namespace

std::string Measurement::name() const {
  if (prompt) return fmt::format("pp{}", tokens);
  const std::string one = fmt::format("tg{}@{}", tokens, depth);
  return sequences == 1 ? one : fmt::format("{}x{}", one, sequences);
}

Measurement parse_measurement(std::string_view name) {
  const auto out = parse_name(name);
  if (!out) {
    wrong_use(
        "bench: {} names no measurement; pp512 is a prompt of 512 tokens, tg128@16 decodes 128 "
        "tokens from depth 16, tg64@16x8 does so for 8 sequences at once",
        in_quotes(name));
  }
  return *out;
}

std::vector<Measurement> plan_measurements(const BenchCommand& c) {
  std::vector<Measurement> out;
  if (!c.only.empty()) {
    for (const std::string_view name : split(c.only, ',')) out.push_back(parse_measurement(name));
  } else {
    for (const std::string_view text : split(c.prompt, ',')) {
      const auto tokens = whole(text, 1, kMostTokens);
      if (!tokens) wrong_use("bench: --prompt takes lengths such as 512,2048; found {}", text);
      out.push_back({true, *tokens, 0, 1});
    }
    for (const std::string_view text : split(c.decode, ',')) {
      const auto decode = parse_decode(text);
      if (!decode) wrong_use("bench: --decode takes TOKENS@DEPTH such as 128@16; found {}", text);
      out.push_back(*decode);
    }
    for (const std::string_view text : split(c.sequences, ',')) {
      const auto n = whole(text, 1, kMostSequences);
      if (!n) wrong_use("bench: --sequences takes numbers such as 4,8; found {}", text);
      out.push_back({false, kSequenceTokens, kSequenceDepth, *n});
    }
  }
  if (out.empty()) wrong_use("bench: there is nothing to measure; leave --only and the lists out");
  return out;
}

}  // namespace triax::cli
