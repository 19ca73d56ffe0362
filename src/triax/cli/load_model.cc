// Opening a model folder.
#include "triax/cli/load_model.h"

#include <algorithm>
#include <cstdio>
#include <future>

#include "triax/cli/default_model.h"
#include "triax/cli/embedded.h"
#include "triax/cli/memory.h"
#include "triax/cli/progress.h"
#include "triax/experts/mapped_experts.h"
#include "triax/kernels/kernels.h"

namespace triax::cli {
namespace {

std::optional<Tokenizer> load_tokenizer(const std::filesystem::path& folder,
                                        const K3Config& config) {
  if (!std::filesystem::exists(folder / "tiktoken.model")) return std::nullopt;
  Tokenizer tokenizer = Tokenizer::load(folder);
  if (static_cast<std::size_t>(tokenizer.vocab_size()) > config.vocab_size) {
    fail("{}: the tokenizer has {} ids, the model {}; they are not of one model",
         (folder / "tiktoken.model").string(), tokenizer.vocab_size(), config.vocab_size);
  }
  return tokenizer;
}

std::unique_ptr<LoadedModel> open_shown(const Common& options, ThreadPool& pool) {
  const std::filesystem::path folder =
      options.model.empty() ? default_model() : std::filesystem::path(options.model);
  const char* what =
      options.trunk == TrunkChoice::int8 ? "opening {}, trunk to 8 bits" : "opening {}";
  Progress progress(fmt::format(fmt::runtime(what), folder.string()), Unit::bytes);
  return std::make_unique<LoadedModel>(
      folder, options.trunk, pool,
      [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
}

// Resident when the trunk takes at most half of the memory that is free, unless the mapping is as
// good already.
TrunkChoice decided(TrunkChoice choice, const LoadedModel& m, ThreadPool& pool,
                    const TrunkProgress& progress) {
  if (choice != TrunkChoice::automatic) return choice;
  const std::uint64_t need = plan_trunk(m.config, m.weights, {}).bytes;
  const std::optional<std::uint64_t> free = available_memory();
  if (!free || need > *free / 2) return TrunkChoice::mapped;
  return populate_trunk(m.config, m.weights, pool, progress) ? TrunkChoice::mapped
                                                             : TrunkChoice::resident;
}

std::size_t threads_of(const Common& options) {
  return options.threads == 0 ? ThreadPool::available_cores() : options.threads;
}

}  // namespace

LoadedModel::LoadedModel(const std::filesystem::path& path)
    : folder(path),
      config(K3Config::load(path)),
      checkpoint(Checkpoint::open(path)),
      weights(K3Weights::load(config, checkpoint)),
      experts(open_mapped_experts(config, checkpoint)),
      tokenizer(load_tokenizer(path, config)) {}

LoadedModel::LoadedModel(const std::filesystem::path& path, TrunkChoice choice, ThreadPool& pool,
                         const TrunkProgress& progress)
    : folder(path),
      config(K3Config::load(path)),
      checkpoint(Checkpoint::open(path)),
      weights(K3Weights::load(config, checkpoint)) {
  trunk = decided(choice, *this, pool, progress);
  // Opening the experts looks at all their scales, and a vocabulary takes its time too: beside the
  // trunk, which waits for memory.
  auto beside = std::async(std::launch::async, [this] {
    experts = open_mapped_experts(config, checkpoint);
    tokenizer = load_tokenizer(folder, config);
  });
  if (trunk != TrunkChoice::mapped) {
    TrunkOptions options;
    if (trunk == TrunkChoice::int8) options.format = TrunkFormat::int8;
    trunk_bytes = place_trunk(config, options, pool, weights, progress).bytes;
  }
  beside.get();
}

const char* trunk_name(TrunkChoice choice) {
  return choice == TrunkChoice::int8       ? "int8"
         : choice == TrunkChoice::resident ? "resident"
                                           : "mapped";
}

std::vector<std::int32_t> LoadedModel::stop_ids() const {
  std::vector<std::int32_t> out = config.eos_token_ids;
  if (tokenizer) {
    for (const std::int32_t id : tokenizer->stop_ids()) {
      if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
    }
  }
  return out;
}

const Tokenizer& LoadedModel::required_tokenizer(const char* instead) const {
  if (!tokenizer) {
    fail("{}: there is no tiktoken.model, so text has no token ids here; {}", folder.string(),
         instead);
  }
  return *tokenizer;
}

Session::Session(const Common& options, Precision precision)
    : threads(threads_of(options)), pool(threads), ctx{pool, arena, precision, nullptr} {
  kernels();  // a wrong TRIAX_ISA is told before a model is opened
  const Stopwatch watch;
  loaded = open_shown(options, pool);
  load_seconds = watch.seconds();
  if (is_random_model(loaded->folder)) {
    fmt::print(stderr, "{}: small, with random weights: what it writes has no meaning\n",
               loaded->folder.string());
  }
  if (config().num_nextn_predict_layers > 0) {
    fmt::print(stderr, "{}: {} extra prediction layers are ignored\n", loaded->folder.string(),
               config().num_nextn_predict_layers);
  }
}

Tokenizer open_tokenizer(const std::string& model) {
  if (!model.empty()) {
    const std::filesystem::path folder = model;
    if (!std::filesystem::exists(folder / "tiktoken.model")) {
      fail(
          "{}: there is no tiktoken.model in it; name a folder with a tokenizer, or leave -m out "
          "for K3's own",
          model);
    }
    return Tokenizer::load(folder);
  }
  RankTable ranks = RankTable::parse(embedded("tokenizer/tiktoken.model"), "K3's tiktoken.model");
  SpecialTokens specials = SpecialTokens::from_config(embedded("tokenizer/tokenizer_config.json"),
                                                      static_cast<std::int32_t>(ranks.size()),
                                                      "K3's tokenizer_config.json");
  return {std::move(ranks), std::move(specials)};
}

void forward_all(Context& ctx, const Model& model, SequenceState& state,
                 std::span<const std::int32_t> ids, std::size_t chunk, Mat<float> logits) {
  for (std::size_t begin = 0; begin < ids.size(); begin += chunk) {
    const std::size_t end = std::min(ids.size(), begin + chunk);
    const BatchEntry entry{&state, ids.subspan(begin, end - begin), LogitRows::all};
    forward(ctx, model, {&entry, 1}, logits.slice(begin, end));
  }
}

}  // namespace triax::cli
