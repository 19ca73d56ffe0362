// Model folders for tests: temporary directories, and copies of a checkpoint with tensors changed.
// Header only; the test program links triax_checkpoint.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "triax/checkpoint/checkpoint.h"
#include "triax/checkpoint/writer.h"
#include "triax/core/error.h"

namespace triax::test {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct EditableTensor {
  TensorToWrite info;
  std::vector<std::byte> data;
};

// Copies the folder `from` to `to` as one shard, after `edit` has changed its list of tensors.
inline void copy_edited(const std::filesystem::path& from, const std::filesystem::path& to,
                        const std::function<void(std::vector<EditableTensor>&)>& edit) {
  const auto source = Checkpoint::open(from);
  std::vector<EditableTensor> tensors;
  for (const TensorEntry& e : source->tensors()) {
    const auto bytes = source->data(e);
    tensors.push_back({{std::string(e.name), e.dtype, {e.shape.begin(), e.shape.end()}},
                       {bytes.begin(), bytes.end()}});
  }
  edit(tensors);
  ShardPlan plan{shard_file_name(0, 1), {}};
  for (const EditableTensor& t : tensors) plan.tensors.push_back(t.info);
  std::size_t next = 0;
  write_checkpoint(
      to, std::span(&plan, 1),
      [&](const TensorToWrite&, ShardWriter& out) { out.write(tensors[next++].data); },
      read_text(from / "config.json"));
}

// The message of the Error that f() throws; a test failure and "" when it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

}  // namespace triax::test
