// A folder that a command writes a checkpoint into.
#pragma once

#include <string>

namespace triax::cli {

// Throws Error when `out` is there and is no folder, or holds something and `force` is not given.
void check_out_folder(const std::string& out, bool force);

}  // namespace triax::cli
