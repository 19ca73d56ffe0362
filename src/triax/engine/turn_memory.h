// Generated turns by their text. The ids that a model generated need not be the encoding of their
// text, so a history that is encoded again would part from the cached one at the first such token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triax {

// Thread-safe; holds a bounded number of tokens, the turns used last.
class TurnMemory {
 public:
  explicit TurnMemory(std::size_t max_tokens) : max_tokens_(max_tokens) {}
  ~TurnMemory();
  TurnMemory(const TurnMemory&) = delete;
  TurnMemory& operator=(const TurnMemory&) = delete;

  // Takes in the turns of a file and adds later ones to it, so that they outlive the program (a
  // record at a time, checked when read: what a crash left half is cut off). A write that fails
  // ends that, and nothing else. Throws Error when the file cannot be opened. Not beside other
  // calls.
  void keep_in(const std::filesystem::path& file);

  // `text` is the turn as the caller will see it again (it must hold everything that the ids say);
  // `before` are the ids in front of the turn.
  void remember(std::string_view text, std::span<const std::int32_t> before,
                std::span<const std::int32_t> ids);
  // Ids of a turn with this text: the one that followed `before`, or else the latest.
  std::optional<std::vector<std::int32_t>> find(std::string_view text,
                                                std::span<const std::int32_t> before);

  std::size_t tokens() const;
  std::size_t turns() const;

 private:
  struct Turn {
    std::string text;
    std::uint64_t before = 0;  // a hash of the ids in front
    std::vector<std::int32_t> ids;
  };
  using Turns = std::list<Turn>;  // used last in front
  void drop(Turns::iterator turn);
  void put(Turn turn);
  void append(const Turn& turn);
  void write_anew();  // the file with nothing but what is remembered

  mutable std::mutex mutex_;
  std::size_t max_tokens_;
  std::size_t tokens_ = 0;
  Turns turns_;
  std::multimap<std::string_view, Turns::iterator> by_text_;  // keys point into turns_
  std::filesystem::path path_;
  int file_ = -1;
  std::size_t file_bytes_ = 0, bytes_ = 0;  // of the file; of the records of what is remembered
};

}  // namespace triax
