// JSON as text: numbers keep their literal and members their order, so that what is rendered is
// what was written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace triax::chat {

// Values may lie this deep within one another.
inline constexpr std::size_t kJsonDepth = 256;

class JsonValue {
 public:
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };
  struct Member;

  JsonValue() = default;  // null
  static JsonValue boolean(bool value);
  static JsonValue number(std::string literal);
  static JsonValue number(std::int64_t value);
  static JsonValue string(std::string text);  // UTF-8
  static JsonValue array();
  static JsonValue object();

  // One value and nothing after it. Ill-formed UTF-8 and lone surrogates become U+FFFD. As in
  // Python, a key that comes again takes the later value and the earlier place. Throws Error with
  // the line and column.
  static JsonValue parse(std::string_view text);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool is_boolean() const { return kind_ == Kind::boolean; }
  bool is_number() const { return kind_ == Kind::number; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_array() const { return kind_ == Kind::array; }
  bool is_object() const { return kind_ == Kind::object; }
  const char* kind_name() const;  // "null", "a string", ...

  bool is_true() const { return kind_ == Kind::boolean && text() == "true"; }
  // The string, or the literal of a number or a boolean; empty for others.
  const std::string& text() const;
  const std::vector<JsonValue>& items() const;  // of an array; empty for others
  const std::vector<Member>& members() const;   // of an object; empty for others

  // The member of that name; null where there is none, or this is no object.
  const JsonValue* find(std::string_view key) const;
  // Sets a member (after the others when it is new).
  void set(std::string key, JsonValue value);
  void push(JsonValue value);

 private:
  friend class JsonScanner;

  Kind kind_ = Kind::null;
  std::variant<std::string, std::vector<JsonValue>, std::vector<Member>> data_;
};

struct JsonValue::Member {
  std::string key;
  JsonValue value;
};

// How a value is written. Text is not escaped to ASCII.
struct JsonStyle {
  bool sorted = false;  // members by code points of their keys, at every depth
  std::string_view comma = ", ";
  std::string_view colon = ": ";
  bool literals = false;  // number literals as they were read
};
inline constexpr JsonStyle kJsonSorted{true, ",", ":", false};  // schemas in prompts
inline constexpr JsonStyle kJsonPython{false, ", ", ": ", false};
inline constexpr JsonStyle kJsonCompact{false, ",", ":", true};

// As Python's json.dumps: a number with point or exponent is written as the shortest literal of the
// same double ("1e21" as 1e+21, "1.0" as 1.0), a whole number as it is, whatever its size; unless
// the style keeps literals.
std::string json_text(const JsonValue& value, const JsonStyle& style);

// Appends `text` as the inside of a JSON string: " and \ and control characters escaped.
void append_escaped(std::string& out, std::string_view text);
std::string json_quote(std::string_view text);

// The literal that Python writes for a number literal.
std::string python_number(std::string_view literal);

// One member of an object, one level deep: a string decoded, anything else as it was written.
struct RawMember {
  std::string key;
  JsonValue::Kind kind;
  std::string text;
};

// Reads the object at the start of `text` as Python's decoder with strict=False would: control
// characters in strings, NaN and Infinity are taken, equal keys kept, what follows the closing
// brace is not looked at. False when no object stands there.
bool read_raw_object(std::string_view text, std::vector<RawMember>& members);

// Is this one JSON value, with nothing but white space around it? NaN and Infinity are numbers
// here when `with_nan`.
bool is_json(std::string_view text, bool with_nan);

// Without JSON's white space at both ends.
std::string_view json_trim(std::string_view text);

}  // namespace triax::chat
