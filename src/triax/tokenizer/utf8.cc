// Strict UTF-8 decoding and repair.
#include "triax/tokenizer/utf8.h"

#include <cstring>

namespace triax {
namespace {

constexpr Utf8Step kBadByte{kReplacement, 1, Utf8Kind::kIllFormed};

// First position at or after `at` that starts a non-ASCII byte (or the end).
std::size_t skip_ascii(std::string_view text, std::size_t at) {
  while (at + 8 <= text.size()) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080ull) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

Utf8Step utf8_step(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned b0 = byte(0);
  if (b0 < 0x80) return {b0, 1, Utf8Kind::kCodePoint};
  if (b0 < 0xC2 || b0 > 0xF4) return kBadByte;
  const std::uint8_t need = b0 < 0xE0 ? 2 : b0 < 0xF0 ? 3 : 4;
  // The second byte's range rules out overlong forms, surrogates and what lies above U+10FFFF.
  const unsigned low = b0 == 0xE0 ? 0xA0u : b0 == 0xF0 ? 0x90u : 0x80u;
  const unsigned high = b0 == 0xED ? 0x9Fu : b0 == 0xF4 ? 0x8Fu : 0xBFu;
  char32_t code_point = b0 & (0x7Fu >> need);
  for (std::uint8_t i = 1; i < need; ++i) {
    if (at + i >= text.size()) return {kReplacement, i, Utf8Kind::kIncomplete};
    const unsigned b = byte(i);
    const bool ok = i == 1 ? (b >= low && b <= high) : (b & 0xC0) == 0x80;
    if (!ok) return {kReplacement, i, Utf8Kind::kIllFormed};
    code_point = (code_point << 6) | (b & 0x3F);
  }
  return {code_point, need, Utf8Kind::kCodePoint};
}

bool utf8_valid(std::string_view text) {
  for (std::size_t at = skip_ascii(text, 0); at < text.size(); at = skip_ascii(text, at)) {
    const Utf8Step step = utf8_step(text, at);
    if (step.kind != Utf8Kind::kCodePoint) return false;
    at += step.length;
  }
  return true;
}

std::string utf8_repair(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text, at);
    if (step.kind == Utf8Kind::kCodePoint) {
      out.append(text.substr(at, step.length));
    } else {
      out.append(kReplacementUtf8);
    }
    at += step.length;
  }
  return out;
}

void utf8_append(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

}  // namespace triax
