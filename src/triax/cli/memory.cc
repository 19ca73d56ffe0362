// What this process uses, from /proc.
#include "triax/cli/memory.h"

#include <algorithm>
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

std::optional<std::uint64_t> available_memory() {
  std::optional<std::uint64_t> out = proc_bytes("/proc/meminfo", "MemAvailable");
  // cgroup v2: bytes, or "max". What the group holds of the page cache can be given back.
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  std::uint64_t bytes = 0;
  if (limit >> bytes) out = out ? std::min(*out, bytes) : bytes;
  return out;
}

MemoryUse memory_use() {
  constexpr const char* kStatus = "/proc/self/status";
  return {proc_bytes(kStatus, "VmHWM").value_or(0), proc_bytes(kStatus, "RssAnon").value_or(0),
          proc_bytes(kStatus, "RssFile").value_or(0)};
}

}  // namespace triax::cli
