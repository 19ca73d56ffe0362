// The program `triax`.
#include "triax/cli/program.h"

int main(int argc, char** argv) {
  return triax::cli::main_program(argc, argv);
}
