// Files that the binary carries: K3's tokenizer, the default model's configuration, golden data.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace triax::cli {

struct EmbeddedFile {
  std::string_view name;  // "tiny-a/config.json"
  std::string_view data;
};

std::span<const EmbeddedFile> embedded_files();
std::string_view embedded(std::string_view name);  // which must be there

// Writes every file under `folder_name` + "/" into `folder`, which exists.
void write_embedded(std::string_view folder_name, const std::filesystem::path& folder);

// A folder below the system's temporary one, removed with all it holds at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace triax::cli
