#include "triax/engine/stop_text.h"

#include <gtest/gtest.h>

#include "triax/core/error.h"
#include "triax/core/rng.h"

namespace triax {
namespace {

// Feeds tokens; what was let go, and what stays in front of a stop string.
struct Told {
  std::string out;
  std::optional<std::size_t> stop;
};

Told run(const std::vector<std::string>& stops, const std::vector<std::string>& tokens) {
  StopText text(stops);
  Told r;
  std::vector<std::string> held;
  const auto let_go = [&](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) r.out += held[i];
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(n));
  };
  for (const std::string& token : tokens) {
    held.push_back(token);
    if (const auto found = text.push(token)) {
      if (found->keep_tokens > 0) {
        held[found->keep_tokens - 1].resize(found->keep_bytes);
        let_go(found->keep_tokens);
      }
      r.stop = found->stop;
      return r;
    }
    let_go(text.release());
    EXPECT_EQ(text.held(), held.size());
  }
  let_go(held.size());
  return r;
}

TEST(StopText, AcrossTokensAndInsideOne) {
  EXPECT_EQ(run({"STOP"}, {"a S", "T", "OP b"}).out, "a ");
  EXPECT_EQ(run({"STOP"}, {"xxSTOPyy"}).out, "xx");
  EXPECT_EQ(run({"STOP"}, {"STOP"}).out, "");
  EXPECT_EQ(run({"STOP"}, {"a", "STO", "b"}).out, "aSTOb");
  EXPECT_FALSE(run({"STOP"}, {"a", "STO"}).stop);
}

TEST(StopText, TheOneThatEndsFirstAndOfThoseTheLongest) {
  const Told r = run({"bcd", "bc", "abc"}, {"x", "ab", "cd"});
  EXPECT_EQ(r.out, "x");
  EXPECT_EQ(r.stop, 2u);
}

TEST(StopText, RepeatsInsideTheStopString) {
  EXPECT_EQ(run({"aab"}, {"a", "a", "a", "b"}).out, "a");
  EXPECT_EQ(run({"\n\n"}, {"a\n", "b\n", "\n"}).out, "a\nb");
}

// Whatever the tokens, the text before the first match comes out, and never a part of it.
TEST(StopText, AgreesWithASearchOfTheWholeText) {
  Rng rng(1);
  for (int round = 0; round < 3000; ++round) {
    const auto word = [&](std::size_t n) {
      std::string s;
      while (s.size() < n) s += static_cast<char>('a' + rng.next() % 2);
      return s;
    };
    std::vector<std::string> stops, tokens;
    for (std::size_t i = 0; i < 1 + rng.next() % 3; ++i) stops.push_back(word(1 + rng.next() % 4));
    std::string all;
    for (std::size_t i = 0; i < 12; ++i) all += tokens.emplace_back(word(1 + rng.next() % 3));
    std::size_t end = std::string::npos, begin = 0;
    for (const std::string& s : stops) {
      const std::size_t at = all.find(s);
      if (at == std::string::npos) continue;
      if (end == std::string::npos || at + s.size() < end || (at + s.size() == end && at < begin)) {
        end = at + s.size();
        begin = at;
      }
    }
    // A match is seen when its token comes: one that ends earlier within the same token counts.
    const Told got = run(stops, tokens);
    EXPECT_EQ(got.out, end == std::string::npos ? all : all.substr(0, begin));
    EXPECT_EQ(got.stop.has_value(), end != std::string::npos);
  }
}

TEST(StopText, RefusesAnEmptyString) {
  EXPECT_THROW(StopText({"a", ""}), Error);
}

}  // namespace
}  // namespace triax
