// What this process uses and may use.
#pragma once

#include <cstdint>
#include <optional>

namespace triax::cli {

struct MemoryUse {
  std::uint64_t peak = 0;    // largest resident set so far, mapped weights included
  std::uint64_t own = 0;     // resident now and not backed by a file
  std::uint64_t mapped = 0;  // resident now and backed by a file: weights in the page cache
};
MemoryUse memory_use();

// Memory that programs may still take, by the system and by this process's control group; none when
// neither tells.
std::optional<std::uint64_t> available_memory();

// A "Name:   123 kB" line of a /proc file, in bytes.
std::optional<std::uint64_t> proc_bytes(const char* file, const char* name);

}  // namespace triax::cli
