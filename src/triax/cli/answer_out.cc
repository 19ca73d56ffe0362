#include "triax/cli/answer_out.h"

#include <unistd.h>

#include <cstdio>

#include "triax/core/error.h"

namespace triax::cli {
namespace {

constexpr std::string_view kDim = "\033[2m", kPlain = "\033[0m";

// What a model writes may not steer the terminal: control characters are left out.
std::string harmless(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) continue;
    if (c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      ++i;  // U+0080..9F
      continue;
    }
    out += text[i];
  }
  return out;
}

}  // namespace

AnswerStyle AnswerStyle::standard(bool stream, bool thinking) {
  return {stream, thinking, ::isatty(STDOUT_FILENO) == 1};
}

AnswerOut::AnswerOut(const Tokenizer& tokenizer, chat::Channel opened, const AnswerStyle& style)
    : style_(style), reader_(tokenizer, {opened, false, false}) {}

void AnswerOut::push(std::int32_t id, Progress& progress) {
  show(reader_.push(id), &progress);
}

void AnswerOut::finish(bool cut) {
  show(reader_.finish(cut), nullptr);
  if (!style_.stream || voice_ == Voice::none) return;
  std::FILE* to = style_.terminal || voice_ == Voice::answer ? stdout : stderr;
  if (style_.terminal && voice_ != Voice::answer) write(to, kPlain);
  if (line_open_) write(to, "\n");
  voice_ = Voice::none;
  line_open_ = false;
}

void AnswerOut::show(const std::vector<chat::TurnEvent>& events, Progress* progress) {
  if (!style_.stream) return;
  for (const chat::TurnEvent& event : events) {
    if (event.text.empty()) continue;
    if (event.kind == chat::TurnEvent::Kind::reasoning && !style_.thinking) continue;
    if (progress != nullptr) progress->text_follows();
    switch (event.kind) {
      case chat::TurnEvent::Kind::reasoning:
        speak(Voice::thinking, event.text);
        break;
      case chat::TurnEvent::Kind::content:
        speak(Voice::answer, event.text);
        break;
      case chat::TurnEvent::Kind::call:
        if (voice_ == Voice::call) speak(Voice::call, "\n");
        speak(Voice::call, "call " + event.text + " ");
        break;
      case chat::TurnEvent::Kind::arguments:
        speak(Voice::call, event.text);
        break;
    }
  }
}

void AnswerOut::speak(Voice voice, std::string_view text) {
  const bool dim = style_.terminal && voice != Voice::answer;
  if (voice != voice_) {
    // The voice before ends its line where it wrote.
    if (voice_ != Voice::none) {
      std::FILE* before = style_.terminal || voice_ == Voice::answer ? stdout : stderr;
      if (style_.terminal && voice_ != Voice::answer) write(before, kPlain);
      if (line_open_) write(before, "\n");
      if (style_.terminal) write(before, "\n");
    }
    if (dim) write(stdout, kDim);
    voice_ = voice;
  }
  write(style_.terminal || voice == Voice::answer ? stdout : stderr,
        style_.terminal ? harmless(text) : std::string(text));
  line_open_ = text.back() != '\n';
}

void AnswerOut::write(std::FILE* to, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
  if (to == stdout && std::ferror(stdout) != 0) fail("cannot write to standard output");
}

}  // namespace triax::cli
