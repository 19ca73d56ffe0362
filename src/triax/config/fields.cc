// Typed reading of JSON fields with messages that name the field.
#include "triax/config/fields.h"

#include <cmath>
#include <limits>

#include "triax/core/error.h"

namespace triax::config_detail {
namespace {

using nlohmann::json;

std::int32_t one_token_id(const json& value, const Fields& fields, const char* key) {
  if (!value.is_number_integer()) {
    fields.wrong(
        key, fmt::format("holds a {}; expected a token id or a list of them", value.type_name()));
  }
  // get<int64_t> of an unsigned value above the range would wrap, so the unsigned case goes first
  const bool too_big = value.is_number_unsigned()
                           ? value.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max()
                           : value.get<std::int64_t>() > std::numeric_limits<std::int32_t>::max();
  if (too_big || value.get<std::int64_t>() < 0) {
    fields.wrong(key, fmt::format("is {}; a token id lies between 0 and 2^31-1", value.dump()));
  }
  return value.get<std::int32_t>();
}

}  // namespace

json parse_object(std::string_view text, std::string_view where) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& e) {
    fail("{}: not valid JSON (at byte {} of {}); download or write the file again", where, e.byte,
         text.size());
  } catch (const json::exception&) {  // a number out of every range
    fail("{}: not valid JSON (a number is out of range)", where);
  }
  if (!root.is_object()) {
    fail("{}: holds a JSON {}; expected an object", where, root.type_name());
  }
  return root;
}

bool Fields::has(const char* key) const {
  const auto it = object_.find(key);
  return it != object_.end() && !it->is_null();
}

std::string Fields::name(const char* key) const {
  return path_.empty() ? std::string(key) : path_ + "." + key;
}

void Fields::wrong(const char* key, std::string_view what) const {
  fail("{}: {} {}", where_, name(key), what);
}

const json& Fields::at(const char* key) const {
  if (!has(key)) wrong(key, "is missing; there is no default for it, so add it");
  return *object_.find(key);
}

std::size_t Fields::size(const char* key, std::size_t low, std::size_t high) const {
  const json& value = at(key);
  if (!value.is_number_integer()) {
    wrong(key, fmt::format("holds {}; expected a whole number",
                           value.is_number() ? value.dump() : value.type_name()));
  }
  const bool negative = !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
  if (negative || value.get<std::uint64_t>() < low || value.get<std::uint64_t>() > high) {
    wrong(key, fmt::format("is {}; expected {} to {}", value.dump(), low, high));
  }
  return value.get<std::size_t>();
}

std::size_t Fields::size_or(const char* key, std::size_t absent, std::size_t low,
                            std::size_t high) const {
  return has(key) ? size(key, low, high) : absent;
}

bool Fields::flag(const char* key) const {
  const json& value = at(key);
  if (!value.is_boolean()) {
    wrong(key, fmt::format("holds a {}; expected true or false", value.type_name()));
  }
  return value.get<bool>();
}

float Fields::number(const char* key) const {
  const json& value = at(key);
  if (!value.is_number()) {
    wrong(key, fmt::format("holds a {}; expected a number", value.type_name()));
  }
  const double wide = value.get<double>();
  if (!(std::fabs(wide) <= static_cast<double>(std::numeric_limits<float>::max()))) {
    wrong(key, fmt::format("is {}; it does not fit a float32", value.dump()));
  }
  return static_cast<float>(wide);
}

std::string Fields::text(const char* key) const {
  const json& value = at(key);
  if (!value.is_string()) {
    wrong(key, fmt::format("holds a {}; expected a string", value.type_name()));
  }
  return value.get<std::string>();
}

std::vector<std::int64_t> Fields::integers(const char* key) const {
  const json& value = at(key);
  if (!value.is_array()) {
    wrong(key, fmt::format("holds a {}; expected a list of whole numbers", value.type_name()));
  }
  std::vector<std::int64_t> out;
  out.reserve(value.size());
  for (const json& item : value) {
    const bool fits =
        item.is_number_integer() &&
        !(item.is_number_unsigned() &&
          item.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()});
    if (!fits) {
      wrong(key, fmt::format("holds a {} at position {}; expected whole numbers", item.type_name(),
                             out.size()));
    }
    out.push_back(item.get<std::int64_t>());
  }
  return out;
}

std::vector<std::int32_t> Fields::token_ids(const char* key) const {
  std::vector<std::int32_t> out;
  if (!has(key)) return out;
  const json& value = at(key);
  if (!value.is_array()) {
    out.push_back(one_token_id(value, *this, key));
    return out;
  }
  for (const json& item : value) out.push_back(one_token_id(item, *this, key));
  return out;
}

std::optional<std::int32_t> Fields::token_id(const char* key) const {
  if (!has(key)) return std::nullopt;
  return one_token_id(at(key), *this, key);
}

std::optional<Fields> Fields::object(const char* key) const {
  if (!has(key)) return std::nullopt;
  const json& value = at(key);
  if (!value.is_object()) {
    wrong(key, fmt::format("holds a {}; expected an object", value.type_name()));
  }
  return Fields(value, where_, name(key));
}

}  // namespace triax::config_detail
