// The model that commands use without -m: the trained one of the repository. A program that was
// copied out of it makes a small random one with K3's vocabulary, once.
#pragma once

#include <filesystem>
#include <vector>

namespace triax::cli {

// Its folder: models/nano of the repository that the binary was built in, or triax/nano in the
// user's cache folder. Makes it when it is not there; an interrupted making leaves nothing under
// that name.
std::filesystem::path default_model();

// Where default_model() looks and writes, best first.
std::vector<std::filesystem::path> default_model_places();

// Was this folder made by default_model()?
bool is_random_model(const std::filesystem::path& folder);

// Writes such a model into `folder`, which is new or empty.
void make_random_model(const std::filesystem::path& folder);

}  // namespace triax::cli
