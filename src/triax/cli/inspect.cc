// `triax inspect`: what a model consists of.
#include <filesystem>

#include "triax/checkpoint/checkpoint.h"
#include "triax/cli/commands.h"
#include "triax/cli/default_model.h"
#include "triax/cli/progress.h"
#include "triax/weights/accounting.h"
#include "triax/weights/synth.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;

// Does the folder hold weights, or is there only a configuration?
bool holds_weights(const fs::path& folder) {
  if (fs::exists(folder / "model.safetensors.index.json")) return true;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") return true;
  }
  return false;
}

Accounting account_of(const std::string& named) {
  const fs::path path = named.empty() ? default_model() : fs::path(named);
  if (!fs::exists(path)) {
    if (const auto text = builtin_config(named)) return account(K3Config::parse(*text, named));
  }
  const K3Config config = K3Config::load(path);
  if (!fs::is_directory(path) || !holds_weights(path)) return account(config);
  const Progress progress("reading headers of " + path.string(), Unit::bytes);
  return account(config, *Checkpoint::open(path));
}

}  // namespace

int execute(const InspectCommand& c) {
  if (!c.path.empty() && !c.model.empty()) {
    wrong_use("inspect: a path and -m do not go together; give one of them");
  }
  const Accounting accounting = account_of(c.path.empty() ? c.model : c.path);
  const std::string text = c.json ? accounting.to_json() : accounting.format_text();
  fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
  return 0;
}

}  // namespace triax::cli
