// Normalised comparison.
#include "triax/world/grade.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "triax/world/lexicon.h"

namespace triax::world {
namespace {

constexpr std::array<std::string_view, 12> kLeading = {"the", "a",     "an", "in",      "on", "at",
                                                       "by",  "under", "to", "because", "it", "is"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

const std::map<std::string, int>& numbers() {
  static const std::map<std::string, int> all = [] {
    std::map<std::string, int> map;
    for (int n = 0; n < 100; ++n) map[number_word(n)] = n;
    return map;
  }();
  return all;
}

std::optional<long long> whole_number(const std::string& text) {
  if (text.empty() || text.size() > 15) return std::nullopt;
  const std::size_t sign = text[0] == '-' ? 1 : 0;
  if (sign == text.size()) return std::nullopt;
  for (std::size_t i = sign; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
  }
  return std::stoll(text);
}

bool equal_values(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  if (a.is_object() && b.is_object()) {
    if (a.size() != b.size()) return false;
    for (const auto& [key, value] : a.items()) {
      if (!b.contains(key) || !equal_values(value, b[key])) return false;
    }
    return true;
  }
  if (a.is_array() && b.is_array()) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal_values);
  }
  return a == b;
}

}  // namespace

std::string normalised(std::string_view answer) {
  std::string text;
  for (const char c : lower(answer)) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space) {
      text.push_back(c);
    } else if (!text.empty() && text.back() != ' ') {
      text.push_back(' ');
    }
  }
  while (!text.empty() &&
         std::string_view(" .!?,;:\"").find(text.back()) != std::string_view::npos) {
    text.pop_back();
  }
  while (!text.empty() && text.front() == '"') text.erase(0, 1);
  for (bool again = true; again;) {
    again = false;
    const std::size_t space = text.find(' ');
    if (space == std::string::npos) break;
    const std::string_view first = std::string_view(text).substr(0, space);
    if (std::find(kLeading.begin(), kLeading.end(), first) != kLeading.end()) {
      text.erase(0, space + 1);
      again = true;
    }
  }
  const auto number = numbers().find(text);
  return number != numbers().end() ? std::to_string(number->second) : text;
}

bool same_answer(std::string_view answer, std::string_view truth) {
  const std::string a = normalised(answer), b = normalised(truth);
  if (a.empty()) return false;
  const auto x = whole_number(a), y = whole_number(b);
  if (x && y) return *x == *y;
  return a == b;
}

bool same_call(const Json& call, const Json& truth) {
  if (!call.is_object() || !truth.is_object()) return false;
  if (!call.contains("name") || call["name"] != truth["name"]) return false;
  return call.contains("arguments") && equal_values(call["arguments"], truth["arguments"]);
}

}  // namespace triax::world
