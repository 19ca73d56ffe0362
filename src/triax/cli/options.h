// What the command line says, as plain structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "triax/core/context.h"
#include "triax/core/error.h"

namespace triax::cli {

// Wrong use: exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};
template <class... Args>
[[noreturn]] void wrong_use(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

// Where the trunk lies and in what form (weights/trunk.h). `automatic`: resident when it takes at
// most half of the memory that is free, else mapped.
enum class TrunkChoice : std::uint8_t { automatic, mapped, resident, int8 };

struct Common {
  std::string model;        // -m; empty: the default model
  std::size_t threads = 0;  // 0: every core this process may use
  TrunkChoice trunk = TrunkChoice::automatic;
  bool json = false;
};

struct RunCommand : Common {
  std::optional<std::string> prompt;  // "-": standard input
  std::string ids_file;
  std::size_t max_tokens = 256;
  float temperature = 1.0f, top_p = 1.0f, min_p = 0.0f;
  std::size_t top_k = 0;
  std::optional<std::uint64_t> seed;  // none: drawn, and told in the summary
  Precision precision = Precision::bf16;
  bool raw = false;
  bool stats = false;
  std::string effort = "max";  // of thinking; none: no thinking
  bool hide_thinking = false;
};

struct ChatCommand : Common {
  std::string system, load;
  std::string effort = "max";
  std::size_t max_tokens = 2048;  // an answer
  float temperature = 1.0f, top_p = 0.95f, min_p = 0.0f;
  std::size_t top_k = 0;
  std::optional<std::uint64_t> seed;
  Precision precision = Precision::bf16;
  bool hide_thinking = false;
  bool no_history = false;
  bool recompute = false;  // every turn from its first token on
};

struct ServeCommand : Common {
  std::string host = "127.0.0.1";
  std::size_t port = 8080;  // 0: a free one
  std::string profile = "open";
  std::string name;  // of the model, in answers; empty: the folder's
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::string cors;  // an origin, or *
  std::string log;   // empty: standard error; none: nowhere
  std::size_t users = 64, queue = 256, connections = 1024;
  std::size_t context = std::size_t{1} << 20;
  std::size_t memory_mib = 0;  // for states; 0: half of what is free
  std::string cache_folder;
  std::size_t cache_disk_mib = 8192;
  std::size_t chunk = 512;
  std::size_t body_mib = 32;
  std::size_t grace_seconds = 60;
  bool no_turn_memory = false;
  Precision precision = Precision::bf16;
};

struct LogitsCommand : Common {
  std::string ids_file, out, dump;
  Precision precision = Precision::bf16;
  std::size_t chunk = 256;
  bool training_paths = false;  // --paths train: training's forward pass
};

struct EvalCommand : Common {
  std::string file;
  bool ids = false;  // the file holds ids
  Precision precision = Precision::bf16;
  std::size_t chunk = 256;
  std::string against;  // "precision=f32,isa=scalar,chunk=1,threads=1,trunk=int8"
  bool by_family = false;

  std::string suite;  // "nano": graded items instead of a text
  std::uint64_t seed = 1;
  std::string items;  // file to write them to
  std::size_t stories = 2000, sums = 1000, tools = 500;
  std::string effort = "mixed";  // low, high, max, or each in turn
  std::size_t batch = 32;        // sequences at once
  std::string data;              // folder of `triax data`: overlap with it is reported
};

struct BenchCommand : Common {
  std::string prompt = "512,2048";        // lengths
  std::string decode = "128@16,64@2048";  // tokens at a depth
  std::string sequences = "4,8";          // at once
  std::string only;                       // names of measurements, instead of the lists
  std::size_t repeats = 3;
  std::uint64_t ids_seed = 1;
  Precision precision = Precision::bf16;
  std::size_t chunk = 512;
  bool profile = false;
  std::size_t limits_mib = 1024;  // the buffer of the read bandwidth; 0: limits not measured
  bool serve = false;             // measurements by name on standard input
};

struct TokenizeCommand : Common {
  std::optional<std::string> text;
  std::string file;
  bool pieces = false;
  bool special = false;
};

struct DetokenizeCommand : Common {
  std::vector<std::string> ids;
  std::string file;
};

struct InspectCommand : Common {
  std::string path;
};

struct SynthCommand : Common {
  std::string config, out;
  std::uint64_t seed = 20260727;
  std::size_t shard_mib = 512;
  std::size_t shards = 0;
  bool sparse = false;
  bool force = false;
};

struct PackCommand : Common {
  std::string from, out;
  bool force = false;
};

struct TrainCommand : Common {
  std::string config, out, init_from;
  bool resume = false;
  bool plan = false;
  std::size_t steps = 0;     // stop after so many in all; 0: all
  std::uint64_t tokens = 0;  // of all stages together; 0: as the configuration says
};

struct DistillCommand : Common {
  std::string config, out;
};

struct DataCommand : Common {
  std::string out;
  std::uint64_t seed = 1;
  std::size_t documents = 0;          // of training; 0: by tokens
  std::uint64_t tokens = 30'000'000;  // of training, about
  std::size_t heldout = 2000;         // documents
  std::vector<std::string> kinds;     // empty: all
  std::string wordnet;
  std::vector<std::string> prose;
  bool force = false;
};

struct SelftestCommand : Common {
  std::string server;  // address of a server to check instead; empty: this build
  std::string api_key;
  std::string profile = "auto";
  std::uint64_t timeout_seconds = 120;
};
struct DoctorCommand : Common {
  bool huge_pages = false;  // read the model's files into huge pages instead
};

using Command =
    std::variant<RunCommand, ChatCommand, ServeCommand, LogitsCommand, EvalCommand, BenchCommand,
                 TokenizeCommand, DetokenizeCommand, InspectCommand, SynthCommand, PackCommand,
                 TrainCommand, DistillCommand, DataCommand, SelftestCommand, DoctorCommand>;

// Either a command, or a text to print (help, version: exit code 0; wrong use: 2).
struct Parsed {
  std::optional<Command> command;
  int exit_code = 0;
  std::string text;
};
Parsed parse_options(int argc, const char* const* argv);

}  // namespace triax::cli
