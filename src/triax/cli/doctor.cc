// `triax doctor`: what this machine is, as far as it matters here.
#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "triax/cli/commands.h"
#include "triax/cli/default_model.h"
#include "triax/cli/doctor_pages.h"
#include "triax/cli/format.h"
#include "triax/cli/memory.h"
#include "triax/core/thread_pool.h"
#include "triax/kernels/kernels.h"

namespace triax::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// The memory limit of this process's control group, version 2 or 1; none where it is unlimited.
std::optional<std::uint64_t> group_memory_limit() {
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;
  std::optional<std::uint64_t> least;
  const auto see = [&](const fs::path& file) {
    const std::string text = first_line(file);
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return;
    if (text.size() > 19) return;
    const std::uint64_t value = std::stoull(text);
    if (value < kUnlimited && (!least || value < *least)) least = value;
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (fs::path group = line.substr(4);; group = group.parent_path()) {
      see(fs::path("/sys/fs/cgroup") / group / "memory.max");
      if (group.empty()) break;
    }
  }
  see("/sys/fs/cgroup/memory.max");
  see("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  return least;
}

std::size_t numa_nodes() {
  std::size_t n = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    n += name.starts_with("node") && name.size() > 4 && name[4] >= '0' && name[4] <= '9';
  }
  return n == 0 ? 1 : n;
}

std::optional<std::uint64_t> soft_limit(decltype(RLIMIT_AS) which) {
  rlimit limit{};
  if (getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json processor() {
  Json out;
  out["name"] = processor_name();
  out["instruction_sets"] = Json::array();
  for (int i = 0; i < kIsaCount; ++i) {
    const Isa isa = static_cast<Isa>(i);
    if (isa_available(isa)) out["instruction_sets"].push_back(isa_name(isa));
  }
  out["chosen"] = kernels().name;
  const char* asked = std::getenv("TRIAX_ISA");
  out["asked_by_TRIAX_ISA"] = asked == nullptr ? Json(nullptr) : Json(asked);
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  out["cores_online"] = sysconf(_SC_NPROCESSORS_ONLN);
  out["cores_by_affinity"] = known ? Json(CPU_COUNT(&set)) : Json(nullptr);
  out["cores_used"] = ThreadPool::available_cores();
  out["memory_nodes"] = numa_nodes();
  return out;
}

Json memory() {
  constexpr const char* kInfo = "/proc/meminfo";
  Json out;
  out["total_bytes"] = or_null(proc_bytes(kInfo, "MemTotal"));
  out["available_bytes"] = or_null(proc_bytes(kInfo, "MemAvailable"));
  out["swap_bytes"] = or_null(proc_bytes(kInfo, "SwapTotal"));
  out["control_group_limit_bytes"] = or_null(group_memory_limit());
  out["address_space_limit_bytes"] = or_null(soft_limit(RLIMIT_AS));
  out["locked_memory_limit_bytes"] = or_null(soft_limit(RLIMIT_MEMLOCK));
  out["open_files_limit"] = or_null(soft_limit(RLIMIT_NOFILE));
  out["transparent_huge_pages"] = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  out["huge_page_bytes"] = or_null(proc_bytes(kInfo, "Hugepagesize"));
  out["page_bytes"] = sysconf(_SC_PAGESIZE);
  return out;
}

// Of the folder itself, or of the nearest one above it that is there.
Json disk(fs::path folder) {
  Json out;
  out["folder"] = folder.string();
  std::error_code error;
  folder = fs::absolute(folder, error);
  while (!folder.empty() && !fs::exists(folder, error) && folder != folder.root_path()) {
    folder = folder.parent_path();
  }
  const fs::space_info space = fs::space(folder, error);
  out["free_bytes"] = error ? Json(nullptr) : Json(space.available);
  out["size_bytes"] = error ? Json(nullptr) : Json(space.capacity);
  return out;
}

Json libraries() {
  utsname system{};
  uname(&system);
  Json out;
  out["triax"] = TRIAX_VERSION;
#ifdef __clang__
  out["compiler"] = "clang " __clang_version__;
#else
  out["compiler"] = "GCC " __VERSION__;
#endif
  out["kernel"] = std::string(system.sysname) + " " + system.release;
  out["glibc"] = gnu_get_libc_version();
  out["fmt"] =
      fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
  out["nlohmann_json"] = fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                     NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);
  return out;
}

std::string amount(const Json& bytes, const char* none) {
  return bytes.is_null() ? none : human_bytes(bytes.get<std::uint64_t>());
}

void print_text(const Json& d) {
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("{:<20} {}\n", name, value);
  };
  const Json& p = d["processor"];
  const Json& m = d["memory"];
  std::string sets;
  for (const Json& s : p["instruction_sets"]) sets += s.get<std::string>() + " ";
  line("processor", p["name"].get<std::string>());
  line("instruction sets", fmt::format("{}(in use: {}; TRIAX_ISA chooses another)", sets,
                                       p["chosen"].get<std::string>()));
  line("cores", fmt::format("{} online, {} for this process after affinity and control group",
                            p["cores_online"].dump(), p["cores_used"].dump()));
  line("memory nodes", p["memory_nodes"].dump());
  line("memory", fmt::format("{}, {} available; swap {}", amount(m["total_bytes"], "?"),
                             amount(m["available_bytes"], "?"), amount(m["swap_bytes"], "?")));
  line("memory limits", fmt::format("control group {}, address space {}, locked {}",
                                    amount(m["control_group_limit_bytes"], "none"),
                                    amount(m["address_space_limit_bytes"], "none"),
                                    amount(m["locked_memory_limit_bytes"], "none")));
  line("open files", m["open_files_limit"].is_null() ? "no limit" : m["open_files_limit"].dump());
  line("huge pages",
       fmt::format("transparent: {}", m["transparent_huge_pages"].get<std::string>()));
  for (const Json& disk : d["disks"]) {
    line("disk", fmt::format("{} free of {} at {}", amount(disk["free_bytes"], "?"),
                             amount(disk["size_bytes"], "?"), disk["folder"].get<std::string>()));
  }
  const Json& l = d["software"];
  line("software", fmt::format("triax {}, {}, {}, glibc {}, fmt {}, nlohmann-json {}",
                               l["triax"].get<std::string>(), l["compiler"].get<std::string>(),
                               l["kernel"].get<std::string>(), l["glibc"].get<std::string>(),
                               l["fmt"].get<std::string>(), l["nlohmann_json"].get<std::string>()));
}

}  // namespace

int execute(const DoctorCommand& c) {
  if (c.huge_pages) return read_model_into_huge_pages(c.model, c.json);
  Json out;
  out["processor"] = processor();
  out["memory"] = memory();
  out["disks"] = Json::array();
  if (!c.model.empty()) {
    out["disks"].push_back(disk(c.model));
  } else {
    for (const fs::path& place : default_model_places()) out["disks"].push_back(disk(place));
  }
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (!error) out["disks"].push_back(disk(temporary));
  out["software"] = libraries();
  if (c.json) {
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    print_text(out);
  }
  return 0;
}

}  // namespace triax::cli
