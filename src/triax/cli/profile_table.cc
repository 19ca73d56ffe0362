// Tables of operator families.
#include "triax/cli/profile_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace triax::cli {
namespace {

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

double number(std::uint64_t n) {
  return static_cast<double>(n);
}

// An amount and its rate per second, both in units of 10^n; blanks for none.
std::string amount(std::uint64_t count, double tokens, double unit, double seconds,
                   double rate_unit) {
  if (count == 0) return fmt::format("{:>11} {:>9}", "", "");
  return fmt::format("{:>11.3f} {:>9.1f}", ratio(number(count), tokens) / unit,
                     ratio(number(count), seconds) / rate_unit);
}

std::string line(std::string_view name, const Profile::Entry& e, const Profiled& p) {
  const auto tokens = static_cast<double>(p.tokens);
  return fmt::format("  {:<16} {:>9.4f} {:>6.1f} % {} {}\n", name, ratio(1e3 * e.seconds, tokens),
                     100 * ratio(e.seconds, p.seconds),
                     amount(e.bytes, tokens, 1e6, e.seconds, 1e9),
                     amount(e.operations, tokens, 1e6, e.seconds, 1e9));
}

bool used(const Profile::Entry& e) {
  return e.seconds > 0 || e.bytes > 0 || e.operations > 0;
}

void add(const Profile::Entry& from, Profile::Entry& to) {
  to.seconds += from.seconds;
  to.bytes += from.bytes;
  to.operations += from.operations;
}

}  // namespace

Profiled::Profiled(const Profile& profile, double wall_seconds, std::size_t token_count)
    : seconds(wall_seconds), tokens(token_count) {
  for (std::size_t i = 0; i < kFamilies; ++i) families[i] = profile[static_cast<Family>(i)];
}

Profiled& Profiled::operator+=(const Profiled& other) {
  for (std::size_t i = 0; i < kFamilies; ++i) add(other.families[i], families[i]);
  seconds += other.seconds;
  tokens += other.tokens;
  return *this;
}

Profile::Entry Profiled::total() const {
  Profile::Entry sum;
  for (const Profile::Entry& e : families) add(e, sum);
  return sum;
}

double explained_part(const Profiled& p) {
  return ratio(p.total().seconds - p[Family::other].seconds, p.seconds);
}

std::string profile_table(const Profiled& p) {
  std::string out = fmt::format("  {:<16} {:>9} {:>8} {:>11} {:>9} {:>11} {:>9}\n", "family",
                                "ms/token", "share", "MB/token", "GB/s", "MFLOP/token", "GFLOP/s");
  for (std::size_t i = 0; i < kFamilies; ++i) {
    const auto family = static_cast<Family>(i);
    if (used(p[family])) out += line(family_name(family), p[family], p);
  }
  out += line("sum", p.total(), p);
  out += fmt::format("  the families explain {:.1f} % of the wall time\n", 100 * explained_part(p));
  return out;
}

nlohmann::ordered_json profile_json(const Profiled& p) {
  nlohmann::ordered_json out;
  out["seconds"] = p.seconds;
  out["explained"] = explained_part(p);
  out["tokens"] = p.tokens;
  out["families"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < kFamilies; ++i) {
    const auto family = static_cast<Family>(i);
    const Profile::Entry& e = p[family];
    if (!used(e)) continue;
    out["families"].push_back({{"name", family_name(family)},
                               {"seconds", e.seconds},
                               {"share", ratio(e.seconds, p.seconds)},
                               {"bytes", e.bytes},
                               {"operations", e.operations}});
  }
  return out;
}

}  // namespace triax::cli
