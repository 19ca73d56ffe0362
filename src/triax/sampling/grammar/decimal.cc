#include "triax/sampling/grammar/decimal.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "triax/core/error.h"

namespace triax::grammar {
namespace {

constexpr std::int64_t kPlaces = 400;

// |a| against |b|
int compare_magnitude(const Decimal& a, const Decimal& b) {
  if (a.zero() || b.zero()) return (a.zero() ? 0 : 1) - (b.zero() ? 0 : 1);
  if (a.exponent != b.exponent) return a.exponent < b.exponent ? -1 : 1;
  const int order = a.digits.compare(b.digits);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

void check_places(const Decimal& d) {
  if (d.exponent > kPlaces || static_cast<std::int64_t>(d.digits.size()) - d.exponent > kPlaces) {
    fail("a bound of the schema needs more than {} decimal places; use a simpler one", kPlaces);
  }
}

}  // namespace

Decimal Decimal::parse(std::string_view text) {
  Decimal d;
  std::size_t i = 0;
  if (i < text.size() && text[i] == '-') d.negative = true, ++i;
  bool point = false;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    if (d.digits.empty() && text[i] == '0') {  // a leading zero only moves the point
      if (point) --d.exponent;
      continue;
    }
    d.digits += text[i];
    if (!point) ++d.exponent;
  }
  if (i < text.size()) {
    ++i;
    const bool minus = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    std::int64_t power = 0;
    for (; i < text.size(); ++i) {
      power = std::min<std::int64_t>(power * 10 + (text[i] - '0'), 1'000'000'000'000);
    }
    d.exponent += minus ? -power : power;
  }
  while (!d.digits.empty() && d.digits.back() == '0') d.digits.pop_back();
  if (d.digits.empty()) d = Decimal{};
  return d;
}

std::string Decimal::whole() const {
  check_places(*this);
  if (exponent <= 0) return "0";
  std::string out = digits.substr(0, static_cast<std::size_t>(exponent));
  out.resize(static_cast<std::size_t>(exponent), '0');
  return out;
}

std::string Decimal::fraction() const {
  check_places(*this);
  if (zero()) return {};
  if (exponent <= 0) return std::string(static_cast<std::size_t>(-exponent), '0') + digits;
  return static_cast<std::size_t>(exponent) >= digits.size()
             ? std::string()
             : digits.substr(static_cast<std::size_t>(exponent));
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;  // zero is never negative
  return a.negative ? -compare_magnitude(a, b) : compare_magnitude(a, b);
}

std::optional<std::uint64_t> as_count(const Decimal& value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  if (value.negative || !value.integer()) return std::nullopt;
  if (value.exponent > 19) return kMost;
  std::uint64_t out = 0;
  for (const char c : value.whole()) out = out * 10 + static_cast<std::uint64_t>(c - '0');
  return out;
}

}  // namespace triax::grammar
