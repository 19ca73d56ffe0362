// A JSON document as the schema compiler reads it: members in order, numbers as their literals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace triax::grammar {

inline constexpr std::size_t kValueDepth = 200;  // deeper documents are refused

struct Value {
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };
  struct Member;

  Kind kind = Kind::null;
  bool boolean = false;
  std::string text;             // the string, or the number's literal
  std::vector<Value> items;     // of an array
  std::vector<Member> members;  // of an object; a later equal key has replaced the earlier value

  bool is(Kind k) const { return kind == k; }
  const Value* find(std::string_view key) const;  // null: no such member
};

struct Value::Member {
  std::string key;
  Value value;
};

// Throws Error naming `name` for text that is no JSON or too deep.
Value parse_value(std::string_view text, std::string_view name);

// Equal as JSON Schema has it: numbers by value, objects whatever the order of their members.
bool equal(const Value& a, const Value& b);

// `text` inside quotes as this project writes JSON: " and \ escaped, control characters by their
// short escape or \u00xx in lower case, all else as it is.
std::string json_string(std::string_view text);

// Compact JSON. With `gaps`, a zero byte follows each comma and colon of the structure: the places
// where a space may stand (zero bytes cannot occur in JSON otherwise).
std::string json_text(const Value& value, bool gaps);

// "a string", "an object", ...
std::string_view kind_name(Value::Kind kind);

}  // namespace triax::grammar
