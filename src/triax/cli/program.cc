// The one place where errors become lines on stderr and exit codes.
#include "triax/cli/program.h"

#include <cstdio>
#include <exception>
#include <new>

#include "triax/cli/commands.h"
#include "triax/cli/interrupt.h"

namespace triax::cli {
namespace {

void complain(std::string_view line) {
  std::fflush(stdout);
  fmt::print(stderr, "triax: {}\n", line);
}

int run_program(int argc, const char* const* argv) {
  const Parsed parsed = parse_options(argc, argv);
  if (!parsed.command) {
    fmt::print(parsed.exit_code == 0 ? stdout : stderr, "{}\n", parsed.text);
    return parsed.exit_code;
  }
  const int code =
      std::visit([](const auto& command) { return execute(command); }, *parsed.command);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fail("cannot write to standard output; is the disk full, or the reader gone?");
  }
  return code;
}

}  // namespace

int main_program(int argc, const char* const* argv) noexcept {
  try {
    return run_program(argc, argv);
  } catch (const Interrupted&) {
    complain("interrupted");
    return kInterruptedExit;
  } catch (const UsageError& e) {
    complain(e.what());
    return 2;
  } catch (const Error& e) {
    complain(e.what());
  } catch (const std::bad_alloc&) {
    complain(
        "not enough memory; `triax inspect` says what a model needs, `triax doctor` what is there");
  } catch (const std::exception& e) {
    complain(e.what());
  }
  return 1;
}

}  // namespace triax::cli
