#include "server_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "load_client.h"
#include "triax/core/error.h"

namespace triax::bench {
namespace {

pid_t spawn(std::vector<std::string>& words, int out) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (out >= 0) ::dup2(out, STDOUT_FILENO);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

int code_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ServerProcess::ServerProcess(const std::string& triax, std::vector<std::string> words) {
  words.insert(words.begin(), {triax, "serve", "--port", "0", "--log", "none"});
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe");
  child_ = spawn(words, ends[1]);
  ::close(ends[1]);
  std::string line;
  for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
  ::close(ends[0]);
  const std::size_t at = line.find("127.0.0.1:");
  if (at == std::string::npos) fail("{} serve ended with code {}", triax, code_of(child_));
  port_ = static_cast<std::uint16_t>(std::stoi(line.substr(at + 10)));
}

ServerProcess::~ServerProcess() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  code_of(child_);
}

std::size_t ServerProcess::resident_bytes() const {
  std::ifstream file(fmt::format("/proc/{}/statm", child_));
  std::size_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

double ServerProcess::metric(const std::string& name) const {
  const std::string text = "\n" + http_get(port_, "/metrics").second;
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

int ServerProcess::stop() {
  ::kill(child_, SIGTERM);
  const int code = code_of(child_);
  child_ = -1;
  return code;
}

void run_program(std::vector<std::string> words) {
  const std::string name = words.at(0) + " " + words.at(1);
  const int quiet = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const int code = code_of(spawn(words, quiet));
  ::close(quiet);
  if (code != 0) fail("{} ended with code {}", name, code);
}

}  // namespace triax::bench
