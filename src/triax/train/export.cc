// Export of masters.
#include "triax/train/export.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "triax/checkpoint/file.h"
#include "triax/checkpoint/writer.h"
#include "triax/core/error.h"
#include "triax/core/mxfp4.h"
#include "triax/train/qat.h"

namespace triax::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRoot = "language_model.";
constexpr std::size_t kShardBytes = std::size_t{512} << 20;
constexpr const char* kTokenizerFiles[] = {"tiktoken.model", "tokenizer_config.json"};

struct Planned {
  std::vector<ShardPlan> shards;
  std::vector<TensorId> ids;  // in the order of writing
};

Planned plan_shards(const K3Config& config) {
  Planned out;
  std::size_t filled = 0;
  for_each_tensor(config, {true, false}, [&](const TensorId& id) {
    TensorToWrite tensor{tensor_name(id, kRoot), id.row->dtype, tensor_shape(*id.row, config)};
    const std::size_t bytes = tensor.bytes();
    const bool whole = id.row->role != TensorRole::expert_scale;  // scales follow their weights
    if (out.shards.empty() || (whole && filled + bytes > kShardBytes)) {
      out.shards.emplace_back();
      filled = 0;
    }
    filled += bytes;
    out.shards.back().tensors.push_back(std::move(tensor));
    out.ids.push_back(id);
  });
  for (std::size_t s = 0; s < out.shards.size(); ++s) {
    out.shards[s].file_name = shard_file_name(s, out.shards.size());
  }
  return out;
}

// Bytes of one tensor after the other.
class Encoder {
 public:
  explicit Encoder(const Parameters<float>& masters) : masters_(masters) {
    for (const ParameterLayout::Tensor& t : masters.layout().tensors()) next_.push_back(&t);
  }

  void write(const TensorId& id, ShardWriter& out) {
    if (id.row->role == TensorRole::expert_scale) {  // of the packed tensor just written
      out.write(std::as_bytes(std::span(scale_)));
      return;
    }
    const ParameterLayout::Tensor& t = *next_[at_++];
    TRIAX_CHECK(t.id.row == id.row && t.id.layer == id.layer && t.id.expert == id.expert);
    const std::span<const float> numbers = masters_[t];
    for (const float x : numbers) {
      if (!std::isfinite(x)) fail("{}: a number is not finite; the model is not exported", t.name);
    }
    if (id.row->role == TensorRole::expert_packed) {
      packed_.resize(t.size / 2);
      scale_.resize(t.size / kMxfp4Group);
      mxfp4_encode(masters_.as_matrix(t), packed_.data(), scale_.data());
      out.write(std::as_bytes(std::span(packed_)));
    } else if (id.row->dtype == DType::BF16) {
      narrow_.resize(t.size);
      for (std::size_t i = 0; i < t.size; ++i) narrow_[i] = to_bf16(numbers[i]);
      out.write(std::as_bytes(std::span(narrow_)));
    } else {
      TRIAX_CHECK(id.row->dtype == DType::F32);
      out.write(std::as_bytes(numbers));
    }
  }

 private:
  const Parameters<float>& masters_;
  std::vector<const ParameterLayout::Tensor*> next_;
  std::size_t at_ = 0;
  std::vector<std::uint8_t> packed_, scale_;
  std::vector<bf16> narrow_;
};

}  // namespace

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail("{}: cannot open the folder: {}", folder.string(), std::strerror(errno));
  ::fsync(fd);  // file systems that cannot say no
  ::close(fd);
}

void replace_folder(const fs::path& made, const fs::path& folder) {
  sync_folder(made);
  std::error_code code;
  if (!fs::exists(folder, code)) {
    fs::rename(made, folder, code);
    if (code) fail("{}: cannot be named {}: {}", made.string(), folder.string(), code.message());
  } else {
    // Exchanged in one go where the file system can; otherwise there is a moment without a folder.
    if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) {
      fs::remove_all(folder, code);
      fs::rename(made, folder, code);
      if (code) fail("{}: cannot be named {}: {}", made.string(), folder.string(), code.message());
    }
    fs::remove_all(made, code);
  }
  sync_folder(folder.parent_path());
}

void export_model(Context& ctx, const Parameters<float>& masters, const std::string& config_text,
                  const fs::path& tokenizer, const fs::path& folder) {
  const K3Config& config = masters.layout().config();
  const fs::path made = folder.string() + ".partial";
  std::error_code code;
  fs::remove_all(made, code);
  Parameters<float> rounded(masters.layout());  // numbers below 1e-37 are zero in passes: here too
  exported_values(ctx, masters, {}, rounded);
  const Planned plan = plan_shards(config);
  Encoder encoder(rounded);
  std::size_t next = 0;
  write_checkpoint(
      made, plan.shards,
      [&](const TensorToWrite&, ShardWriter& out) { encoder.write(plan.ids[next++], out); },
      config_text);
  for (const char* name : kTokenizerFiles) {
    if (tokenizer.empty() || !fs::exists(tokenizer / name, code)) continue;
    AtomicFile copy(made / name);
    copy.write(read_whole(tokenizer / name, std::size_t{1} << 30));
    copy.commit();
  }
  replace_folder(made, folder);
}

}  // namespace triax::train
