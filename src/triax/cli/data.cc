// `triax data`: the small world's documents, for training and held out.

#include "triax/cli/commands.h"
#include "triax/cli/data_writer.h"
#include "triax/cli/format.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/out_folder.h"
#include "triax/cli/progress.h"
#include "triax/core/clock.h"

namespace triax::cli {
namespace {

void print_part(const world::Json& manifest, const char* part) {
  for (const auto& [kind, counts] : manifest.at(part).items()) {
    fmt::print("{:<8} {:<11} {:>9} documents {:>12} tokens, about\n", part, kind,
               grouped(counts["documents"].get<std::size_t>()),
               grouped(counts["tokens_about"].get<std::uint64_t>()));
  }
}

void print_text(const DataCommand& c, const world::Json& manifest, double seconds) {
  print_part(manifest, "train");
  print_part(manifest, "heldout");
  if (manifest.contains("heldout_long_story_questions")) {
    const auto& q = manifest["heldout_long_story_questions"];
    fmt::print(
        "held-out questions about long stories: {}; the last mention is right for {:.1f} %, the "
        "most frequent "
        "for {:.1f} %; {:.1f} % about unseen entities\n",
        grouped(q["questions"].get<std::size_t>()), 100 * q["last_mention_right"].get<double>(),
        100 * q["most_frequent_mention_right"].get<double>(),
        100 * q["about_unseen_entities"].get<double>());
  }
  const auto& pairs = manifest["operand_pairs"];
  fmt::print("operand pairs: {} in training, {} held out, none in both\n",
             grouped(pairs["in_training"].get<std::size_t>()),
             grouped(pairs["in_heldout"].get<std::size_t>()));
  fmt::print("{}: {} tokens, about, in {}; manifest.json has the rest\n", c.out,
             grouped(manifest["tokens_about"].get<std::uint64_t>()), human_seconds(seconds));
}

}  // namespace

int execute(const DataCommand& c) {
  check_out_folder(c.out, c.force);
  DataPlan plan;
  plan.out = c.out;
  plan.seed = c.seed;
  plan.documents = c.documents;
  plan.tokens = c.tokens;
  plan.heldout = c.heldout;
  plan.kinds = c.kinds;
  plan.wordnet = c.wordnet;
  plan.prose = c.prose;
  const InterruptGuard guard;
  const Stopwatch watch;
  world::Json manifest;
  {
    Progress progress(fmt::format("writing {}", c.out), Unit::tokens);
    manifest = write_data(plan, [&](std::uint64_t done, std::uint64_t total) {
      progress.update(done, total);
      if (interrupted()) throw Interrupted();
    });
  }
  if (c.json) {
    manifest["seconds"] = watch.seconds();
    fmt::print("{}\n", manifest.dump(2));
  } else {
    print_text(c, manifest, watch.seconds());
  }
  return 0;
}

}  // namespace triax::cli
