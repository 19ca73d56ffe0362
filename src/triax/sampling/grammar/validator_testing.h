// A small JSON-schema validator over nlohmann's values, written apart from the compiler that the
// tests hold against it; and random documents of a schema.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "triax/core/rng.h"

namespace triax::testing {

using Json = nlohmann::ordered_json;

class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  bool valid(const Json& v) const { return valid(v, root_); }

  bool valid(const Json& v, const Json& s) const {
    if (s.is_boolean()) return s.get<bool>();
    if (s.contains("$ref") && !valid(v, target(s["$ref"]))) return false;
    if (s.contains("type") && !typed(v, s["type"], s.value("nullable", false))) return false;
    if (s.contains("const") && s["const"] != v) return false;
    if (s.contains("enum") && !among(v, s["enum"])) return false;
    if (s.contains("allOf")) {
      for (const Json& t : s["allOf"]) {
        if (!valid(v, t)) return false;
      }
    }
    if (s.contains("anyOf") && matches(v, s["anyOf"]) == 0) return false;
    if (s.contains("oneOf") && matches(v, s["oneOf"]) != 1) return false;
    if (v.is_number()) return number(v, s);
    if (v.is_string()) return text(v.get<std::string>(), s);
    if (v.is_array()) return array(v, s);
    return !v.is_object() || object(v, s);
  }

  const Json& target(const std::string& ref) const {
    return root_.at(Json::json_pointer(ref.substr(1)));
  }

  static std::size_t characters(const std::string& t) {
    std::size_t n = 0;
    for (const char c : t) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    return n;
  }

 private:
  static bool is_type(const Json& v, const std::string& t) {
    if (t == "null") return v.is_null();
    if (t == "boolean") return v.is_boolean();
    if (t == "number") return v.is_number();
    if (t == "integer") {
      return v.is_number_integer() ||
             (v.is_number() && std::floor(v.get<double>()) == v.get<double>());
    }
    if (t == "string") return v.is_string();
    if (t == "array") return v.is_array();
    return v.is_object();
  }
  static bool typed(const Json& v, const Json& type, bool nullable) {
    if (nullable && v.is_null()) return true;
    if (type.is_string()) return is_type(v, type);
    for (const Json& t : type) {
      if (is_type(v, t)) return true;
    }
    return false;
  }
  static bool among(const Json& v, const Json& list) {
    for (const Json& w : list) {
      if (v == w) return true;
    }
    return false;
  }
  std::size_t matches(const Json& v, const Json& list) const {
    std::size_t n = 0;
    for (const Json& s : list) n += valid(v, s) ? 1 : 0;
    return n;
  }
  static bool number(const Json& v, const Json& s) {
    const auto x = v.get<long double>();
    if (s.contains("minimum") && x < s["minimum"].get<long double>()) return false;
    if (s.contains("maximum") && x > s["maximum"].get<long double>()) return false;
    if (s.contains("exclusiveMinimum") && x <= s["exclusiveMinimum"].get<long double>()) {
      return false;
    }
    if (s.contains("exclusiveMaximum") && x >= s["exclusiveMaximum"].get<long double>()) {
      return false;
    }
    if (!s.contains("multipleOf")) return true;
    const long double steps = x / s["multipleOf"].get<long double>();
    return std::fabs(steps - std::round(steps)) < 1e-6L;
  }
  static bool text(const std::string& t, const Json& s) {
    if (s.contains("minLength") && characters(t) < s["minLength"].get<std::uint64_t>())
      return false;
    if (s.contains("maxLength") && characters(t) > s["maxLength"].get<std::uint64_t>())
      return false;
    return !s.contains("pattern") ||
           std::regex_search(t, std::regex(s["pattern"].get<std::string>()));
  }
  bool array(const Json& v, const Json& s) const {
    if (s.contains("minItems") && v.size() < s["minItems"].get<std::size_t>()) return false;
    if (s.contains("maxItems") && v.size() > s["maxItems"].get<std::size_t>()) return false;
    const Json none = Json::array();
    const Json& prefix = s.contains("prefixItems") ? s["prefixItems"] : none;
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (i < prefix.size()) {
        if (!valid(v[i], prefix[i])) return false;
      } else if (s.contains("items") && !valid(v[i], s["items"])) {
        return false;
      }
    }
    return true;
  }
  bool object(const Json& v, const Json& s) const {
    if (s.contains("minProperties") && v.size() < s["minProperties"].get<std::size_t>())
      return false;
    if (s.contains("maxProperties") && v.size() > s["maxProperties"].get<std::size_t>())
      return false;
    if (s.contains("required")) {
      for (const Json& name : s["required"]) {
        if (!v.contains(name.get<std::string>())) return false;
      }
    }
    for (const auto& [name, value] : v.items()) {
      if (s.contains("propertyNames") && !valid(Json(name), s["propertyNames"])) return false;
      bool matched = s.contains("properties") && s["properties"].contains(name);
      if (matched && !valid(value, s["properties"][name])) return false;
      if (s.contains("patternProperties")) {
        for (const auto& [pattern, t] : s["patternProperties"].items()) {
          if (!std::regex_search(name, std::regex(pattern))) continue;
          matched = true;
          if (!valid(value, t)) return false;
        }
      }
      if (!matched && s.contains("additionalProperties") &&
          !valid(value, s["additionalProperties"])) {
        return false;
      }
    }
    return true;
  }

  const Json& root_;
};

// Random documents of a schema, as far as guessing finds them.
class Guesser {
 public:
  Guesser(const Json& root, Rng& rng) : root_(root), check_(root), rng_(rng) {}

  // False: nothing was found that the validator takes.
  bool document(Json& out) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      out = guess(root_, 0);
      if (check_.valid(out)) return true;
    }
    return false;
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(rng_.next() % n); }

 private:
  Json guess(const Json& s, int depth) {
    if (s.is_boolean()) return any(depth);
    if (s.contains("$ref")) return guess(check_.target(s["$ref"]), depth + 1);
    if (s.contains("const")) return s["const"];
    if (s.contains("enum")) return s["enum"][below(s["enum"].size())];
    for (const char* choice : {"anyOf", "oneOf"}) {
      if (s.contains(choice)) {
        const Json& list = s[choice];
        return guess(list[depth > 5 ? 0 : below(list.size())], depth + 1);
      }
    }
    if (s.contains("allOf")) return guess(s["allOf"][0], depth + 1);
    std::string type = "object";
    if (s.contains("type")) {
      type = s["type"].is_string() ? s["type"].get<std::string>()
                                   : s["type"][below(s["type"].size())].get<std::string>();
    } else if (!s.contains("properties") && !s.contains("required")) {
      return any(depth);
    }
    return of_type(type, s, depth);
  }
  Json of_type(const std::string& type, const Json& s, int depth) {
    if (type == "null") return nullptr;
    if (type == "boolean") return below(2) == 0;
    if (type == "integer") return integer(s);
    if (type == "number") return below(2) == 0 ? integer(s) : Json(0.5 + integer(s).get<double>());
    if (type == "string") return text(s);
    return type == "array" ? array(s, depth) : object(s, depth);
  }
  Json integer(const Json& s) {
    if (!s.contains("minimum") && !s.contains("maximum")) {
      return static_cast<std::int64_t>(rng_.next()) >> below(64);
    }
    const auto low = static_cast<std::int64_t>(s.value("minimum", s.value("maximum", 0.0) - 50.0));
    const auto high = static_cast<std::int64_t>(s.value("maximum", s.value("minimum", 0.0) + 50.0));
    return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low) + 1));
  }
  Json text(const Json& s) {
    static constexpr const char* kPieces[] = {"a",  "b",         "z",  " ",    "\"",   "\\",
                                              "\n", "é",         "漢", "😀",   "\x01", "/",
                                              "</", "<|close|>", "1",  "true", "{\""};
    const std::size_t least = s.value("minLength", std::size_t{0});
    const bool plain = s.contains("pattern");
    std::string out;
    const std::size_t size = (least > 1000 ? 0 : least) + below(6);
    for (std::size_t i = 0; i < size; ++i) out += kPieces[plain ? below(3) : below(17)];
    return out;
  }
  Json array(const Json& s, int depth) {
    Json out = Json::array();
    const std::size_t size = s.value("minItems", std::size_t{0}) + (depth > 4 ? 0 : below(3));
    for (std::size_t i = 0; i < size; ++i) {
      out.push_back(s.contains("items") ? guess(s["items"], depth + 1) : any(depth + 1));
    }
    return out;
  }
  Json object(const Json& s, int depth) {
    std::vector<std::pair<std::string, Json>> members;
    if (s.contains("properties")) {
      for (const auto& [name, t] : s["properties"].items()) {
        bool needed = false;
        if (s.contains("required")) {
          for (const Json& r : s["required"]) needed = needed || r == name;
        }
        if (needed ? depth < 30 : depth < 5 && below(2) == 0) {
          members.emplace_back(name, guess(t, depth + 1));
        }
      }
    }
    const Json open = true;
    const Json& others = s.contains("additionalProperties") ? s["additionalProperties"] : open;
    if (others != Json(false) && depth < 4 && below(2) == 0) {
      members.emplace_back("other\"" + std::to_string(below(100)), guess(others, depth + 1));
    }
    for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[below(i)]);
    Json out = Json::object();
    for (auto& [name, value] : members) out[name] = std::move(value);
    return out;
  }
  Json any(int depth) {
    static const Json kEmpty = Json::object();
    static constexpr const char* kTypes[] = {"null",   "boolean", "integer", "number",
                                             "string", "array",   "object"};
    return of_type(kTypes[depth > 3 ? below(5) : below(7)], kEmpty, depth + 1);
  }

  const Json& root_;
  Validator check_;
  Rng& rng_;
};

}  // namespace triax::testing
