// `triax synth`: a random checkpoint in the released layout.
#include "triax/weights/synth.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "triax/checkpoint/checkpoint.h"
#include "triax/cli/commands.h"
#include "triax/cli/embedded.h"
#include "triax/cli/format.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/out_folder.h"
#include "triax/cli/progress.h"
#include "triax/core/clock.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kVocabulary = 163840;  // of the tokenizer that the binary carries

}  // namespace

int execute(const SynthCommand& c) {
  check_out_folder(c.out, c.force);
  SynthOptions options;
  options.config = c.config;
  options.seed = c.seed;
  options.shard_mib = c.shard_mib;
  options.shards = c.shards;
  options.sparse = c.sparse;
  options.threads = c.threads;
  const InterruptGuard guard;
  const Stopwatch watch;
  {
    Progress progress(fmt::format("writing {}", c.out), Unit::bytes);
    synthesize(options, c.out, [&](std::uint64_t done, std::uint64_t total) {
      progress.update(done, total);
      if (interrupted()) throw Interrupted();
    });
  }
  const bool tokenizer = K3Config::load(fs::path(c.out)).vocab_size == kVocabulary;
  if (tokenizer) write_embedded("tokenizer", c.out);
  const double seconds = watch.seconds();
  const auto checkpoint = Checkpoint::open(c.out);
  if (c.json) {
    nlohmann::ordered_json json;
    json["out"] = c.out;
    json["shards"] = checkpoint->shards().size();
    json["tensors"] = checkpoint->tensors().size();
    json["bytes"] = checkpoint->total_bytes();
    json["seed"] = c.seed;
    json["sparse"] = c.sparse;
    json["tokenizer"] = tokenizer;
    json["seconds"] = seconds;
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print("{}: {} tensors, {}{} in {} shard{}, {}{}\n", c.out,
             grouped(checkpoint->tensors().size()), human_bytes(checkpoint->total_bytes()),
             c.sparse ? " (holes)" : "", checkpoint->shards().size(),
             checkpoint->shards().size() == 1 ? "" : "s", human_seconds(seconds),
             tokenizer ? "; with K3's tokenizer" : "");
  return 0;
}

}  // namespace triax::cli
