// Decimal numbers of any size, as they stand in JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace triax::grammar {

// (-1)^negative * 0.DIGITS * 10^exponent; digits without zeros at either end, none for zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  static Decimal parse(std::string_view json_number);

  bool zero() const { return digits.empty(); }
  bool integer() const { return exponent >= static_cast<std::int64_t>(digits.size()) || zero(); }

  // Digits of |value| before the point, without leading zeros ("0" for none), and after it, without
  // zeros at the end. Throws Error beyond 400 digits on either side.
  std::string whole() const;
  std::string fraction() const;
};

// -1, 0, 1
int compare(const Decimal& a, const Decimal& b);

// The value when it is a whole number >= 0; the largest one for all beyond.
std::optional<std::uint64_t> as_count(const Decimal& value);

}  // namespace triax::grammar
