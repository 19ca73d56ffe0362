// The reader of JSON text that everything in json.h is made of.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "triax/chat/json.h"

namespace triax::chat {

struct JsonRules {
  bool control_characters = false;  // may stand in strings as they are
  bool with_nan = false;            // NaN, Infinity and -Infinity are numbers
};

// Walks over a text from `at`. Each function stands behind what it read when it returns true; on
// false, `error` says what is wrong at `at`.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text, JsonRules rules = {}) : text_(text), rules_(rules) {}

  std::size_t at = 0;
  const char* error = "";

  void skip_space();
  bool done() const { return at == text_.size(); }
  bool next_is(char c) const { return at < text_.size() && text_[at] == c; }
  bool take(char c) { return next_is(c) && ++at > 0; }

  // One value; into `out` where that is not null.
  bool value(JsonValue* out, std::size_t depth = 0);
  // A string from its opening quote; decoded into `out` where that is not null.
  bool string(std::string* out);
  JsonValue::Kind next_kind() const;  // by the first character; null when none starts here

 private:
  bool wrong(const char* what) {
    error = what;
    return false;
  }
  bool literal(std::string_view word);
  bool number();
  bool digits();
  bool escape(std::string* out);
  bool code_unit(char32_t& unit);
  bool array(JsonValue* out, std::size_t depth);
  bool object(JsonValue* out, std::size_t depth);

  std::string_view text_;
  JsonRules rules_;
};

}  // namespace triax::chat
