// Reading tables of a training configuration.
#include "triax/train/config_reader.h"

#include <cmath>

#include "triax/core/error.h"

namespace triax::train {

using nlohmann::json;

ConfigReader::ConfigReader(const json& table, std::string where, std::string path)
    : table_(table), where_(std::move(where)), path_(std::move(path)) {
  if (!table_.is_object()) {
    const std::string name = path_.empty() ? "" : path_.substr(0, path_.size() - 1) + ": ";
    fail("{}: {}expected a table of keys, found {}", where_, name, table_.type_name());
  }
}

void ConfigReader::wrong(const char* key, std::string_view what) const {
  fail("{}: {}{} {}", where_, path_, key, what);
}

const json* ConfigReader::find(const char* key) {
  known_.insert(key);
  const auto at = table_.find(key);
  return at == table_.end() || at->is_null() ? nullptr : &*at;
}

bool ConfigReader::has(const char* key) {
  return find(key) != nullptr;
}

void ConfigReader::size(const char* key, std::size_t& value, std::size_t low, std::size_t high) {
  const json* at = find(key);
  if (at == nullptr) return;
  double number = -1;
  if (at->is_number_unsigned() || at->is_number_integer() || at->is_number_float()) {
    number = at->get<double>();  // "20e6" is a whole number too
  }
  if (number < static_cast<double>(low) || number > static_cast<double>(high) ||
      number != std::floor(number)) {
    wrong(key, fmt::format("is {}, expected a whole number from {} to {}", at->dump(), low, high));
  }
  value = at->is_number_unsigned() ? at->get<std::size_t>() : static_cast<std::size_t>(number);
}

void ConfigReader::number(const char* key, double& value, double low, double high) {
  const json* at = find(key);
  if (at == nullptr) return;
  const double x = at->is_number() ? at->get<double>() : std::nan("");
  if (!(x >= low && x <= high)) {
    wrong(key, fmt::format("is {}, expected a number from {} to {}", at->dump(), low, high));
  }
  value = x;
}

void ConfigReader::flag(const char* key, bool& value) {
  const json* at = find(key);
  if (at == nullptr) return;
  if (!at->is_boolean()) wrong(key, fmt::format("is {}, expected true or false", at->dump()));
  value = at->get<bool>();
}

void ConfigReader::text(const char* key, std::string& value) {
  const json* at = find(key);
  if (at == nullptr) return;
  if (!at->is_string()) wrong(key, fmt::format("is {}, expected a text", at->dump()));
  value = at->get<std::string>();
}

void ConfigReader::choice(const char* key, std::size_t& value,
                          const std::vector<std::string>& names) {
  if (!has(key)) return;
  std::string name;
  text(key, name);
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    all += (all.empty() ? "" : ", ") + names[i];
    if (names[i] != name) continue;
    value = i;
    return;
  }
  wrong(key, fmt::format("is {}, expected one of {}", in_quotes(name), all));
}

void ConfigReader::path(const char* key, const std::filesystem::path& folder,
                        std::filesystem::path& value) {
  std::string name;
  text(key, name);
  if (!name.empty()) value = (folder / name).lexically_normal();
}

std::vector<std::string> ConfigReader::texts(const char* key) {
  const json* at = find(key);
  if (at == nullptr) return {};
  std::vector<std::string> out;
  if (at->is_string()) {
    out.push_back(at->get<std::string>());
    return out;
  }
  if (!at->is_array()) wrong(key, "expected a list of texts");
  for (const json& item : *at) {
    if (!item.is_string()) wrong(key, fmt::format("has {}, expected texts", item.dump()));
    out.push_back(item.get<std::string>());
  }
  return out;
}

ConfigReader ConfigReader::table(const char* key) {
  const json* at = find(key);
  return ConfigReader(at == nullptr ? json::object() : *at, where_, path_ + key + ".");
}

std::vector<ConfigReader> ConfigReader::tables(const char* key) {
  std::vector<ConfigReader> out;
  const json* at = find(key);
  if (at == nullptr) return out;
  if (!at->is_array()) wrong(key, "expected a list of tables, [[...]] in TOML");
  for (std::size_t i = 0; i < at->size(); ++i) {
    out.emplace_back((*at)[i], where_, fmt::format("{}{}[{}].", path_, key, i));
  }
  return out;
}

json ConfigReader::rest() {
  json out = json::object();
  for (const auto& [key, value] : table_.items()) {
    if (known_.insert(key).second) out[key] = value;
  }
  return out;
}

void ConfigReader::finish() const {
  for (const auto& [key, value] : table_.items()) {
    if (known_.contains(key)) continue;
    std::string all;
    for (const std::string& name : known_) all += (all.empty() ? "" : ", ") + name;
    fail("{}: {}{}: there is no such key; keys here: {}", where_, path_, key, all);
  }
}

}  // namespace triax::train
