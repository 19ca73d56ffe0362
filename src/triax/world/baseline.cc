// Mentions are found in the text itself, not in what the teller knows.
#include "triax/world/baseline.h"

#include <cctype>

namespace triax::world {
namespace {

bool letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '-';
}

}  // namespace

Baselines baselines(std::string_view story, const std::vector<std::string>& candidates) {
  Baselines out;
  std::size_t last_end = 0, most = 0, most_end = 0;
  for (const std::string& candidate : candidates) {
    std::size_t count = 0, end = 0;
    for (std::size_t at = story.find(candidate); at != std::string_view::npos;
         at = story.find(candidate, at + 1)) {
      const std::size_t after = at + candidate.size();
      if (at > 0 && letter(story[at - 1])) continue;
      if (after < story.size() && letter(story[after])) continue;
      ++count;
      end = after;
    }
    if (count == 0) continue;
    if (end > last_end) {
      last_end = end;
      out.last = candidate;
    }
    if (count > most || (count == most && end > most_end)) {
      most = count;
      most_end = end;
      out.frequent = candidate;
    }
  }
  return out;
}

}  // namespace triax::world
