// Parsing of `eval --against`.
#include "triax/cli/settings.h"

#include <charconv>
#include <optional>

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

// The component of that name, if it may be 8-bit.
std::optional<std::size_t> family(std::string_view name) {
  const Components packable = packable_components();
  for (std::size_t i = 0; i < kComponents; ++i) {
    if (packable.test(i) && component_name(static_cast<Component>(i)) == name) return i;
  }
  return std::nullopt;
}

std::string join_families(const Components& set, std::string_view between) {
  std::string out;
  for (std::size_t i = 0; i < kComponents; ++i) {
    if (!set.test(i)) continue;
    out += std::string(out.empty() ? "" : between) +
           std::string(component_name(static_cast<Component>(i)));
  }
  return out;
}

Components trunk_of(std::string_view value) {
  if (value == "stored") return {};
  if (value == "int8") return packable_components();
  constexpr std::string_view kPrefix = "int8:";
  if (!value.starts_with(kPrefix)) {
    wrong_use("--against: trunk={} is neither stored, int8 nor int8:FAMILY", value);
  }
  Components out;
  for (std::string_view rest = value.substr(kPrefix.size());;) {
    const std::size_t plus = rest.find('+');
    const std::string_view name = rest.substr(0, plus);
    const auto found = family(name);
    if (!found) {
      wrong_use("--against: trunk=int8:{} is no family of weights that may be 8-bit; there are {}",
                name, join_families(packable_components(), ", "));
    }
    out.set(*found);
    if (plus == std::string_view::npos) return out;
    rest.remove_prefix(plus + 1);
  }
}

}  // namespace

std::string trunk_text(const Components& int8) {
  if (int8.none()) return "stored";
  return int8 == packable_components() ? "int8" : "int8:" + join_families(int8, "+");
}

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
    } else if (key == "trunk") {
      out.int8 = trunk_of(value);
    } else {
      wrong_use(
          "--against: {} is no setting; there are precision=f32|bf16, isa=NAME, chunk=N, "
          "threads=N, trunk=stored|int8|int8:FAMILY",
          in_quotes(item));
    }
  }
  return out;
}

std::string to_string(const Settings& s) {
  return fmt::format("precision={},isa={},chunk={},threads={},trunk={}",
                     s.precision == Precision::f32 ? "f32" : "bf16", isa_name(s.isa), s.chunk,
                     s.threads, trunk_text(s.int8));
}

}  // namespace triax::cli
