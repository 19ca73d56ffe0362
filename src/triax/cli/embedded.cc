// Access to the carried files; the bytes themselves come from embedded_data.cc.in.
#include "triax/cli/embedded.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "triax/checkpoint/file.h"
#include "triax/core/error.h"

namespace triax::cli {

std::string_view embedded(std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name == name) return file.data;
  }
  TRIAX_CHECK(false, "no such embedded file");
  return {};
}

void write_embedded(std::string_view folder_name, const std::filesystem::path& folder) {
  for (const EmbeddedFile& file : embedded_files()) {
    const std::size_t slash = file.name.find('/');
    if (file.name.substr(0, slash) != folder_name) continue;
    AtomicFile out(folder / file.name.substr(slash + 1));
    out.write(file.data);
    out.commit(/*sync=*/false);
  }
}

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  std::filesystem::path base = std::filesystem::temp_directory_path(error);
  if (error) base = "/tmp";
  std::string pattern = (base / "triax-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    fail("{}: cannot make a temporary folder: {}; set TMPDIR to a folder that can be written",
         base.string(), std::strerror(errno));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace triax::cli
