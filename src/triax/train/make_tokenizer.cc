// Texts for a tokenizer, drawn by the weights of their sources.
#include "triax/train/make_tokenizer.h"

#include <algorithm>
#include <numeric>

#include "triax/checkpoint/file.h"
#include "triax/core/error.h"
#include "triax/core/rng.h"
#include "triax/tokenizer/bpe_trainer.h"
#include "triax/tokenizer/special_tokens.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax::train {
namespace {

namespace fs = std::filesystem;

// Random documents of one source, up to `bytes`.
void draw(const std::vector<RawDocument>& documents, std::size_t bytes, std::uint64_t seed,
          std::vector<std::string>& out) {
  std::vector<std::size_t> order(documents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng rng(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.next() % i]);
  std::size_t taken = 0;
  for (const std::size_t d : order) {
    if (taken >= bytes) return;
    std::string text = plain_text(documents[d]);
    if (text.size() > bytes - taken) text.resize(bytes - taken);
    taken += text.size();
    out.push_back(std::move(text));
  }
}

}  // namespace

void make_tokenizer(const TrainConfig& config,
                    const std::vector<std::vector<RawDocument>>& documents, const fs::path& folder,
                    const std::function<bool(std::uint64_t, std::uint64_t)>& progress) {
  double weights = 0;
  for (const DataSource& s : config.data) weights += s.weight;
  std::vector<std::string> texts;
  for (std::size_t s = 0; s < documents.size(); ++s) {
    const double share = config.data[s].weight / weights;
    draw(documents[s],
         static_cast<std::size_t>(share * static_cast<double>(config.tokenizer.train_bytes)) + 1,
         config.seed + s, texts);
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  BpeTrainOptions options;
  bool stopped = false;
  options.progress = [&](std::size_t done, std::size_t total) {
    stopped = stopped || (progress && !progress(done, total));
    return !stopped;
  };
  const std::vector<std::string> tokens =
      train_bpe(views, config.tokenizer.vocabulary - kSpecialTokens, options);
  if (stopped) fail("stopped before the tokenizer was there");
  write_tokenizer_folder(folder, tokens);
}

void copy_tokenizer(const fs::path& from, const fs::path& folder) {
  if (!fs::exists(from / "tiktoken.model")) {
    fail("{}: there is no tiktoken.model in it; tokenizer.folder names a folder with a tokenizer",
         from.string());
  }
  std::error_code code;
  fs::create_directories(folder, code);
  for (const char* name : {"tokenizer_config.json", "tiktoken.model"}) {
    if (!fs::exists(from / name)) continue;
    AtomicFile copy(folder / name);
    copy.write(read_whole(from / name, std::size_t{1} << 30));
    copy.commit();
  }
}

}  // namespace triax::train
