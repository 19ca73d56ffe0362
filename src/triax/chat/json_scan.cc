#include "triax/chat/json_scan.h"

#include <unordered_map>

#include "triax/tokenizer/utf8.h"

namespace triax::chat {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Finds equal keys; a table only for objects that are long.
class Keys {
 public:
  explicit Keys(const std::vector<JsonValue::Member>& members) : members_(members) {}

  // Where `key` is already, or the number of members.
  std::size_t place(const std::string& key) {
    if (members_.size() < kFew) {
      for (std::size_t i = 0; i < members_.size(); ++i) {
        if (members_[i].key == key) return i;
      }
      return members_.size();
    }
    while (known_.size() < members_.size()) {
      known_.emplace(members_[known_.size()].key, known_.size());
    }
    const auto found = known_.find(key);
    return found == known_.end() ? members_.size() : found->second;
  }

 private:
  static constexpr std::size_t kFew = 16;
  const std::vector<JsonValue::Member>& members_;
  std::unordered_map<std::string, std::size_t> known_;
};

}  // namespace

void JsonScanner::skip_space() {
  while (at < text_.size() &&
         (text_[at] == ' ' || text_[at] == '\t' || text_[at] == '\n' || text_[at] == '\r')) {
    ++at;
  }
}

JsonValue::Kind JsonScanner::next_kind() const {
  using Kind = JsonValue::Kind;
  if (done()) return Kind::null;
  switch (text_[at]) {
    case '"':
      return Kind::string;
    case '{':
      return Kind::object;
    case '[':
      return Kind::array;
    case 't':
    case 'f':
      return Kind::boolean;
    case 'n':
      return Kind::null;
    default:
      return Kind::number;
  }
}

bool JsonScanner::value(JsonValue* out, std::size_t depth) {
  if (done()) return wrong("the text ends where a value should stand");
  if (depth > kJsonDepth) return wrong("values lie too deep within one another");
  const std::size_t begin = at;
  const JsonValue::Kind kind = next_kind();
  switch (kind) {
    case JsonValue::Kind::string: {
      std::string text;
      if (!string(out != nullptr ? &text : nullptr)) return false;
      if (out != nullptr) *out = JsonValue::string(std::move(text));
      return true;
    }
    case JsonValue::Kind::object:
      return object(out, depth);
    case JsonValue::Kind::array:
      return array(out, depth);
    case JsonValue::Kind::null:
      if (!literal("null")) return false;
      if (out != nullptr) *out = JsonValue();
      return true;
    case JsonValue::Kind::boolean:
      if (!literal(text_[at] == 't' ? "true" : "false")) return false;
      if (out != nullptr) *out = JsonValue::boolean(text_[begin] == 't');
      return true;
    case JsonValue::Kind::number:
      break;
  }
  if (!number()) return false;
  if (out != nullptr) *out = JsonValue::number(std::string(text_.substr(begin, at - begin)));
  return true;
}

bool JsonScanner::literal(std::string_view word) {
  if (text_.substr(at, word.size()) != word) return wrong("this is no JSON value");
  at += word.size();
  return true;
}

bool JsonScanner::digits() {
  const std::size_t begin = at;
  while (at < text_.size() && is_digit(text_[at])) ++at;
  return at > begin;
}

bool JsonScanner::number() {
  if (rules_.with_nan) {
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (text_.substr(at, word.size()) == word) return literal(word);
    }
  }
  const std::size_t begin = at;
  const auto stop = [&](const char* what) {
    at = begin;
    return wrong(what);
  };
  take('-');
  if (!take('0') && !digits()) return stop("this is no JSON value");
  if (at < text_.size() && is_digit(text_[at])) return stop("a number starts with 0");
  if (take('.') && !digits()) return stop("a number has no digit after its point");
  if (take('e') || take('E')) {
    if (!take('+')) take('-');
    if (!digits()) return stop("a number has no digit in its exponent");
  }
  return true;
}

bool JsonScanner::code_unit(char32_t& unit) {
  if (text_.size() - at < 4) return wrong("\\u needs four hexadecimal digits");
  unit = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const char c = text_[at + i];
    const int digit = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return wrong("\\u needs four hexadecimal digits");
    unit = unit << 4 | static_cast<char32_t>(digit);
  }
  at += 4;
  return true;
}

// Behind the backslash.
bool JsonScanner::escape(std::string* out) {
  if (done()) return wrong("a string does not end");
  static constexpr std::string_view kLetters = "\"\\/bfnrt";
  static constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  const std::size_t which = kLetters.find(text_[at]);
  if (which != std::string_view::npos) {
    ++at;
    if (out != nullptr) out->push_back(kMeant[which]);
    return true;
  }
  if (!take('u')) return wrong("a backslash is followed by no escape that JSON knows");
  char32_t unit = 0;
  if (!code_unit(unit)) return false;
  if (unit >= 0xD800 && unit < 0xDC00 && text_.substr(at, 2) == "\\u") {
    const std::size_t before = at;
    at += 2;
    char32_t low = 0;
    if (!code_unit(low)) return false;
    if (low >= 0xDC00 && low < 0xE000) {
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    } else {
      at = before;
    }
  }
  if (unit >= 0xD800 && unit < 0xE000) unit = kReplacement;
  if (out != nullptr) utf8_append(*out, unit);
  return true;
}

bool JsonScanner::string(std::string* out) {
  if (!take('"')) return wrong("a string should stand here");
  const std::size_t begin_of_out = out != nullptr ? out->size() : 0;
  bool ascii = true;
  while (at < text_.size()) {
    const std::size_t begin = at;
    while (at < text_.size() && text_[at] != '"' && text_[at] != '\\' &&
           (rules_.control_characters || static_cast<unsigned char>(text_[at]) >= 0x20)) {
      ascii = ascii && static_cast<unsigned char>(text_[at]) < 0x80;
      ++at;
    }
    if (out != nullptr) out->append(text_.substr(begin, at - begin));
    if (done()) break;
    if (take('"')) {
      if (out != nullptr && !ascii) {
        const std::string_view added = std::string_view(*out).substr(begin_of_out);
        if (!utf8_valid(added)) out->replace(begin_of_out, std::string::npos, utf8_repair(added));
      }
      return true;
    }
    if (!take('\\')) return wrong("a control character stands in a string; write it as \\u00XX");
    if (!escape(out)) return false;
  }
  return wrong("a string does not end");
}

bool JsonScanner::array(JsonValue* out, std::size_t depth) {
  ++at;
  if (out != nullptr) *out = JsonValue::array();
  skip_space();
  if (take(']')) return true;
  while (true) {
    JsonValue item;
    if (!value(out != nullptr ? &item : nullptr, depth + 1)) return false;
    if (out != nullptr) out->push(std::move(item));
    skip_space();
    if (take(']')) return true;
    if (!take(','))
      return wrong(done() ? "an array does not end" : "a comma or ] should stand here");
    skip_space();
  }
}

bool JsonScanner::object(JsonValue* out, std::size_t depth) {
  ++at;
  if (out != nullptr) *out = JsonValue::object();
  skip_space();
  if (take('}')) return true;
  std::vector<JsonValue::Member> none;
  auto& members = out != nullptr ? std::get<2>(out->data_) : none;
  Keys keys(members);
  while (true) {
    std::string key;
    if (!string(out != nullptr ? &key : nullptr)) return false;
    skip_space();
    if (!take(':')) return wrong("a colon should stand here");
    skip_space();
    JsonValue item;
    if (!value(out != nullptr ? &item : nullptr, depth + 1)) return false;
    if (out != nullptr) {
      const std::size_t place = keys.place(key);
      if (place < members.size()) {
        members[place].value = std::move(item);
      } else {
        members.push_back({std::move(key), std::move(item)});
      }
    }
    skip_space();
    if (take('}')) return true;
    if (!take(','))
      return wrong(done() ? "an object does not end" : "a comma or } should stand here");
    skip_space();
  }
}

}  // namespace triax::chat
