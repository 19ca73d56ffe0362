// Members of a request, with errors that name their place.
#pragma once

#include <cstddef>
#include <string>

#include "triax/chat/conversation.h"

namespace triax::chat {

template <class... Args>
[[noreturn]] void bad_field(const std::string& field, fmt::format_string<Args...> format,
                            Args&&... args) {
  throw RequestError(field, fmt::format(format, std::forward<Args>(args)...));
}

inline std::string at_index(const std::string& field, std::size_t index) {
  return fmt::format("{}[{}]", field, index);
}

// The member, or null where it is missing or null.
inline const JsonValue* present(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

// A string member; empty where it is missing or null.
inline std::string string_field(const JsonValue& object, const char* key,
                                const std::string& field) {
  const JsonValue* value = present(object, key);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    bad_field(field + "." + key, "should be a string, is {}", value->kind_name());
  }
  return value->text();
}

inline bool flag_field(const JsonValue& object, const char* key, const std::string& field,
                       bool otherwise) {
  const JsonValue* value = present(object, key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    bad_field(field + "." + key, "should be true or false, is {}", value->kind_name());
  }
  return value->is_true();
}

}  // namespace triax::chat
