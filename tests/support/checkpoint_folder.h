// A temporary folder for tests, and small checkpoints in it. Used by tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/temp_folder.h"
#include "triax/checkpoint/writer.h"
#include "triax/core/error.h"

namespace triax::test {

class TestFolder : public TempFolder {
 public:
  std::string read(std::string_view name) const {
    std::ifstream file(*this / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(std::string_view name, std::string_view bytes) const {
    std::ofstream file(*this / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
};

// The message of the Error that `call` throws; it must be one line.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    return error.what();
  }
  return "(no error)";
}

// A safetensors file around any header text: the length, the text, `data` zero bytes.
inline std::string file_around(std::string_view header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  out += header;
  return out.append(data, '\0');
}

// Three shards of a few tensors, under the key root `language_model.`.
inline std::vector<ShardPlan> small_plans() {
  const std::string root = "language_model.model.";
  return {{shard_file_name(0, 3),
           {{root + "embed_tokens.weight", DType::BF16, {16, 8}},
            {root + "layers.0.self_attn.A_log", DType::F32, {32}}}},
          {shard_file_name(1, 3),
           {{root + "layers.0.w1.weight_packed", DType::U8, {4, 16}},
            {root + "layers.0.w1.weight_scale", DType::F8_E8M0, {4, 1}}}},
          {shard_file_name(2, 3),
           {{root + "norm.weight", DType::BF16, {8}},
            {"language_model.lm_head.weight", DType::BF16, {16, 8}}}}};
}

// Tensor data that differ from tensor to tensor and from byte to byte.
inline std::vector<std::byte> test_bytes(std::string_view name, std::size_t count) {
  std::vector<std::byte> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] =
        static_cast<std::byte>(i * 7 + name.size() * 13 + static_cast<unsigned char>(name.back()));
  }
  return out;
}

inline void write_test_bytes(const TensorToWrite& tensor, ShardWriter& out) {
  out.write(test_bytes(tensor.name, tensor.bytes()));
}

inline void write_small(const std::filesystem::path& folder) {
  write_checkpoint(folder, small_plans(), write_test_bytes, "{}");
}

}  // namespace triax::test
