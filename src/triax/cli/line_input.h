// Lines that the user types, or that a script sends.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace triax::cli {

class LineInput {
 public:
  virtual ~LineInput() = default;
  // The next line without its end; a line that ends with a backslash goes on in the next one. None
  // at the end of the input.
  std::optional<std::string> read(const std::string& prompt);

 private:
  virtual std::optional<std::string> read_line(const std::string& prompt) = 0;
};

// With editing and history when stdin and stdout are terminals; plain reading otherwise. The
// history is kept in `history`; an empty path keeps none.
std::unique_ptr<LineInput> open_line_input(const std::filesystem::path& history);

// triax/chat-history in the user's state folder; empty when there is no such folder.
std::filesystem::path standard_history();

}  // namespace triax::cli
