// Whose prompt goes on in the next pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace triax {

// A sequence with prompt tokens left.
struct WaitingPrompt {
  std::size_t piece = 0;      // tokens of its next piece
  std::size_t remaining = 0;  // tokens of its prompt that are left, the piece included
  int priority = 0;
  std::uint64_t waited = 0;  // passes since it was served
  std::uint64_t order = 0;   // of arrival
};

// A prompt with at most so many tokens left is a short one.
inline constexpr std::size_t kShortPrompt = 2048;

// Two classes, short and long, share the prompt tokens of a busy machine 3 to 1, so that neither
// starves; within a class the shortest goes first (weighted by 2^priority), and who waits moves up.
class PromptShares {
 public:
  // Indices of those whose next piece goes into a pass of at most `budget` prompt tokens; the first
  // one goes in whatever its size.
  std::vector<std::size_t> choose(std::span<const WaitingPrompt> waiting, std::size_t budget);

 private:
  std::array<double, 2> served_ = {};  // tokens over share; short, long
};

}  // namespace triax
