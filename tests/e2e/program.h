// Runs the binary in a child process, with a clean environment of its own.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace triax::test {

struct Outcome {
  int code = -1;  // exit code; 128 + signal when one ended it
  std::string out, err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
  // The line that starts with "triax: ".
  std::string error_line() const;
};

struct Call {
  std::vector<std::string> args;
  std::string input;                               // on standard input
  std::map<std::string, std::string> environment;  // added to PATH, HOME and TMPDIR
  std::filesystem::path binary = TRIAX_BINARY;
  int interrupt_after_bytes = 0;  // SIGINT once so much is on stdout; 0: never
};
Outcome run(const Call& call);
Outcome run(std::vector<std::string> args, std::string input = "");

// A folder for the whole test program, removed at its end.
std::filesystem::path scratch();

// The model that `triax synth --config tiny` makes, made once.
std::filesystem::path tiny_model();

std::string golden(const std::string& path);  // below tests/golden

}  // namespace triax::test
