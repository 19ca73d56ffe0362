// What this process uses, from /proc.
#include "triax/cli/memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace triax::cli {

std::optional<std::uint64_t> proc_bytes(const char* file, const char* name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name) || line[std::string(name).size()] != ':') continue;
    std::istringstream rest(line.substr(std::string(name).size() + 1));
    std::uint64_t kib = 0;
    if (rest >> kib) return kib * 1024;
  }
  return std::nullopt;
}

MemoryUse memory_use() {
  constexpr const char* kStatus = "/proc/self/status";
  return {proc_bytes(kStatus, "VmHWM").value_or(0), proc_bytes(kStatus, "RssAnon").value_or(0),
          proc_bytes(kStatus, "RssFile").value_or(0)};
}

}  // namespace triax::cli
