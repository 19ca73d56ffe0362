// A folder of its own for a test. Header only.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "triax/core/error.h"

namespace triax::test {

// Removed with everything in it at the end of the scope.
class TempFolder {
 public:
  TempFolder() {
    // mkdtemp wants six X at the end and puts a name that is free in their place
    std::string name =
        (std::filesystem::temp_directory_path() / "triax-test-").string() + std::string(6, 'X');
    if (::mkdtemp(name.data()) == nullptr) fail("{}: cannot make a folder", name);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace triax::test
