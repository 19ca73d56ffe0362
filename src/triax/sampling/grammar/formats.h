// JSON Schema's `format`: which are enforced, and how.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "triax/sampling/grammar/number_dfa.h"

namespace triax::grammar {

// The pattern that texts of the format match, exactly or a little narrower than the standard;
// nothing for formats that are not known.
std::optional<std::string> format_pattern(std::string_view format);

// Narrows the rule by a format of numbers (int32, uint64, float, ...). False: not known.
bool apply_number_format(std::string_view format, NumberRule& rule);

}  // namespace triax::grammar
