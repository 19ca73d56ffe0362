// `triax eval --suite`: graded items instead of a text.
#pragma once

#include "triax/cli/options.h"

namespace triax::cli {

int execute_suite(const EvalCommand& command);

}  // namespace triax::cli
