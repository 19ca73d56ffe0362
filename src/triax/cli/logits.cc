// `triax logits`: what the model computes for given ids, as .npy files.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "triax/checkpoint/npy.h"
#include "triax/cli/commands.h"
#include "triax/cli/format.h"
#include "triax/cli/ids_file.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/load_model.h"
#include "triax/cli/progress.h"
#include "triax/kernels/kernels.h"
#include "triax/model/recorder.h"
#include "triax/train/step.h"

namespace triax::cli {
namespace {

// One file a probe. The names are the program's own: letters, digits, dots, underscores.
void write_dump(const Recorder& recorder, const std::filesystem::path& folder) {
  for (const auto& [name, array] : recorder.arrays()) {
    const std::filesystem::path file = folder / (name + ".npy");
    if (array.ids.empty()) {
      write_npy(file, array.shape, std::span<const float>(array.values));
    } else {
      write_npy(file, array.shape, std::span<const std::int32_t>(array.ids));
    }
  }
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("{}: cannot make the folder: {}", folder.string(), error.message());
}

// By training's forward pass, all ids at once.
void write_training_logits(Session& session, std::span<const std::int32_t> ids, NpyWriter& out) {
  const train::ParameterLayout layout(session.config());
  train::Parameters<float> weights(layout);
  train::load_parameters(*session.loaded->checkpoint, weights);
  const std::vector<std::int32_t> targets(ids.size(), ops::kNoTarget);
  const triax::Segment document{0, ids.size()};
  std::vector<float> logits(checked_mul(ids.size(), session.config().vocab_size));
  const Mat<float> rows(logits.data(), {ids.size(), session.config().vocab_size});
  const train::TrainBatch batch{ids, targets, {&document, 1}};
  train::loss_only<float>(session.ctx, weights, batch, {}, rows);
  out.write(std::span<const float>(logits));
}

}  // namespace

int execute(const LogitsCommand& c) {
  const std::vector<std::int32_t> ids = read_ids(c.ids_file);
  if (ids.empty()) wrong_use("logits: {} holds no ids", input_name(c.ids_file));
  if (c.training_paths && c.precision != Precision::f32) {
    wrong_use("logits: --paths train computes in f32 alone; add --precision f32");
  }
  if (!c.dump.empty()) make_folder(c.dump);

  Session session(c, c.precision);
  const std::size_t vocab = session.config().vocab_size;
  check_ids(ids, vocab, input_name(c.ids_file));
  Recorder recorder([](std::string_view name) { return name != "logits"; });
  if (!c.dump.empty()) session.ctx.probe = &recorder;
  SequenceState state(session.config(), c.precision);
  const std::size_t rows = std::min(c.chunk, ids.size());
  std::vector<float> logits(checked_mul(rows, vocab));
  const std::size_t shape[] = {ids.size(), vocab};
  NpyWriter out(c.out, DType::F32, shape);

  const InterruptGuard guard;
  const Stopwatch watch;
  {
    Progress progress("logits", Unit::tokens, ids.size());
    if (c.training_paths) write_training_logits(session, ids, out);
    for (std::size_t begin = 0; !c.training_paths && begin < ids.size(); begin += rows) {
      const std::size_t n = std::min(rows, ids.size() - begin);
      const Mat<float> piece(logits.data(), {n, vocab});
      forward_all(session.ctx, session.model(), state, std::span(ids).subspan(begin, n), n, piece);
      out.write(std::span<const float>(logits.data(), n * vocab));
      progress.update(begin + n);
      if (interrupted()) throw Interrupted();
    }
    out.finish();
    if (!c.dump.empty()) write_dump(recorder, c.dump);
  }
  const double seconds = watch.seconds();
  const double rate = static_cast<double>(ids.size()) / seconds;
  if (c.json) {
    nlohmann::ordered_json json;
    json["out"] = c.out;
    json["shape"] = {ids.size(), vocab};
    json["precision"] = c.precision == Precision::f32 ? "f32" : "bf16";
    json["isa"] = kernels().name;
    json["threads"] = session.threads;
    json["seconds"] = seconds;
    json["tokens_per_second"] = rate;
    if (!c.dump.empty()) json["dump"] = {{"folder", c.dump}, {"arrays", recorder.arrays().size()}};
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print("{}: float32 [{}, {}], {} tokens/s\n", c.out, ids.size(), vocab, human_rate(rate));
  if (!c.dump.empty()) fmt::print("{}: {} arrays\n", c.dump, recorder.arrays().size());
  return 0;
}

}  // namespace triax::cli
