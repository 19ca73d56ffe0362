#include "triax/cli/line_input.h"

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace triax::cli {
namespace {

namespace fs = std::filesystem;

class PlainInput final : public LineInput {
  std::optional<std::string> read_line(const std::string&) override {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
  }
};

class EditedInput final : public LineInput {
 public:
  explicit EditedInput(fs::path file) : file_(std::move(file)) {
    // The editor moves over characters, not bytes; numbers stay as they are.
    std::setlocale(LC_CTYPE, "");
    if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
    history_ = ::history_init();
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, kLines);
    ::history(history_, &event, H_SETUNIQUE, 1);
    if (!file_.empty()) ::history(history_, &event, H_LOAD, file_.c_str());
    edit_ = ::el_init("triax", stdin, stdout, stderr);
    ::el_set(edit_, EL_CLIENTDATA, this);
    ::el_set(edit_, EL_PROMPT, &EditedInput::prompt_text);
    ::el_set(edit_, EL_EDITOR, "emacs");
    ::el_set(edit_, EL_HIST, ::history, history_);
    ::el_set(edit_, EL_SIGNAL, 1);
    // Ctrl-C takes the line back; it ends nothing while one types.
    ::el_set(edit_, EL_SETTY, "-d", "-isig", nullptr);
    ::el_set(edit_, EL_BIND, "^C", "em-kill-line", nullptr);
    ::el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }
  ~EditedInput() override {
    ::el_end(edit_);
    ::history_end(history_);
  }
  EditedInput(const EditedInput&) = delete;
  EditedInput& operator=(const EditedInput&) = delete;

 private:
  static constexpr int kLines = 1000;

  static char* prompt_text(EditLine* edit) {
    void* self = nullptr;
    ::el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<EditedInput*>(self)->prompt_.data();
  }

  std::optional<std::string> read_line(const std::string& prompt) override {
    prompt_ = prompt;
    int count = 0;
    const char* text = ::el_gets(edit_, &count);
    if (text == nullptr || count <= 0) return std::nullopt;
    std::string line(text, static_cast<std::size_t>(count));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    if (!line.empty()) remember(line);
    return line;
  }

  void remember(const std::string& line) {
    HistEvent event;
    ::history(history_, &event, H_ENTER, line.c_str());
    if (!file_.empty()) ::history(history_, &event, H_SAVE, file_.c_str());
  }

  fs::path file_;
  std::string prompt_;
  History* history_ = nullptr;
  EditLine* edit_ = nullptr;
};

// Made for its owner alone; an empty path when that does not work.
fs::path prepared(const fs::path& file) {
  if (file.empty()) return {};
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return {};
  ::close(fd);
  return file;
}

}  // namespace

std::optional<std::string> LineInput::read(const std::string& prompt) {
  std::optional<std::string> line = read_line(prompt);
  while (line && !line->empty() && line->back() == '\\') {
    line->back() = '\n';
    const std::optional<std::string> more = read_line(". ");
    if (!more) break;
    *line += *more;
  }
  return line;
}

std::unique_ptr<LineInput> open_line_input(const fs::path& history) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return std::make_unique<PlainInput>();
  }
  return std::make_unique<EditedInput>(prepared(history));
}

fs::path standard_history() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return fs::path(state) / "triax" / "chat-history";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') {
    return fs::path(home) / ".local" / "state" / "triax" / "chat-history";
  }
  return {};
}

}  // namespace triax::cli
