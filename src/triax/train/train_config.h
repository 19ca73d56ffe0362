// What `triax train` is told: one file, TOML or JSON, every key checked. docs/training.md lists the
// keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "triax/core/context.h"
#include "triax/train/optimizer.h"

namespace triax::train {

// Where documents come from.
enum class SourceKind : std::uint8_t {
  text,     // files of plain text
  jsonl,    // files with {"text": ...} or {"messages": [...]} a line
  repeats,  // no files: exercises in repeating, made of random tokens (repeats.h)
};
// How a file is cut into documents. JSON lines: a document a line.
enum class Split : std::uint8_t {
  file,         // a text file is one document
  blank_lines,  // documents of a text file end at blank lines
};
// Which tokens of a conversation have a loss.
enum class Learn : std::uint8_t { assistant, all };
// What becomes of a document that is longer than a stage's context. Of a conversation cut in two,
// the second part would teach answers to what it does not see.
enum class Longer : std::uint8_t {
  automatic,  // texts are cut, conversations skipped
  cut,        // into pieces that know nothing of each other
  skip,       // left for a stage with a longer context
};

struct DataSource {
  std::string name;
  std::vector<std::filesystem::path> files;
  SourceKind kind = SourceKind::text;
  Split split = Split::file;
  Learn learn = Learn::assistant;
  Longer longer = Longer::automatic;
  std::size_t documents = 50000, length = 512;  // of repeats: how many, and tokens of each at most
  double substitute = 0;  // share of the conversations in which rare words become others
  std::vector<std::string> substitute_keep;  // words that stay
  double weight = 1;                         // share of the tokens, relative to the other sources
};

struct Stage {
  std::uint64_t tokens = 0;            // rows of the forward pass
  std::size_t context = 256;           // longest piece of a document
  std::size_t batch_tokens = 16384;    // of a step, at least
  std::size_t micro_batch_tokens = 0;  // of a pass, at most; bounds the memory of activations
};

struct TokenizerSettings {
  std::filesystem::path folder;  // a tokenizer that exists, or
  std::size_t vocabulary = 0;    // ids in all of one to be made from the data, special ones too
  std::size_t train_bytes = std::size_t{32} << 20;  // of text that it is made from, at most
};

struct QatSettings {
  double from = 0.8;  // fraction of all tokens after which passes see the exported numbers; 1: off
  bool trunk = true;  // BF16
  bool experts = true;  // MXFP4
};

struct EvaluationSettings {
  std::size_t every_steps = 200;  // 0: at the end alone
  std::size_t tokens = 65536;     // of each held-out source, at most
};

struct CheckpointSettings {
  std::size_t every_steps = 200;  // 0: not by steps
  double every_minutes = 10;      // 0: not by time
  std::size_t keep = 2;
};

// A step whose loss or gradient norm leaves its running mean by so much is left out.
struct GuardSettings {
  double loss_above = 1.0;         // nats above the running mean of the loss; 0: off
  double norm_times = 10;          // times the running mean of the gradient's norm; 0: off
  double memory = 0.95;            // of the running means
  std::size_t healthy_first = 20;  // steps before it judges
  std::size_t skips = 5;           // in a row, then the training stops
  double load_limit = 2.0;         // largest max/mean load (running mean) of a layer
  std::size_t load_from = 10;      // step from which loads are held against it
  bool load_stops = false;         // stop at a bad load; otherwise it is told
};

// How the router's bias follows the loads: by quantiles (K3), or a step up or down (to compare).
enum class Balance : std::uint8_t { quantile, sign };

struct TrainConfig {
  std::uint64_t seed = 1;
  Precision precision = Precision::bf16;  // of the products of a pass
  std::string shape;  // "mini", ..., or the path of a config.json; empty: as init_from
  std::string shape_changes = "{}";  // JSON: fields of text_config on top
  std::filesystem::path init_from;   // a model folder to go on from
  TokenizerSettings tokenizer;
  std::vector<DataSource> data, held_out;
  std::vector<Stage> stages;
  double peak_rate = 2e-3, warmup = 0.01, final_fraction = 0.1;
  OptimizerSettings optimizer;
  Balance balance = Balance::quantile;
  double balance_keep = 0;     // weight of the present bias in quantile balancing
  double balance_rate = 1e-3;  // step of the sign rule
  QatSettings qat;
  EvaluationSettings evaluation;
  CheckpointSettings checkpoint;
  GuardSettings guard;

  std::uint64_t total_tokens() const;
  std::size_t last_context() const { return stages.back().context; }
};

// `text` is TOML, or JSON when `json`; `where` names it in messages and `folder` is what relative
// paths start from. Throws Error naming the key: unknown, missing, of the wrong type or out of
// range.
TrainConfig parse_train_config(std::string_view text, bool json, std::string_view where,
                               const std::filesystem::path& folder);
// JSON by its name's ending, TOML otherwise.
TrainConfig load_train_config(const std::filesystem::path& file);

// Every key with its value, absolute paths: JSON that parse_train_config() reads to the same.
std::string resolved_text(const TrainConfig& config);

// Keys whose change makes another training of it: the first one in which two resolved
// configurations differ, "" when a training of the one may go on with the other.
std::string first_difference(const TrainConfig& a, const TrainConfig& b);

// All stages shortened or lengthened so that they add up to `tokens`.
void scale_tokens(TrainConfig& config, std::uint64_t tokens);

}  // namespace triax::train
