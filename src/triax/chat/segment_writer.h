// Writes XTML segments one after another.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triax/chat/render.h"

namespace triax::chat {

// & and then " of an attribute's value; nothing else is escaped.
std::string escape_attribute(std::string_view value);

class SegmentWriter {
 public:
  using Attributes = std::vector<std::pair<std::string_view, std::string_view>>;

  SegmentWriter(std::vector<Segment>& out, bool generated) : out_(out), generated_(generated) {}

  void structure(Role role);
  void text(std::string_view text);  // nothing for an empty one
  void control(std::string_view text);
  void open(std::string_view tag, const Attributes& attributes = {});
  void close(std::string_view tag);
  void end_message();  // close(message) <|end_of_msg|>

  void set_generated(bool generated) { generated_ = generated; }
  std::size_t size() const { return out_.size(); }

 private:
  std::vector<Segment>& out_;
  bool generated_;
};

}  // namespace triax::chat
