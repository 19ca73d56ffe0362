#include "triax/sampling/grammar/formats.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace triax::grammar {
namespace {

// RFC 3339; days as long as the month is, the 29th of February in leap years.
constexpr std::string_view kDate =
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
constexpr std::string_view kTime =
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?"
    "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
constexpr std::string_view kOctet = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
// RFC 1123
constexpr std::string_view kHost =
    "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    "(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*";

std::string ipv4() {
  return fmt::format("{0}(?:\\.{0}){{3}}", kOctet);
}

// RFC 4291: eight groups, or fewer around one "::"; the last two may be an IPv4 address.
std::string ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  const std::string tail = fmt::format("(?:{0}:{0}|{1})", group, ipv4());
  std::string out = fmt::format("(?:(?:{0}:){{6}}{1}", group, tail);
  for (int before = 0; before <= 5; ++before) {  // groups before the "::"
    const std::string head =
        before == 0 ? "" : fmt::format("{0}(?::{0}){{{1}}}", group, before - 1);
    for (int after = 0; after <= 5 - before; ++after) {
      out += fmt::format("|{}::{}{}", head,
                         after == 0 ? "" : fmt::format("(?:{}:){{{}}}", group, after), tail);
    }
  }
  for (int before = 0; before <= 7; ++before) {
    const std::string head =
        before == 0 ? "" : fmt::format("{0}(?::{0}){{{1}}}", group, before - 1);
    out += fmt::format("|{}::{}", head, before < 7 ? fmt::format("(?:{})?", group) : "");
  }
  return out + ")";
}

std::string duration() {  // RFC 3339, appendix A
  const std::string_view time = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
  return fmt::format(
      "P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:{0})?|{0})",
      time);
}

std::string uri(bool relative) {  // RFC 3986, by its characters
  const std::string_view chars = "(?:[A-Za-z0-9._~:/@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})";
  const std::string rest = fmt::format("{0}*(?:\\?(?:{0}|\\?)*)?(?:#(?:{0}|\\?)*)?", chars);
  const std::string_view scheme = "[A-Za-z][A-Za-z0-9+.-]*:";
  const std::string_view plain = "(?:[A-Za-z0-9._~/@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})";
  if (!relative) return fmt::format("{}{}{}", scheme, chars, rest);
  return fmt::format("(?:{0}{1}|(?:/{1})?|{2}+(?:/{1})?)", scheme, rest, plain);
}

std::optional<std::string> inner(std::string_view format) {
  if (format == "date") return std::string(kDate);
  if (format == "time") return std::string(kTime);
  if (format == "date-time") return fmt::format("{}T{}", kDate, kTime);
  if (format == "duration") return duration();
  if (format == "uuid") {
    return "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}";
  }
  if (format == "email") {
    return fmt::format(
        "[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+(?:\\.[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+)*@{}", kHost);
  }
  if (format == "hostname") return std::string(kHost);
  if (format == "ipv4") return ipv4();
  if (format == "ipv6") return ipv6();
  if (format == "uri" || format == "url") return uri(false);
  if (format == "uri-reference") return uri(true);
  if (format == "json-pointer") return "(?:/(?:[^~/]|~[01])*)*";
  if (format == "byte") {  // base64, RFC 4648
    return "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?";
  }
  if (format == "int32" || format == "int64") return "-?(?:0|[1-9][0-9]*)";
  if (format == "uint32" || format == "uint64") return "0|[1-9][0-9]*";
  if (format == "password" || format == "binary" || format == "text") return "[^]*";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> format_pattern(std::string_view format) {
  const std::optional<std::string> pattern = inner(format);
  if (!pattern) return std::nullopt;
  return fmt::format("^(?:{})$", *pattern);
}

bool apply_number_format(std::string_view format, NumberRule& rule) {
  static constexpr std::array<
      std::pair<std::string_view, std::pair<std::string_view, std::string_view>>, 4>
      kRanges{{{"int32", {"-2147483648", "2147483647"}},
               {"int64", {"-9223372036854775808", "9223372036854775807"}},
               {"uint32", {"0", "4294967295"}},
               {"uint64", {"0", "18446744073709551615"}}}};
  if (format == "float" || format == "double" || format == "decimal") return true;
  for (const auto& [name, range] : kRanges) {
    if (format != name) continue;
    const Decimal low = Decimal::parse(range.first), high = Decimal::parse(range.second);
    rule.integer = true;
    if (!rule.low || compare(rule.low->value, low) < 0) rule.low = NumberBound{low, false};
    if (!rule.high || compare(rule.high->value, high) > 0) rule.high = NumberBound{high, false};
    return true;
  }
  return false;
}

}  // namespace triax::grammar
