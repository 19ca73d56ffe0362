// Base64 as in rank files: the standard alphabet, padded, no line breaks.
#pragma once

#include <string>
#include <string_view>

namespace triax {

// Appends the decoded bytes to `out`. False (and `out` in an unspecified state) when `text` is not
// canonical base64: length a multiple of four, padding only at the end, unused bits zero.
bool base64_decode(std::string_view text, std::string& out);

std::string base64_encode(std::string_view bytes);

}  // namespace triax
