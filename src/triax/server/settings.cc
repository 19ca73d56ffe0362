#include "triax/server/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <random>

#include "triax/server/api_error.h"

namespace triax::server {
namespace {

using chat::JsonValue;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;
constexpr std::int64_t kMostChoices = 128;

const JsonValue* present(const JsonValue& object, const char* key) {
  const JsonValue* value = object.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<double> as_double(const std::string& literal) {
  double value = 0;
  const auto [end, error] = std::from_chars(literal.data(), literal.data() + literal.size(), value);
  if (error != std::errc() || end != literal.data() + literal.size()) return std::nullopt;
  return value;
}

// The hosted API takes only these; a request may leave the field out.
void only(const char* key, std::optional<double> value, std::initializer_list<double> allowed) {
  if (!value) return;
  std::string names;
  for (const double a : allowed) {
    if (std::abs(*value - a) < 1e-6) return;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", a);
  }
  bad_request(key, "is {}: this profile takes {} only", *value, names);
}

void check_kimi(const JsonValue& request) {
  only("temperature", number_field(request, "temperature", -1e9, 1e9), {0, 0.6, 1});
  only("top_p", number_field(request, "top_p", -1e9, 1e9), {0.95});
  only("n", number_field(request, "n", -1e9, 1e9), {1});
  for (const char* key : {"presence_penalty", "frequency_penalty"}) {
    only(key, number_field(request, key, -1e9, 1e9), {0});
  }
}

void parse_sampling(const JsonValue& r, SamplingParams& s) {
  s.temperature = static_cast<float>(number_field(r, "temperature", 0, 2).value_or(1));
  s.top_p = static_cast<float>(number_field(r, "top_p", 0, 1).value_or(0.95));
  // Nothing but the likeliest token.
  if (s.top_p <= 0) s.top_p = 1e-6f;
  s.top_k = static_cast<std::size_t>(
      std::max<std::int64_t>(whole_field(r, "top_k", -1, kMostTokens).value_or(0), 0));
  s.min_p = static_cast<float>(number_field(r, "min_p", 0, 0.999).value_or(0));
  s.presence_penalty = static_cast<float>(number_field(r, "presence_penalty", -2, 2).value_or(0));
  s.frequency_penalty = static_cast<float>(number_field(r, "frequency_penalty", -2, 2).value_or(0));
  s.repetition_penalty =
      static_cast<float>(number_field(r, "repetition_penalty", 0.01, 100).value_or(1));
  const auto seed = whole_field(r, "seed", std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max());
  s.seed = seed ? static_cast<std::uint64_t>(*seed) : drawn_seed();
}

std::vector<LogitBias> parse_bias(const JsonValue& r) {
  std::vector<LogitBias> out;
  const JsonValue* bias = present(r, "logit_bias");
  if (bias == nullptr) return out;
  if (!bias->is_object())
    bad_request("logit_bias", "should be an object, is {}", bias->kind_name());
  for (const auto& [key, value] : bias->members()) {
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) {
      bad_request("logit_bias", "{} is no token id", in_quotes(key));
    }
    const auto x = value.is_number() ? as_double(value.text()) : std::nullopt;
    if (!x || !(*x >= -100 && *x <= 100)) {
      bad_request("logit_bias." + key, "should be a number from -100 to 100");
    }
    out.push_back({id, static_cast<float>(*x)});
  }
  return out;
}

void parse_logprobs(const JsonValue& r, Settings& out) {
  const JsonValue* value = present(r, "logprobs");
  if (value != nullptr && value->is_number()) {  // as /v1/completions has it
    const auto n = whole_field(r, "logprobs", 0, 20);
    out.logprobs = true;
    out.top_logprobs = static_cast<std::size_t>(*n);
    return;
  }
  out.logprobs = flag_field(r, "logprobs").value_or(false);
  const auto top = whole_field(r, "top_logprobs", 0, 20);
  if (top && *top > 0 && !out.logprobs) bad_request("top_logprobs", "needs logprobs to be true");
  out.top_logprobs = static_cast<std::size_t>(top.value_or(0));
}

}  // namespace

std::uint64_t drawn_seed() {
  thread_local std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 1;
}

std::optional<double> number_field(const JsonValue& object, const char* key, double low,
                                   double high) {
  const JsonValue* value = present(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) bad_request(key, "should be a number, is {}", value->kind_name());
  const auto x = as_double(value->text());
  if (!x || !(*x >= low && *x <= high)) {
    bad_request(key, "is {}: expected {} to {}", value->text().substr(0, 40), low, high);
  }
  return x;
}

std::optional<std::int64_t> whole_field(const JsonValue& object, const char* key, std::int64_t low,
                                        std::int64_t high) {
  const JsonValue* value = present(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) bad_request(key, "should be a whole number, is {}", value->kind_name());
  const std::string& text = value->text();
  std::int64_t x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size() || x < low || x > high) {
    bad_request(key, "is {}: expected a whole number from {} to {}", text.substr(0, 40), low, high);
  }
  return x;
}

std::optional<bool> flag_field(const JsonValue& object, const char* key) {
  const JsonValue* value = present(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) bad_request(key, "should be true or false, is {}", value->kind_name());
  return value->is_true();
}

std::optional<std::string> text_field(const JsonValue& object, const char* key) {
  const JsonValue* value = present(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) bad_request(key, "should be a string, is {}", value->kind_name());
  return value->text();
}

std::vector<std::string> texts_field(const JsonValue& object, const char* key, std::size_t most,
                                     std::size_t most_bytes) {
  std::vector<std::string> out;
  const JsonValue* value = present(object, key);
  if (value == nullptr) return out;
  if (!value->is_string() && !value->is_array()) {
    bad_request(key, "should be a string or an array of strings, is {}", value->kind_name());
  }
  if (value->is_string()) {
    out.push_back(value->text());
  } else {
    for (const JsonValue& item : value->items()) {
      if (!item.is_string()) bad_request(key, "should hold strings, holds {}", item.kind_name());
      out.push_back(item.text());
    }
  }
  if (out.size() > most) bad_request(key, "has {} strings: expected at most {}", out.size(), most);
  for (const std::string& text : out) {
    if (text.empty()) bad_request(key, "holds an empty string");
    if (text.size() > most_bytes) {
      bad_request(key, "a string has {} bytes: expected at most {}", text.size(), most_bytes);
    }
  }
  return out;
}

Settings parse_settings(const JsonValue& r, Profile profile) {
  const bool kimi = profile == Profile::kimi;
  if (kimi) check_kimi(r);
  Settings out;
  parse_sampling(r, out.sampling);
  out.logit_bias = parse_bias(r);
  out.n = static_cast<std::size_t>(whole_field(r, "n", 1, kMostChoices).value_or(1));
  const auto newer = whole_field(r, "max_completion_tokens", 1, kMostTokens);
  const auto older = whole_field(r, "max_tokens", 1, kMostTokens);
  if (newer || older) out.max_tokens = static_cast<std::size_t>(newer ? *newer : *older);
  if (!out.max_tokens && kimi) out.max_tokens = 131072;
  out.min_tokens =
      static_cast<std::size_t>(whole_field(r, "min_tokens", 0, kMostTokens).value_or(0));
  out.stop = texts_field(r, "stop", kimi ? 5 : 16, kimi ? 32 : 256);
  parse_logprobs(r, out);
  out.stream = flag_field(r, "stream").value_or(false);
  if (const JsonValue* options = present(r, "stream_options")) {
    if (!options->is_object()) {
      bad_request("stream_options", "should be an object, is {}", options->kind_name());
    }
    out.include_usage = flag_field(*options, "include_usage").value_or(false);
  }
  out.ignore_eos = flag_field(r, "ignore_eos").value_or(false);
  out.priority = static_cast<int>(whole_field(r, "priority", -8, 8).value_or(0));
  out.timeout_seconds = number_field(r, "timeout", 0.001, 86400);
  text_field(r, "model");
  return out;
}

std::vector<std::string> unknown_fields(const JsonValue& request) {
  static constexpr std::array kKnown = {"best_of",
                                        "cache_prompt",
                                        "chat_template_kwargs",
                                        "context_management",
                                        "conversation",
                                        "echo",
                                        "frequency_penalty",
                                        "ignore_eos",
                                        "include",
                                        "input",
                                        "instructions",
                                        "logit_bias",
                                        "logprobs",
                                        "max_completion_tokens",
                                        "max_output_tokens",
                                        "max_tokens",
                                        "messages",
                                        "metadata",
                                        "min_p",
                                        "min_tokens",
                                        "modalities",
                                        "model",
                                        "n",
                                        "output_config",
                                        "parallel_tool_calls",
                                        "presence_penalty",
                                        "previous_response_id",
                                        "priority",
                                        "prompt",
                                        "prompt_cache_key",
                                        "prompt_cache_retention",
                                        "reasoning",
                                        "reasoning_effort",
                                        "repetition_penalty",
                                        "response_format",
                                        "safety_identifier",
                                        "seed",
                                        "service_tier",
                                        "stop",
                                        "stop_sequences",
                                        "store",
                                        "stream",
                                        "stream_options",
                                        "suffix",
                                        "system",
                                        "temperature",
                                        "text",
                                        "thinking",
                                        "timeout",
                                        "tool_choice",
                                        "tools",
                                        "top_k",
                                        "top_logprobs",
                                        "top_p",
                                        "truncation",
                                        "user",
                                        "verbosity"};
  for (const char* key : {"chat_template", "functions", "function_call"}) {
    if (present(request, key) == nullptr) continue;
    if (std::string_view(key) == "chat_template") {
      bad_request(key, "the chat format is the model's own; templates are not run");
    }
    bad_request(key, "is OpenAI's old form; use tools and tool_choice");
  }
  std::vector<std::string> out;
  for (const auto& [key, value] : request.members()) {
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) out.push_back(key);
  }
  return out;
}

}  // namespace triax::server
