// A generated turn on its way to the user: the answer, and the thinking before it.
#pragma once

#include <string>
#include <string_view>

#include "triax/chat/reader.h"
#include "triax/cli/progress.h"

namespace triax::cli {

struct AnswerStyle {
  bool stream = true;     // write as it comes; otherwise only collect
  bool thinking = true;   // show it
  bool terminal = false;  // stdout is a terminal: thinking stands before the answer, dimmed

  static AnswerStyle standard(bool stream, bool thinking);
};

// The answer goes to stdout. Thinking and tool calls go there too on a terminal, else to stderr, so
// that a script reads the answer alone.
class AnswerOut {
 public:
  AnswerOut(const Tokenizer& tokenizer, chat::Channel opened, const AnswerStyle& style);

  void push(std::int32_t id, Progress& progress);
  // `cut`: by the limit or by the user.
  void finish(bool cut);

  const chat::TurnReader& reader() const { return reader_; }
  const chat::Turn& turn() const { return reader_.turn(); }

 private:
  enum class Voice : std::uint8_t { none, thinking, answer, call };

  void show(const std::vector<chat::TurnEvent>& events, Progress* progress);
  void speak(Voice voice, std::string_view text);
  void write(std::FILE* to, std::string_view text);

  AnswerStyle style_;
  chat::TurnReader reader_;
  Voice voice_ = Voice::none;
  bool line_open_ = false;  // the last character written was no line end
};

}  // namespace triax::cli
