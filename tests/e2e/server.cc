#include "e2e/server.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "e2e/program.h"
#include "support/http_client.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

int& count() {
  static int n = 0;
  return n;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

bool waits_for(const std::function<bool()>& done) {
  for (int i = 0; i < 12000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::string speaking_model() {
  static const std::string folder = [] {
    const fs::path at = scratch() / "tiny-serve";
    fs::copy(tiny_model(), at);
    write_byte_tokenizer(at, 512);
    return at.string();
  }();
  return folder;
}

Server::Server(std::vector<std::string> more) {
  log_ = (scratch() / fmt::format("serve-{}.log", ++count())).string();
  std::vector<std::string> words{TRIAX_BINARY, "serve"};
  const std::vector<std::string> usual{"-m",          speaking_model(),
                                       "--port",      "0",
                                       "--memory",    "256",
                                       "--context",   "8192",
                                       "--log",       log_,
                                       "--precision", "f32",
                                       "--chunk",     "64",
                                       "--threads",   "1"};
  for (std::size_t i = 0; i < usual.size(); i += 2) {
    if (std::find(more.begin(), more.end(), usual[i]) != more.end()) continue;
    words.insert(words.end(), {usual[i], usual[i + 1]});
  }
  words.insert(words.end(), more.begin(), more.end());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe");
  child_ = ::fork();
  if (child_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(::open((log_ + ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(TRIAX_BINARY, argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string line;
  char c = 0;
  while (::read(ends[0], &c, 1) == 1 && c != '\n') line += c;
  ::close(ends[0]);
  const std::size_t at = line.find("127.0.0.1:");
  if (at == std::string::npos) {
    wait();
    fail("the server said {}: {}", line, text_of(log_ + ".err"));
  }
  port_ = static_cast<std::uint16_t>(std::stoi(line.substr(at + 10)));
}

Server::~Server() {
  if (child_ > 0) stop();
}

void Server::signal(int number) const {
  ::kill(child_, number);
}

int Server::wait() {
  int status = 0;
  ::waitpid(child_, &status, 0);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int Server::stop() {
  signal(SIGTERM);
  return wait();
}

std::string Server::log() const {
  return text_of(log_);
}
std::string Server::said() const {
  return text_of(log_ + ".err");
}

double Server::metric(const std::string& name) const {
  const std::string text = "\n" + http(port_, "GET", "/metrics").body;
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}
bool Server::settles(const std::string& name, double value) const {
  return waits_for([&] { return metric(name) == value; });
}
bool Server::reaches(const std::string& name, double value) const {
  return waits_for([&] { return metric(name) >= value; });
}

}  // namespace triax::test
