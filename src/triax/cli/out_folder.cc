#include "triax/cli/out_folder.h"

#include <filesystem>

#include "triax/core/error.h"

namespace triax::cli {

namespace fs = std::filesystem;

void check_out_folder(const std::string& out, bool force) {
  if (!fs::exists(out)) return;
  if (!fs::is_directory(out)) fail("{}: is there and is no folder", out);
  if (!force && !fs::is_empty(out)) {
    fail("{}: the folder is not empty; choose another, or --force to write into it", out);
  }
}

}  // namespace triax::cli
