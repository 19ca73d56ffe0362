// Typed reading of JSON fields with messages that name the field. Internal to config/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triax::config_detail {

// One JSON object of the file and where it stands ("text_config"). Null counts as absent.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string_view where, std::string path)
      : object_(object), where_(where), path_(std::move(path)) {}

  bool has(const char* key) const;
  // Full name of a key for messages: "text_config.linear_attn_config.num_heads".
  std::string name(const char* key) const;
  // A message about one field: "WHERE: FIELD what".
  [[noreturn]] void wrong(const char* key, std::string_view what) const;

  // Whole numbers in [low, high]; the required form throws when the key is absent.
  std::size_t size(const char* key, std::size_t low, std::size_t high) const;
  std::size_t size_or(const char* key, std::size_t absent, std::size_t low, std::size_t high) const;
  bool flag(const char* key) const;
  float number(const char* key) const;  // finite
  std::string text(const char* key) const;
  std::vector<std::int64_t> integers(const char* key) const;   // an array
  std::vector<std::int32_t> token_ids(const char* key) const;  // one id, a list, or absent: none
  std::optional<std::int32_t> token_id(const char* key) const;
  std::optional<Fields> object(const char* key) const;

 private:
  const nlohmann::json& at(const char* key) const;  // throws when absent
  const nlohmann::json& object_;
  std::string_view where_;
  std::string path_;
};

// Parses `text` as one JSON object or throws.
nlohmann::json parse_object(std::string_view text, std::string_view where);

}  // namespace triax::config_detail
