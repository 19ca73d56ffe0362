// `triax doctor --huge-pages`: a model's files in huge pages of the page cache.
#pragma once

#include <filesystem>

namespace triax::cli {

// Reads every shard of the folder into huge pages, where it is not there already; prints how the
// files lie afterwards. Returns the exit code: 0 also where the system only has small pages, which
// the text says. Throws Error for a folder that is no model, or larger than the memory available.
int read_model_into_huge_pages(const std::filesystem::path& folder, bool json);

}  // namespace triax::cli
