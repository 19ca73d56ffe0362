// TOML as JSON values. The only file that includes toml++, which is slow to compile.
#include <sstream>

#include "triax/core/error.h"
#include "triax/train/config_reader.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wconversion"
#endif
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace triax::train {
namespace {

using nlohmann::json;

json value_of(const toml::node& node, std::string_view where) {
  if (const auto* table = node.as_table()) {
    json out = json::object();
    for (const auto& [key, value] : *table) out[std::string(key.str())] = value_of(value, where);
    return out;
  }
  if (const auto* array = node.as_array()) {
    json out = json::array();
    for (const auto& value : *array) out.push_back(value_of(value, where));
    return out;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* real = node.as_floating_point()) return real->get();
  if (const auto* whole = node.as_integer()) {
    if (whole->get() < 0) return whole->get();
    return static_cast<std::uint64_t>(whole->get());
  }
  fail("{}: line {}: dates and times have no use here", where, node.source().begin.line);
}

}  // namespace

json parse_toml(std::string_view text, std::string_view where) {
  try {
    return value_of(toml::parse(text), where);
  } catch (const toml::parse_error& error) {
    fail("{}: line {}: {}", where, error.source().begin.line, error.description());
  }
}

json parse_values(std::string_view text, bool is_json, std::string_view where) {
  if (!is_json) return parse_toml(text, where);
  try {
    return json::parse(text, nullptr, true, true);  // comments are allowed
  } catch (const json::exception& error) {
    fail("{}: not JSON: {}", where, error.what());
  }
}

}  // namespace triax::train
