// What the tests of this module share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "triax/core/error.h"
#include "triax/core/rng.h"
#include "triax/tokenizer/rank_file.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/tokenizer/utf8.h"

namespace triax::testing {

inline std::filesystem::path k3_folder() {
  return std::filesystem::path(TRIAX_SOURCE_DIR) / "src/triax/tokenizer/k3";
}

inline const Tokenizer& k3_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(k3_folder());
  return tokenizer;
}

// An array of tests/golden/tokenizer.
inline nlohmann::json golden(const std::string& file) {
  return nlohmann::json::parse(
      read_text_file(std::filesystem::path(TRIAX_GOLDEN_DIR) / "tokenizer" / file));
}

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::string repeat(const std::string& piece, std::size_t count) {
  std::string out;
  out.reserve(piece.size() * count);
  for (std::size_t i = 0; i < count; ++i) out += piece;
  return out;
}

// The line of the Error that `action` throws; empty (and a failed test) when it throws none.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    return line;
  }
  ADD_FAILURE() << "no Error thrown";
  return {};
}

// A scalar value: mostly from ranges that the split tells apart, sometimes any at all.
inline char32_t random_code_point(Rng& rng) {
  static constexpr struct {
    char32_t first, last;
  } kRanges[] = {{0x20, 0x7E},     {0x09, 0x0D},       {0x1C, 0x20},     {0xA0, 0x24F},
                 {0x300, 0x36F},   {0x2000, 0x206F},   {0x2E80, 0x3029}, {0x4E00, 0x4FFF},
                 {0x660, 0x669},   {0x1C5, 0x1C5},     {0x2B0, 0x2FF},   {0x1F300, 0x1F64F},
                 {0x0E01, 0x0E5B}, {0x13460, 0x143FF}, {0x17F, 0x17F},   {0xE0100, 0xE01EF}};
  const std::uint64_t pick = rng.next() % 24;
  if (pick < std::size(kRanges)) {
    const auto& range = kRanges[pick];
    return range.first + static_cast<char32_t>(rng.next() % (range.last - range.first + 1));
  }
  if (pick < 20) return "aA' \n1st."[rng.next() % 9];
  const auto any = static_cast<char32_t>(rng.next() % (0x110000 - 0x800));
  return any < 0xD800 ? any : any + 0x800;
}

inline std::string random_text(Rng& rng, std::size_t code_points) {
  std::string text;
  while (code_points-- > 0) utf8_append(text, random_code_point(rng));
  return text;
}

}  // namespace triax::testing
