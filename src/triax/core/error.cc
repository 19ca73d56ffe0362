#include "triax/core/error.h"

namespace triax {

namespace {

constexpr std::size_t kQuotedMax = 200;  // bytes of text that a message repeats

// Length of the well-formed UTF-8 sequence that starts at text[i], 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(i);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  }
  return length;
}

void append_escaped(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text, i);
    if (length == 0 || c < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", c);
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  if (text.size() <= kQuotedMax) {
    append_escaped(out, text);
  } else {
    append_escaped(out, text.substr(0, kQuotedMax / 2));
    out += "...";
    append_escaped(out, text.substr(text.size() - kQuotedMax / 2));
  }
  return out + "\"";
}

void check_failed(const char* expression, const char* file, int line, std::string_view message) {
  throw LogicError(fmt::format("internal error at {}:{}: {}{}{}", file, line, expression,
                               message.empty() ? "" : ": ", message));
}

}  // namespace triax
