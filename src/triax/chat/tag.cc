#include "triax/chat/tag.h"

namespace triax::chat {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string_view without_spaces(std::string_view text) {
  std::size_t skip = 0;
  while (skip < text.size() && is_space(text[skip])) ++skip;
  return text.substr(skip);
}

std::string unescape(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    if (value.starts_with("&quot;")) {
      out += '"';
      value.remove_prefix(6);
    } else if (value.starts_with("&amp;")) {
      out += '&';
      value.remove_prefix(5);
    } else {
      out += value[0];
      value.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace

std::string_view tag_name(std::string_view header) {
  header = without_spaces(header);
  std::size_t end = 0;
  while (end < header.size() && !is_space(header[end])) ++end;
  return header.substr(0, end);
}

std::optional<std::string> tag_attribute(std::string_view header, std::string_view key) {
  std::string_view rest = without_spaces(header);
  rest.remove_prefix(tag_name(rest).size());
  while (true) {
    rest = without_spaces(rest);
    const std::size_t equals = rest.find("=\"");
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = rest.substr(0, equals);
    rest.remove_prefix(equals + 2);
    const std::size_t end = rest.find('"');
    if (end == std::string_view::npos) return std::nullopt;
    if (name == key) return unescape(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
}

}  // namespace triax::chat
