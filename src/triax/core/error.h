// The one exception type of triax, and checks for programming errors.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace triax {

// A fault in what the program was given (file, configuration, request, flag). `what()` is one line:
// what is wrong, where, what was found, what was expected, what to do. Thrown outside a step only.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string line) : std::runtime_error(std::move(line)) {}
};

// fail("{}: header length {} passes the end of the file ({} bytes); download the shard again", ...)
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// Text from a file or a request as it may stand in a message: in quotes, control characters and
// bytes beyond ASCII that are not UTF-8 escaped, long text shortened in the middle. Keeps messages
// one line.
std::string in_quotes(std::string_view text);

// Thrown by TRIAX_CHECK: a fault of this program, never of its input.
class LogicError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               std::string_view message);

}  // namespace triax

// Active in every build. The message is optional: TRIAX_CHECK(a == b, "shapes differ").
#define TRIAX_CHECK(expression, ...)                                          \
  do {                                                                        \
    if (!(expression)) [[unlikely]]                                           \
      ::triax::check_failed(#expression, __FILE__, __LINE__, "" __VA_ARGS__); \
  } while (false)
