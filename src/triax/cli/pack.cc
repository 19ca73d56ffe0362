// `triax pack`: a checkpoint whose trunk is 8-bit.
#include "triax/weights/pack.h"

#include <nlohmann/json.hpp>

#include "triax/cli/commands.h"
#include "triax/cli/format.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/out_folder.h"
#include "triax/cli/progress.h"
#include "triax/core/clock.h"

namespace triax::cli {

int execute(const PackCommand& c) {
  check_out_folder(c.out, c.force);
  const K3Config config = K3Config::load(c.from);
  const auto from = Checkpoint::open(c.from);
  ThreadPool pool(c.threads == 0 ? ThreadPool::available_cores() : c.threads);
  const InterruptGuard guard;
  const Stopwatch watch;
  Packed packed;
  {
    Progress progress(fmt::format("writing {}", c.out), Unit::bytes);
    packed =
        pack_checkpoint(config, *from, c.out, pool, [&](std::uint64_t done, std::uint64_t total) {
          progress.update(done, total);
          if (interrupted()) throw Interrupted();
        });
  }
  const double seconds = watch.seconds();
  if (c.json) {
    nlohmann::ordered_json json;
    json["model"] = c.from;
    json["out"] = c.out;
    json["matrices"] = packed.matrices;
    json["bytes_before"] = packed.from_bytes;
    json["bytes"] = packed.bytes;
    json["seconds"] = seconds;
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print("{}: {} matrices to 8 bits, {} instead of {}, {}\n", c.out, grouped(packed.matrices),
             human_bytes(packed.bytes), human_bytes(packed.from_bytes), human_seconds(seconds));
  return 0;
}

}  // namespace triax::cli
