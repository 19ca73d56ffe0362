// Parsing of `eval --against`.
#include "triax/cli/settings.h"

#include <charconv>

#include "triax/cli/options.h"

namespace triax::cli {
namespace {

std::size_t number(std::string_view key, std::string_view value, std::size_t high) {
  std::size_t out = 0;
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, out);
  if (error != std::errc() || at != end || out < 1 || out > high) {
    wrong_use("--against: {}={} is not a whole number from 1 to {}", key, value, high);
  }
  return out;
}

Isa isa_of(std::string_view value) {
  std::string names;
  for (int i = 0; i < kIsaCount; ++i) {
    const Isa isa = static_cast<Isa>(i);
    if (!isa_available(isa)) continue;
    if (isa_name(isa) == value) return isa;
    names += std::string(names.empty() ? "" : ", ") + std::string(isa_name(isa));
  }
  wrong_use("--against: isa={} cannot run here; there are {}", value, names);
}

}  // namespace

Settings parse_settings(std::string_view text, const Settings& base) {
  Settings out = base;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const std::size_t equals = item.find('=');
    // A bare "f32" is short for precision=f32.
    const std::string_view key =
        equals == std::string_view::npos ? "precision" : item.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? item : item.substr(equals + 1);
    if (key == "precision" && (value == "f32" || value == "bf16")) {
      out.precision = value == "f32" ? Precision::f32 : Precision::bf16;
    } else if (key == "isa") {
      out.isa = isa_of(value);
    } else if (key == "chunk") {
      out.chunk = number(key, value, std::size_t{1} << 20);
    } else if (key == "threads") {
      out.threads = number(key, value, 1024);
    } else {
      wrong_use(
          "--against: {} is no setting; there are precision=f32|bf16, isa=NAME, chunk=N, "
          "threads=N",
          in_quotes(item));
    }
  }
  return out;
}

std::string to_string(const Settings& s) {
  return fmt::format("precision={},isa={},chunk={},threads={}",
                     s.precision == Precision::f32 ? "f32" : "bf16", isa_name(s.isa), s.chunk,
                     s.threads);
}

}  // namespace triax::cli
