// What a request says beside its messages: sampling, limits, form of the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "triax/chat/json.h"
#include "triax/sampling/sampler.h"

namespace triax::server {

// open: the usual ranges. kimi: the values that the hosted API takes, and no others.
enum class Profile : std::uint8_t { open, kimi };

struct Settings {
  SamplingParams sampling;  // the seed is drawn where the request gives none
  std::vector<LogitBias> logit_bias;
  std::size_t n = 1;
  std::optional<std::size_t> max_tokens;
  std::size_t min_tokens = 0;
  std::vector<std::string> stop;
  bool logprobs = false;
  std::size_t top_logprobs = 0;
  bool stream = false;
  bool include_usage = false;
  bool ignore_eos = false;
  int priority = 0;
  std::optional<double> timeout_seconds;
};

// Reads the fields that OpenAI's endpoints share. Throws ApiError naming the field.
Settings parse_settings(const chat::JsonValue& request, Profile profile);

// Members of an object, checked; none where they are missing or null. `field` is the full name.
std::optional<double> number_field(const chat::JsonValue& object, const char* key, double low,
                                   double high);
std::optional<std::int64_t> whole_field(const chat::JsonValue& object, const char* key,
                                        std::int64_t low, std::int64_t high);
std::optional<bool> flag_field(const chat::JsonValue& object, const char* key);
std::optional<std::string> text_field(const chat::JsonValue& object, const char* key);
// A string, or several.
std::vector<std::string> texts_field(const chat::JsonValue& object, const char* key,
                                     std::size_t most, std::size_t most_bytes);

// A seed that was not used before.
std::uint64_t drawn_seed();

// Names of members that are neither known nor commonly sent and harmless; refuses those that would
// change what is asked.
std::vector<std::string> unknown_fields(const chat::JsonValue& request);

}  // namespace triax::server
