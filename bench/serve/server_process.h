// The server under load: started, asked and ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace triax::bench {

class ServerProcess {
 public:
  // Starts `triax serve ... --port 0` and waits until it listens. Throws Error with its last words.
  ServerProcess(const std::string& triax, std::vector<std::string> words);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  std::uint16_t port() const { return port_; }
  std::size_t resident_bytes() const;
  double metric(const std::string& name) const;  // of /metrics; -1: there is none
  int stop();                                    // exit code

 private:
  pid_t child_ = -1;
  std::uint16_t port_ = 0;
};

// Runs a command to its end. Throws Error when it fails.
void run_program(std::vector<std::string> words);

}  // namespace triax::bench
