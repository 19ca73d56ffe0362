// One table of a training configuration, read key by key; what was not asked for is refused by
// name. Internal to train/ and distill/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace triax::train {

class ConfigReader {
 public:
  // `path` stands before keys in messages: "stage[1].".
  ConfigReader(const nlohmann::json& table, std::string where, std::string path);

  bool has(const char* key);
  void size(const char* key, std::size_t& value, std::size_t low, std::size_t high);
  void number(const char* key, double& value, double low, double high);
  void flag(const char* key, bool& value);
  void text(const char* key, std::string& value);
  // One of `names`; its place.
  void choice(const char* key, std::size_t& value, const std::vector<std::string>& names);
  void path(const char* key, const std::filesystem::path& folder, std::filesystem::path& value);
  std::vector<std::string> texts(const char* key);
  // An empty table when it is absent.
  ConfigReader table(const char* key);
  std::vector<ConfigReader> tables(const char* key);
  // What is left over, as JSON, counted as asked for.
  nlohmann::json rest();
  // Throws Error for a key that nobody asked for.
  void finish() const;

  [[noreturn]] void wrong(const char* key, std::string_view what) const;

 private:
  const nlohmann::json* find(const char* key);
  nlohmann::json table_;
  std::string where_, path_;
  std::set<std::string> known_;
};

// Parses TOML to the same values as JSON would have. Throws Error with the line.
nlohmann::json parse_toml(std::string_view text, std::string_view where);
// The same of JSON, in which comments are allowed, or of TOML.
nlohmann::json parse_values(std::string_view text, bool is_json, std::string_view where);

}  // namespace triax::train
