#include "triax/sampling/grammar/value.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "triax/core/error.h"
#include "triax/sampling/grammar/decimal.h"

namespace triax::grammar {
namespace {

// Builds the document from the parser's events.
class Builder {
 public:
  Builder(Value& root, std::string_view name) : root_(root), name_(name) {}

  bool null() { return put(Value{}); }
  bool boolean(bool b) {
    Value v;
    v.kind = Value::Kind::boolean;
    v.boolean = b;
    return put(std::move(v));
  }
  bool number_integer(std::int64_t n) { return number(fmt::format("{}", n)); }
  bool number_unsigned(std::uint64_t n) { return number(fmt::format("{}", n)); }
  bool number_float(double, const std::string& literal) { return number(literal); }
  bool string(std::string& s) {
    Value v;
    v.kind = Value::Kind::string;
    v.text = std::move(s);
    return put(std::move(v));
  }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Value::Kind::object); }
  bool start_array(std::size_t) { return open(Value::Kind::array); }
  bool key(std::string& k) {
    key_ = std::move(k);
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) {
    fail("{}: no JSON: error at byte {}, near {}", name_, position, in_quotes(token));
  }

 private:
  bool number(std::string literal) {
    Value v;
    v.kind = Value::Kind::number;
    v.text = std::move(literal);
    return put(std::move(v));
  }
  bool put(Value v) {
    place(std::move(v));
    return true;
  }
  Value* place(Value v) {
    if (open_.empty()) {
      root_ = std::move(v);
      return &root_;
    }
    Value& parent = *open_.back();
    if (parent.is(Value::Kind::array)) {
      parent.items.push_back(std::move(v));
      return &parent.items.back();
    }
    for (Value::Member& m : parent.members) {
      if (m.key == key_) {
        m.value = std::move(v);
        return &m.value;
      }
    }
    parent.members.push_back({key_, std::move(v)});
    return &parent.members.back().value;
  }
  bool open(Value::Kind kind) {
    if (open_.size() >= kValueDepth) {
      fail("{}: values lie more than {} deep within one another", name_, kValueDepth);
    }
    Value v;
    v.kind = kind;
    open_.push_back(place(std::move(v)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Value& root_;
  std::string_view name_;
  std::vector<Value*> open_;
  std::string key_;
};

void append_text(std::string& out, const Value& value, bool gaps) {
  const auto separator = [&](char c) {
    out += c;
    if (gaps) out += '\0';
  };
  switch (value.kind) {
    case Value::Kind::null:
      out += "null";
      return;
    case Value::Kind::boolean:
      out += value.boolean ? "true" : "false";
      return;
    case Value::Kind::number:
      out += value.text;
      return;
    case Value::Kind::string:
      out += json_string(value.text);
      return;
    case Value::Kind::array:
      out += '[';
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) separator(',');
        append_text(out, value.items[i], gaps);
      }
      out += ']';
      return;
    case Value::Kind::object:
      out += '{';
      for (std::size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) separator(',');
        out += json_string(value.members[i].key);
        separator(':');
        append_text(out, value.members[i].value, gaps);
      }
      out += '}';
      return;
  }
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (const Member& m : members) {
    if (m.key == key) return &m.value;
  }
  return nullptr;
}

Value parse_value(std::string_view text, std::string_view name) {
  Value root;
  Builder builder(root, name);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) fail("{}: no JSON", name);
  return root;
}

bool equal(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Value::Kind::null:
      return true;
    case Value::Kind::boolean:
      return a.boolean == b.boolean;
    case Value::Kind::number:
      return compare(Decimal::parse(a.text), Decimal::parse(b.text)) == 0;
    case Value::Kind::string:
      return a.text == b.text;
    case Value::Kind::array:
      if (a.items.size() != b.items.size()) return false;
      for (std::size_t i = 0; i < a.items.size(); ++i) {
        if (!equal(a.items[i], b.items[i])) return false;
      }
      return true;
    case Value::Kind::object:
      if (a.members.size() != b.members.size()) return false;
      for (const Value::Member& m : a.members) {
        const Value* other = b.find(m.key);
        if (other == nullptr || !equal(m.value, *other)) return false;
      }
      return true;
  }
  return false;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string json_text(const Value& value, bool gaps) {
  std::string out;
  append_text(out, value, gaps);
  return out;
}

std::string_view kind_name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::boolean:
      return "a boolean";
    case Value::Kind::number:
      return "a number";
    case Value::Kind::string:
      return "a string";
    case Value::Kind::array:
      return "an array";
    case Value::Kind::object:
      return "an object";
  }
  return "";
}

}  // namespace triax::grammar
