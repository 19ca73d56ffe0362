// Two answers that need no understanding: what was mentioned last, and what was mentioned most
// often.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triax::world {

struct Baselines {
  std::string last, frequent;  // among the candidates; empty when none is mentioned
};

// Counts whole words in the text of the story. Of equally frequent candidates the later one wins.
Baselines baselines(std::string_view story, const std::vector<std::string>& candidates);

}  // namespace triax::world
