// The chat page, which the binary carries (sources in web/).
#pragma once

#include <string>
#include <string_view>

#include "triax/server/http.h"

namespace triax::server {

struct Page {
  std::string_view html;
  std::string etag;  // with its quotes
  std::string
      policy;  // Content-Security-Policy: nothing but the page's own script, style and server
};
const Page& chat_page();

// What its answers carry beside the type.
HttpFields page_fields(const Page& page);

// The policy for a page whose script and style elements stand in it.
std::string page_policy(std::string_view html);

// Does an If-None-Match field (may be empty) name this version?
bool same_version(std::string_view if_none_match, std::string_view etag);

}  // namespace triax::server
