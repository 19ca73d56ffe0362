// The page's bytes come from src/triax/server/page/index.html through the assembler.
#include "triax/server/page.h"

#include <cstdint>

#include "triax/core/hash.h"

asm(".pushsection .rodata\n"
    ".hidden triax_page\n.global triax_page\ntriax_page:\n"
    ".incbin \"" TRIAX_PAGE
    "\"\n"
    ".hidden triax_page_end\n.global triax_page_end\ntriax_page_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char triax_page[], triax_page_end[];
}

namespace triax::server {
namespace {

std::string base64(std::span<const std::uint8_t> bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? bytes[i + k] : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
    }
  }
  return out;
}

// " 'sha256-...'" of each element of that name, from the end of its tag to its closing tag.
std::string hashes(std::string_view html, const std::string& element) {
  std::string out;
  const std::string closing = "</" + element + ">";
  for (std::size_t at = html.find("<" + element); at != std::string_view::npos;
       at = html.find("<" + element, at)) {
    const std::size_t begin = html.find('>', at) + 1, end = html.find(closing, begin);
    if (begin == 0 || end == std::string_view::npos) break;
    out += " 'sha256-" + base64(sha256(html.substr(begin, end - begin))) + "'";
    at = end;
  }
  return out.empty() ? " 'none'" : out;
}

}  // namespace

std::string page_policy(std::string_view html) {
  return "default-src 'none'; script-src" + hashes(html, "script") + "; style-src" +
         hashes(html, "style") +
         "; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'";
}

const Page& chat_page() {
  static const Page page = [] {
    const std::string_view html(triax_page, static_cast<std::size_t>(triax_page_end - triax_page));
    return Page{html, "\"" + std::string(TRIAX_PAGE_SHA256).substr(0, 32) + "\"",
                page_policy(html)};
  }();
  return page;
}

HttpFields page_fields(const Page& page) {
  // Asked for anew each time, and sent only when another version of the server has another one.
  return {{"ETag", page.etag},
          {"Cache-Control", "no-cache"},
          {"Content-Security-Policy", page.policy},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"}};
}

bool same_version(std::string_view if_none_match, std::string_view etag) {
  while (!if_none_match.empty()) {
    const std::size_t comma = if_none_match.find(',');
    std::string_view one = if_none_match.substr(0, comma);
    if_none_match = comma == std::string_view::npos ? "" : if_none_match.substr(comma + 1);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == "*" || one == etag) return true;
  }
  return false;
}

}  // namespace triax::server
