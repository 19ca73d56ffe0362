#include "triax/chat/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "triax/chat/json_scan.h"
#include "triax/core/error.h"

namespace triax::chat {
namespace {

// Line and column of a place, from 1.
std::string place_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? at + 1 : at - start;
  return fmt::format("line {}, column {}", line, column);
}

void write(std::string& out, const JsonValue& value, const JsonStyle& style);

void write_array(std::string& out, const JsonValue& value, const JsonStyle& style) {
  out += '[';
  bool first = true;
  for (const JsonValue& item : value.items()) {
    if (!first) out += style.comma;
    first = false;
    write(out, item, style);
  }
  out += ']';
}

void write_object(std::string& out, const JsonValue& value, const JsonStyle& style) {
  std::vector<const JsonValue::Member*> members;
  for (const JsonValue::Member& member : value.members()) members.push_back(&member);
  if (style.sorted) {
    // Bytes of UTF-8 order as code points do; no two keys are equal.
    std::sort(members.begin(), members.end(),
              [](const auto* a, const auto* b) { return a->key < b->key; });
  }
  out += '{';
  bool first = true;
  for (const JsonValue::Member* member : members) {
    if (!first) out += style.comma;
    first = false;
    out += json_quote(member->key);
    out += style.colon;
    write(out, member->value, style);
  }
  out += '}';
}

void write(std::string& out, const JsonValue& value, const JsonStyle& style) {
  switch (value.kind()) {
    case JsonValue::Kind::null:
      out += "null";
      return;
    case JsonValue::Kind::boolean:
      out += value.text();
      return;
    case JsonValue::Kind::number:
      out += style.literals ? value.text() : python_number(value.text());
      return;
    case JsonValue::Kind::string:
      out += json_quote(value.text());
      return;
    case JsonValue::Kind::array:
      write_array(out, value, style);
      return;
    case JsonValue::Kind::object:
      write_object(out, value, style);
      return;
  }
}

// A literal that fits no double: whether it is too large (else it is too small).
bool too_large(std::string_view literal) {
  const std::size_t e = literal.find_first_of("eE");
  const std::string_view mantissa = literal.substr(0, e);
  long exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view digits = literal.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error != std::errc()) return !digits.starts_with('-');
  }
  // The power of ten of the first digit that is not zero.
  const auto point = static_cast<long>(std::min(mantissa.find('.'), mantissa.size()));
  const auto first = static_cast<long>(mantissa.find_first_of("123456789"));
  return point - first + exponent > 0;
}

double double_of(std::string_view literal) {
  double value = 0;
  const auto [end, error] = std::from_chars(literal.data(), literal.data() + literal.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  const double sign = literal.starts_with('-') ? -1 : 1;
  return too_large(literal) ? sign * HUGE_VAL : sign * 0.0;
}

// As Python's repr of a finite float: the fewest digits, an exponent below 1e-4 and from 1e16 on.
std::string float_text(double value) {
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const std::size_t e = text.find('e');
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  int exponent = 0;
  const std::size_t skip = text[e + 1] == '+' ? 2 : 1;
  std::from_chars(text.data() + e + skip, text.data() + text.size(), exponent);
  const std::string sign = text[0] == '-' ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent) - 1, '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace

JsonValue JsonValue::boolean(bool value) {
  JsonValue out;
  out.kind_ = Kind::boolean;
  out.data_ = std::string(value ? "true" : "false");
  return out;
}

JsonValue JsonValue::number(std::string literal) {
  JsonValue out;
  out.kind_ = Kind::number;
  out.data_ = std::move(literal);
  return out;
}

JsonValue JsonValue::number(std::int64_t value) {
  return number(std::to_string(value));
}

JsonValue JsonValue::string(std::string text) {
  JsonValue out;
  out.kind_ = Kind::string;
  out.data_ = std::move(text);
  return out;
}

JsonValue JsonValue::array() {
  JsonValue out;
  out.kind_ = Kind::array;
  out.data_ = std::vector<JsonValue>();
  return out;
}

JsonValue JsonValue::object() {
  JsonValue out;
  out.kind_ = Kind::object;
  out.data_ = std::vector<Member>();
  return out;
}

JsonValue JsonValue::parse(std::string_view text) {
  JsonScanner scanner(text);
  JsonValue out;
  scanner.skip_space();
  bool good = scanner.value(&out);
  if (good) {
    scanner.skip_space();
    good = scanner.done();
    if (!good) scanner.error = "more text follows the JSON value";
  }
  if (!good) fail("not valid JSON: {}: {}", place_of(text, scanner.at), scanner.error);
  return out;
}

const char* JsonValue::kind_name() const {
  switch (kind_) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::object:
      break;
  }
  return "an object";
}

const std::string& JsonValue::text() const {
  static const std::string none;
  const auto* text = std::get_if<std::string>(&data_);
  return text != nullptr ? *text : none;
}

const std::vector<JsonValue>& JsonValue::items() const {
  static const std::vector<JsonValue> none;
  const auto* items = std::get_if<std::vector<JsonValue>>(&data_);
  return items != nullptr ? *items : none;
}

const std::vector<JsonValue::Member>& JsonValue::members() const {
  static const std::vector<Member> none;
  const auto* members = std::get_if<std::vector<Member>>(&data_);
  return members != nullptr ? *members : none;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

void JsonValue::set(std::string key, JsonValue value) {
  TRIAX_CHECK(kind_ == Kind::object);
  auto& members = std::get<std::vector<Member>>(data_);
  for (Member& member : members) {
    if (member.key == key) {
      member.value = std::move(value);
      return;
    }
  }
  members.push_back({std::move(key), std::move(value)});
}

void JsonValue::push(JsonValue value) {
  TRIAX_CHECK(kind_ == Kind::array);
  std::get<std::vector<JsonValue>>(data_).push_back(std::move(value));
}

std::string json_text(const JsonValue& value, const JsonStyle& style) {
  std::string out;
  write(out, value, style);
  return out;
}

void append_escaped(std::string& out, std::string_view text) {
  static constexpr std::string_view kMeant = "\"\\\b\f\n\r\t";
  static constexpr std::string_view kLetters = "\"\\bfnrt";
  for (const char c : text) {
    const std::size_t which = kMeant.find(c);
    if (which != std::string_view::npos) {
      out += '\\';
      out += kLetters[which];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
}

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  append_escaped(out, text);
  out += '"';
  return out;
}

std::string python_number(std::string_view literal) {
  if (literal == "-0") return "0";
  if (literal.find_first_of(".eE") == std::string_view::npos) return std::string(literal);
  const double value = double_of(literal);
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_text(value);
}

bool read_raw_object(std::string_view text, std::vector<RawMember>& members) {
  members.clear();
  JsonScanner scanner(text, {true, true});
  scanner.skip_space();
  if (!scanner.take('{')) return false;
  scanner.skip_space();
  if (scanner.take('}')) return true;
  while (true) {
    RawMember member;
    if (!scanner.string(&member.key)) return false;
    scanner.skip_space();
    if (!scanner.take(':')) return false;
    scanner.skip_space();
    member.kind = scanner.next_kind();
    const std::size_t begin = scanner.at;
    if (member.kind == JsonValue::Kind::string) {
      if (!scanner.string(&member.text)) return false;
    } else {
      if (!scanner.value(nullptr, 1)) return false;
      member.text = text.substr(begin, scanner.at - begin);
    }
    members.push_back(std::move(member));
    scanner.skip_space();
    if (scanner.take('}')) return true;
    if (!scanner.take(',')) return false;
    scanner.skip_space();
  }
}

bool is_json(std::string_view text, bool with_nan) {
  JsonScanner scanner(text, {false, with_nan});
  scanner.skip_space();
  if (!scanner.value(nullptr)) return false;
  scanner.skip_space();
  return scanner.done();
}

std::string_view json_trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n\r") - begin + 1);
}

}  // namespace triax::chat
