// Making and finding the default model.
#include "triax/cli/default_model.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "triax/checkpoint/file.h"
#include "triax/cli/embedded.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/progress.h"
#include "triax/core/error.h"
#include "triax/weights/synth.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDraft = ".nano-";
constexpr const char* kMark = "random-weights.txt";
constexpr const char* kMarkText =
    "The weights of this model are random numbers: it has the shape of Kimi K3 and its "
    "vocabulary,\n"
    "and what it writes has no meaning. `triax run` made it at its first use; it can be deleted.\n";
constexpr std::uint64_t kSeed = 1;

// The clone that holds the running binary (build/NAME/triax), if any.
fs::path clone_root() {
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int up = 0; up < 6 && folder.has_relative_path(); ++up, folder = folder.parent_path()) {
    if (fs::exists(folder / "CMakeLists.txt", error) &&
        fs::is_directory(folder / "src/triax", error)) {
      return folder;
    }
  }
  return {};
}

fs::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return fs::path(cache) / "triax";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return fs::path(home) / ".cache" / "triax";
  }
  return {};
}

bool complete(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "config.json", ignored) &&
         (fs::exists(folder / "model.safetensors.index.json", ignored) ||
          fs::exists(folder / "model.safetensors", ignored));
}

// A folder under another name that is removed unless it is kept.
class Draft {
 public:
  explicit Draft(const fs::path& parent) {
    std::string pattern = (parent / (std::string(kDraft) + "XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      fail("{}: cannot make a folder for the default model: {}; name a model with -m",
           parent.string(), std::strerror(errno));
    }
    path_ = pattern;
    fs::permissions(path_, fs::perms(0755));
  }
  ~Draft() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  const fs::path& path() const { return path_; }
  // Another process may have been faster; its model is the same.
  void keep_as(const fs::path& name) {
    std::error_code error;
    fs::rename(path_, name, error);
    if (error && !complete(name)) fail("{}: {}", name.string(), error.message());
  }

 private:
  fs::path path_;
};

// Drafts of processes that were killed; what is young may be another process at work.
void remove_stale_drafts(const fs::path& parent) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    if (!entry.path().filename().string().starts_with(kDraft)) continue;
    const auto age = fs::file_time_type::clock::now() - entry.last_write_time(error);
    if (!error && age > std::chrono::hours(1)) fs::remove_all(entry.path(), error);
  }
}

}  // namespace

std::vector<fs::path> default_model_places() {
  std::vector<fs::path> out;
  if (const fs::path root = clone_root(); !root.empty()) out.push_back(root / "models/nano");
  if (const fs::path cache = cache_folder(); !cache.empty()) out.push_back(cache / "nano");
  return out;
}

bool is_random_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kMark, ignored);
}

void make_random_model(const fs::path& folder) {
  const TemporaryFolder config;
  write_embedded("nano", config.path());
  SynthOptions options;
  options.config = (config.path() / "config.json").string();
  options.seed = kSeed;
  const InterruptGuard guard;
  {
    Progress progress("making a small random model, once", Unit::bytes);
    synthesize(options, folder, [&](std::uint64_t done, std::uint64_t total) {
      progress.update(done, total);
      if (interrupted()) throw Interrupted();
    });
  }
  write_embedded("tokenizer", folder);
  AtomicFile mark(folder / kMark);
  mark.write(std::string_view(kMarkText));
  mark.commit();
}

fs::path default_model() {
  const std::vector<fs::path> places = default_model_places();
  for (const fs::path& place : places) {
    if (complete(place)) return place;
  }
  for (const fs::path& place : places) {
    std::error_code error;
    fs::create_directories(place.parent_path(), error);
    if (error || ::access(place.parent_path().c_str(), W_OK) != 0) continue;
    remove_stale_drafts(place.parent_path());
    Draft draft(place.parent_path());
    make_random_model(draft.path());
    draft.keep_as(place);
    return place;
  }
  fail(
      "there is no folder to make the default model in; name a model with -m, or set "
      "XDG_CACHE_HOME to a folder that can be written");
}

}  // namespace triax::cli
