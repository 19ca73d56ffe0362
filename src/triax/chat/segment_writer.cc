#include "triax/chat/segment_writer.h"

namespace triax::chat {

std::string escape_attribute(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

void SegmentWriter::structure(Role role) {
  const K3Special& token = kK3Specials[static_cast<std::size_t>(role)];
  out_.push_back({SegmentKind::structure, role, generated_, std::string(token.name)});
}

void SegmentWriter::text(std::string_view text) {
  if (text.empty()) return;
  out_.push_back({SegmentKind::text, Role::Open, generated_, std::string(text)});
}

void SegmentWriter::control(std::string_view text) {
  if (text.empty()) return;
  out_.push_back({SegmentKind::control, Role::Open, generated_, std::string(text)});
}

void SegmentWriter::open(std::string_view tag, const Attributes& attributes) {
  structure(Role::Open);
  text(tag);
  for (const auto& [key, value] : attributes) {
    text(" " + std::string(key));
    text("=\"");
    text(escape_attribute(value));
    text("\"");
  }
  structure(Role::Sep);
}

void SegmentWriter::close(std::string_view tag) {
  structure(Role::Close);
  text(tag);
  structure(Role::Sep);
}

void SegmentWriter::end_message() {
  close("message");
  structure(Role::EndOfMsg);
}

}  // namespace triax::chat
