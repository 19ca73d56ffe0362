// Stop strings over the bytes of generated tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triax {

// Looks for the first of several byte strings in a stream that comes token by token, and says of
// each token when it is certain that no stop string begins in it.
class StopText {
 public:
  explicit StopText(std::vector<std::string> stops);

  struct Found {
    std::size_t stop = 0;         // index of the string
    std::size_t keep_tokens = 0;  // of those still held: these come before it, whole or in part
    std::size_t keep_bytes = 0;   // of the last of them; all of its bytes when it is whole
  };
  // The next token's bytes. The match that ends first counts, and of those the longest one.
  std::optional<Found> push(std::string_view bytes);
  // Tokens that can be let go: no stop string can begin in them any more. Forgets them.
  std::size_t release();
  std::size_t held() const { return sizes_.size(); }

 private:
  std::vector<std::string> stops_;
  std::string text_;               // bytes of the tokens held
  std::deque<std::size_t> sizes_;  // of those tokens
};

}  // namespace triax
