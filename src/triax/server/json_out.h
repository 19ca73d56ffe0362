// Short ways to write JSON.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "triax/chat/json.h"

namespace triax::server {

using chat::JsonValue;

inline JsonValue str(std::string_view text) {
  return JsonValue::string(std::string(text));
}
inline JsonValue num(std::size_t n) {
  return JsonValue::number(static_cast<std::int64_t>(n));
}
inline JsonValue real(double x) {
  return JsonValue::number(fmt::format("{}", x));
}
inline JsonValue flag(bool value) {
  return JsonValue::boolean(value);
}
inline JsonValue null_value() {
  return {};
}
inline JsonValue object(std::initializer_list<std::pair<const char*, JsonValue>> members = {}) {
  JsonValue out = JsonValue::object();
  for (const auto& [key, value] : members) out.set(key, value);
  return out;
}
inline JsonValue list(std::initializer_list<JsonValue> items = {}) {
  JsonValue out = JsonValue::array();
  for (const JsonValue& item : items) out.push(item);
  return out;
}
inline std::string compact(const JsonValue& value) {
  return chat::json_text(value, chat::kJsonCompact);
}

}  // namespace triax::server
