#include "triax/engine/stop_text.h"

#include <algorithm>

#include "triax/core/error.h"

namespace triax {

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& s : stops_) {
    if (s.empty()) fail("a stop string is empty: expected at least one byte");
  }
}

std::optional<StopText::Found> StopText::push(std::string_view bytes) {
  const std::size_t before = text_.size();
  text_ += bytes;
  sizes_.push_back(bytes.size());
  std::optional<Found> best;
  std::size_t best_end = 0, best_begin = 0;
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const std::string& s = stops_[i];
    // A match that ended earlier was found earlier: only those that end in the new bytes count.
    const std::size_t from = before + 1 > s.size() ? before + 1 - s.size() : 0;
    const std::size_t at = text_.find(s, from);
    if (at == std::string::npos) continue;
    const std::size_t end = at + s.size();
    if (best && (end > best_end || (end == best_end && at >= best_begin))) continue;
    best = Found{i, 0, 0};
    best_end = end;
    best_begin = at;
  }
  if (!best) return std::nullopt;
  std::size_t left = best_begin;
  for (const std::size_t size : sizes_) {
    if (left == 0) break;
    ++best->keep_tokens;
    best->keep_bytes = std::min(size, left);
    left -= best->keep_bytes;
  }
  return best;
}

std::size_t StopText::release() {
  // The longest end of the text that begins a stop string stays.
  std::size_t keep = 0;
  for (const std::string& s : stops_) {
    for (std::size_t n = std::min(s.size() - 1, text_.size()); n > keep; --n) {
      if (std::string_view(text_).substr(text_.size() - n) == std::string_view(s).substr(0, n)) {
        keep = n;
        break;
      }
    }
  }
  std::size_t free = text_.size() - keep, tokens = 0, bytes = 0;
  while (!sizes_.empty() && sizes_.front() <= free) {
    free -= sizes_.front();
    bytes += sizes_.front();
    sizes_.pop_front();
    ++tokens;
  }
  text_.erase(0, bytes);
  return tokens;
}

}  // namespace triax
