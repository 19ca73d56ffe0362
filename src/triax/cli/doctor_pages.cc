#include "triax/cli/doctor_pages.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "triax/checkpoint/checkpoint.h"
#include "triax/checkpoint/file.h"
#include "triax/cli/default_model.h"
#include "triax/cli/format.h"
#include "triax/cli/memory.h"
#include "triax/cli/progress.h"
#include "triax/core/error.h"

namespace triax::cli {

int read_model_into_huge_pages(const std::filesystem::path& given, bool json) {
  const std::filesystem::path folder = given.empty() ? default_model() : given;
  std::vector<std::filesystem::path> shards;
  std::size_t total = 0;
  {
    // Closed again before the files are read: pages that are mapped do not leave the cache.
    const auto checkpoint = Checkpoint::open(folder);
    for (const ShardInfo& shard : checkpoint->shards()) {
      shards.push_back(shard.path);
      total += shard.bytes;
    }
  }
  const std::size_t available = proc_bytes("/proc/meminfo", "MemAvailable").value_or(total);
  if (total > available) {
    fail("{}: its files are {}, but {} of memory are available; they would push each other out",
         folder.string(), human_bytes(total), human_bytes(available));
  }
  Residency sum;
  {
    Progress progress("reading " + folder.string(), Unit::bytes, total);
    std::size_t before = 0;
    for (const std::filesystem::path& shard : shards) {
      std::size_t size = 0;
      const Residency r = read_into_huge_pages(shard, [&](std::size_t done, std::size_t all) {
        size = all;
        progress.update(before + done);
      });
      before += size;
      sum.bytes += r.bytes;
      sum.huge += r.huge;
    }
  }
  if (json) {
    nlohmann::ordered_json out{
        {"folder", folder.string()}, {"bytes", sum.bytes}, {"huge_bytes", sum.huge}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    const double share =
        sum.bytes == 0 ? 0 : static_cast<double>(sum.huge) / static_cast<double>(sum.bytes);
    fmt::print("{}: {} in memory, {:.0f} % of them in huge pages{}\n", folder.string(),
               human_bytes(sum.bytes), 100 * share,
               sum.huge == 0 ? "; this file system or kernel keeps files in small pages" : "");
  }
  return 0;
}

}  // namespace triax::cli
