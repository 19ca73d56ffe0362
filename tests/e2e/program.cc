// Runs the binary in a child process.
#include "e2e/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/temp_folder.h"
#include "triax/core/error.h"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

struct Scratch {
  TempFolder folder;
  const fs::path& path = folder.path();
  Scratch() {
    fs::create_directory(path / "home");
    fs::create_directory(path / "tmp");
  }
};

// The child: never returns.
[[noreturn]] void become(const Call& call, const fs::path& input, int out, int err) {
  ::dup2(::open(input.c_str(), O_RDONLY), STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  std::vector<std::string> words{call.binary.string()};
  words.insert(words.end(), call.args.begin(), call.args.end());
  std::map<std::string, std::string> variables = call.environment;
  variables.emplace("HOME", (scratch() / "home").string());
  variables.emplace("TMPDIR", (scratch() / "tmp").string());
  for (const char* name : {"PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TRIAX_ISA"}) {
    if (const char* value = std::getenv(name)) variables.emplace(name, value);
  }
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& line : environment) envp.push_back(line.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  ::execve(call.binary.c_str(), argv.data(), envp.data());
  ::_exit(127);
}

void collect(int out, int err, pid_t child, int interrupt_after, Outcome& outcome) {
  std::array<pollfd, 2> fds{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  std::array<std::string*, 2> texts{&outcome.out, &outcome.err};
  bool sent = interrupt_after == 0;
  for (int open = 2; open > 0;) {
    ::poll(fds.data(), fds.size(), -1);
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t n = ::read(fds[i].fd, buffer.data(), buffer.size());
      if (n > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(n));
      } else {
        fds[i].fd = -1;
        --open;
      }
    }
    if (!sent && outcome.out.size() >= static_cast<std::size_t>(interrupt_after)) {
      ::kill(child, SIGINT);
      sent = true;
    }
  }
}

}  // namespace

std::string Outcome::error_line() const {
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("triax: ")) return line;
  }
  return "";
}

std::filesystem::path scratch() {
  static const Scratch folder;
  return folder.path;
}

Outcome run(const Call& call) {
  const fs::path input = scratch() / "stdin";
  std::ofstream(input, std::ios::binary) << call.input;
  std::array<int, 2> out{}, err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) fail("no pipe");
  const pid_t child = ::fork();
  if (child == 0) become(call, input, out[1], err[1]);
  ::close(out[1]);
  ::close(err[1]);
  Outcome outcome;
  collect(out[0], err[0], child, call.interrupt_after_bytes, outcome);
  ::close(out[0]);
  ::close(err[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

Outcome run(std::vector<std::string> args, std::string input) {
  return run(Call{std::move(args), std::move(input), {}, TRIAX_BINARY, 0});
}

std::filesystem::path tiny_model() {
  static const fs::path folder = [] {
    const fs::path at = scratch() / "tiny";
    const Outcome made =
        run({"synth", "--config", "tiny", "--out", at.string(), "--shard-mib", "2"});
    if (made.code != 0) fail("synth: {}", made.err);
    return at;
  }();
  return folder;
}

std::string golden(const std::string& path) {
  return std::string(TRIAX_GOLDEN_DIR) + "/" + path;
}

}  // namespace triax::test
