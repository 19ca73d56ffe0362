// The chat page that the binary carries.
#include "triax/server/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>

namespace triax::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Page, IsTheCommittedOneAndWhole) {
  std::ifstream in(TRIAX_SOURCE_DIR "/src/triax/server/page/index.html", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(chat_page().html, file);
  EXPECT_TRUE(file.starts_with("<!doctype html>"));
}

TEST(Page, LoadsNothingFromElsewhere) {
  const std::string html(chat_page().html);
  EXPECT_FALSE(std::regex_search(html, std::regex(R"(<(script|img|iframe)[^>]*\ssrc=)")));
  EXPECT_FALSE(std::regex_search(html, std::regex(R"(<link[^>]*href="(?!data:))")));
  EXPECT_FALSE(std::regex_search(html, std::regex(R"(@import|url\(\s*["']?(https?:|//))")));
}

TEST(Page, ThePolicyNamesItsOwnScriptAndStyleAlone) {
  // The SHA-256 of "abc" (FIPS 180-2), in base64.
  const std::string abc = "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='";
  EXPECT_THAT(page_policy("<style>abc</style><script type=\"module\">abc</script>"),
              HasSubstr("default-src 'none'; script-src " + abc + "; style-src " + abc + ";"));
  EXPECT_THAT(page_policy("<p>no script</p>"), HasSubstr("script-src 'none'"));
  EXPECT_THAT(chat_page().policy, HasSubstr("connect-src 'self'"));
  EXPECT_THAT(chat_page().policy, Not(HasSubstr("unsafe")));
}

TEST(Page, VersionsAreCompared) {
  const std::string tag = chat_page().etag;
  EXPECT_EQ(tag.size(), 34u);
  EXPECT_TRUE(same_version(tag, tag));
  EXPECT_TRUE(same_version("\"x\", W/" + tag, tag));
  EXPECT_TRUE(same_version("*", tag));
  EXPECT_FALSE(same_version("", tag));
  EXPECT_FALSE(same_version("\"x\"", tag));
}

}  // namespace
}  // namespace triax::server
