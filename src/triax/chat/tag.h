// The header of an XTML tag: its name and attributes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace triax::chat {

// "call" of `call tool="f" index="1"`.
std::string_view tag_name(std::string_view header);

// The value of an attribute with &quot; and &amp; read back; none where it is not there.
std::optional<std::string> tag_attribute(std::string_view header, std::string_view key);

}  // namespace triax::chat
