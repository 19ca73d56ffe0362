#include "e2e/terminal.h"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "e2e/program.h"
#include "triax/core/error.h"

namespace triax::test {
namespace {

constexpr int kPatience = 60'000;  // ms without any output

}  // namespace

Terminal::Terminal(const std::vector<std::string>& args) {
  std::vector<std::string> words{TRIAX_BINARY};
  words.insert(words.end(), args.begin(), args.end());
  const std::string home = (scratch() / "home").string();
  winsize size{};
  size.ws_row = 40;
  size.ws_col = 200;
  child_ = ::forkpty(&fd_, nullptr, nullptr, &size);
  if (child_ < 0) fail("no pseudo terminal");
  if (child_ == 0) {
    ::setenv("TERM", "xterm", 1);
    ::setenv("HOME", home.c_str(), 1);
    ::unsetenv("XDG_STATE_HOME");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(TRIAX_BINARY, argv.data());
    ::_exit(127);
  }
}

Terminal::~Terminal() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(fd_);
}

void Terminal::type(const std::string& keys, bool at_once) {
  // Keys that come while the terminal still collects lines may be lost, or be signals. Both ends of
  // a pseudo terminal share its settings.
  for (int waited = 0; !at_once && waited < kPatience; waited += 5) {
    termios settings{};
    if (::tcgetattr(fd_, &settings) != 0 || (settings.c_lflag & ICANON) == 0) break;
    ::usleep(5000);
  }
  if (::write(fd_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) {
    fail("the terminal takes no keys");
  }
}

bool Terminal::read_some() {
  pollfd wanted{fd_, POLLIN, 0};
  if (::poll(&wanted, 1, kPatience) <= 0) return false;
  std::array<char, 4096> buffer;
  const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
  if (n <= 0) return false;
  screen_.append(buffer.data(), static_cast<std::size_t>(n));
  return true;
}

bool Terminal::shows(const std::string& text, std::size_t times) {
  while (true) {
    std::size_t count = 0;
    for (std::size_t at = screen_.find(text); at != std::string::npos;
         at = screen_.find(text, at + text.size())) {
      ++count;
    }
    if (count >= times) return true;
    if (!read_some()) return false;
  }
}

int Terminal::wait() {
  while (read_some()) {
  }
  // It has closed the terminal, or been silent for so long that it would not end by itself.
  int status = 0;
  for (int waited = 0; ::waitpid(child_, &status, WNOHANG) == 0; waited += 5) {
    if (waited == kPatience) ::kill(child_, SIGKILL);
    ::usleep(5000);
  }
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace triax::test
