// Numbers as people read them; see format.h.
#include "triax/cli/format.h"

#include <fmt/format.h>

#include <cmath>

namespace triax::cli {

std::string grouped(std::uint64_t n) {
  const std::string digits = std::to_string(n);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string human_bytes(std::uint64_t n) {
  if (n < 1000) return fmt::format("{} B", n);
  double value = static_cast<double>(n);
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB", "PB"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return value < 9.95 ? fmt::format("{:.1f} {}", value, unit)
                      : fmt::format("{:.0f} {}", value, unit);
}

std::string human_seconds(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  if (seconds < 9.95) return fmt::format("{:.2g} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::lround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string human_rate(double per_second) {
  if (!(per_second >= 0) || per_second > 1e15) return "?";
  if (per_second >= 99.95) return grouped(static_cast<std::uint64_t>(std::lround(per_second)));
  return fmt::format("{:.3g}", per_second);
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\\') {
      out += "\\\\";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace triax::cli
