// From the command line to an exit code.
#pragma once

namespace triax::cli {

// 0: done; 1: it failed; 2: wrong use; 130: interrupted. Errors are one line on stderr.
int main_program(int argc, const char* const* argv) noexcept;

}  // namespace triax::cli
