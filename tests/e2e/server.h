// `triax serve` as a user starts it: a child process, its port, its log and its metrics.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace triax::test {

// A small model with a byte vocabulary, so that it takes and gives text.
std::string speaking_model();

class Server {
 public:
  // `more` follows the usual words, and takes the place of those that it names again.
  explicit Server(std::vector<std::string> more = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  pid_t process() const { return child_; }
  void signal(int number) const;
  int wait();  // exit code; 128 + signal when one ended it
  int stop();  // SIGTERM, and wait()
  std::string log() const;
  std::string said() const;  // standard error
  // A line of /metrics; -1: there is none.
  double metric(const std::string& name) const;
  bool settles(const std::string& name, double value) const;
  bool reaches(const std::string& name, double value) const;

 private:
  std::string log_;
  pid_t child_ = -1;
  std::uint16_t port_ = 0;
};

// Looks every 10 ms for two minutes.
bool waits_for(const std::function<bool()>& done);

}  // namespace triax::test
