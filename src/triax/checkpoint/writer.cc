#include "triax/checkpoint/writer.h"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "triax/core/checked.h"
#include "triax/core/error.h"

namespace triax {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";
// What a model folder holds beside its tensors.
constexpr const char* kSmallFiles[] = {"config.json",
                                       "generation_config.json",
                                       "tiktoken.model",
                                       "tokenizer_config.json",
                                       "chat_template.jinja",
                                       "special_tokens_map.json",
                                       "preprocessor_config.json",
                                       "LICENSE"};

// A JSON string of ASCII characters, in quotes.
std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump(-1, ' ', true);
  } catch (const nlohmann::json::exception&) {
    fail("the name {} is not valid UTF-8", in_quotes(text));
  }
}

void make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) fail("{}: cannot create the folder: {}", folder.string(), code.message());
}

// Without its index a folder of shards cannot be opened, so a save that stops half-way over an
// older one is never taken for whole.
void remove_index(const fs::path& folder) {
  std::error_code code;
  fs::remove(folder / kIndexName, code);
  if (code) fail("{}: cannot remove the old index: {}", folder.string(), code.message());
}

std::vector<ShardPlan> plans_of(const Checkpoint& from) {
  std::vector<ShardPlan> plans;
  for (const ShardInfo& shard : from.shards()) {
    plans.push_back({shard.path.filename().string(), {}});
  }
  for (const TensorEntry& entry : from.tensors()) {
    plans[entry.shard].tensors.push_back(
        {std::string(entry.name), entry.dtype, {entry.shape.begin(), entry.shape.end()}});
  }
  return plans;
}

void write_shards(const fs::path& folder, std::span<const ShardPlan> plans,
                  const TensorSource& source) {
  for (const ShardPlan& plan : plans) {
    ShardWriter writer(folder / plan.file_name, plan);
    for (const TensorToWrite& tensor : plan.tensors) {
      const std::size_t before = writer.written();
      source(tensor, writer);
      TRIAX_CHECK(writer.written() - before == tensor.bytes(), "a source wrote the wrong size");
    }
    writer.finish();
  }
}

bool needs_index(std::span<const ShardPlan> plans) {
  return plans.size() != 1 || plans[0].file_name != kSingleName;
}

}  // namespace

std::size_t TensorToWrite::bytes() const {
  return checked_mul(checked_product(shape), dtype_size(dtype));
}

std::string shard_file_name(std::size_t shard, std::size_t shards) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

std::string safetensors_header_text(const ShardPlan& plan) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  std::size_t offset = 0;
  for (const TensorToWrite& tensor : plan.tensors) {
    const std::size_t end = checked_add(offset, tensor.bytes());
    fmt::format_to(std::back_inserter(json), R"(,{}:{{"dtype":"{}","shape":[)",
                   json_string(tensor.name), dtype_name(tensor.dtype));
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      fmt::format_to(std::back_inserter(json), "{}{}", i == 0 ? "" : ",", tensor.shape[i]);
    }
    fmt::format_to(std::back_inserter(json), R"(],"data_offsets":[{},{}]}})", offset, end);
    offset = end;
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  const std::uint64_t length = json.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + json;
}

ShardWriter::ShardWriter(const fs::path& path, const ShardPlan& plan, bool sparse)
    : file_(path), sparse_(sparse) {
  for (const TensorToWrite& tensor : plan.tensors) {
    data_bytes_ = checked_add(data_bytes_, tensor.bytes());
  }
  file_.write(safetensors_header_text(plan));
}

void ShardWriter::account(std::size_t bytes) {
  TRIAX_CHECK(bytes <= data_bytes_ - written_, "more data than the shard's plan has");
  written_ += bytes;
}

void ShardWriter::write(std::span<const std::byte> bytes) {
  account(bytes.size());
  file_.write(bytes);
}

void ShardWriter::skip(std::size_t bytes) {
  account(bytes);
  file_.skip(bytes);
}

void ShardWriter::finish(bool sync) {
  if (sparse_ && written_ < data_bytes_) skip(data_bytes_ - written_);
  TRIAX_CHECK(written_ == data_bytes_, "less data than the shard's plan has");
  file_.commit(sync);
}

void write_index(const fs::path& folder, std::span<const ShardPlan> plans) {
  std::size_t total = 0, tensors = 0;
  for (const ShardPlan& plan : plans) {
    for (const TensorToWrite& tensor : plan.tensors) total = checked_add(total, tensor.bytes());
    tensors += plan.tensors.size();
  }
  AtomicFile file(folder / kIndexName);
  file.write(
      fmt::format("{{\n \"metadata\": {{\n  \"total_size\": {}\n }},\n \"weight_map\": {{", total));
  std::size_t written = 0;
  for (const ShardPlan& plan : plans) {
    const std::string file_name = json_string(plan.file_name);
    for (const TensorToWrite& tensor : plan.tensors) {
      file.write(fmt::format("{}\n  {}: {}", written++ == 0 ? "" : ",", json_string(tensor.name),
                             file_name));
    }
  }
  file.write(tensors == 0 ? "}\n}" : "\n }\n}");
  file.commit();
}

void write_checkpoint(const fs::path& folder, std::span<const ShardPlan> plans,
                      const TensorSource& source, std::string_view config_text) {
  make_folder(folder);
  remove_index(folder);
  write_shards(folder, plans, source);
  AtomicFile config(folder / "config.json");
  config.write(config_text);
  config.commit();
  if (needs_index(plans)) write_index(folder, plans);
}

void save_checkpoint(const Checkpoint& from, const fs::path& folder,
                     const std::map<std::string, std::vector<std::byte>, std::less<>>& overrides) {
  for (const auto& [name, bytes] : overrides) {
    const TensorEntry* entry = from.find(name);
    if (entry == nullptr) {
      fail("{}: there is no tensor {} to replace", from.folder().string(), in_quotes(name));
    }
    if (entry->bytes != bytes.size()) {
      fail("{}: the new data of tensor {} have {} bytes; expected {} ({} {})",
           from.folder().string(), in_quotes(name), bytes.size(), entry->bytes,
           dtype_name(entry->dtype), to_string(entry->shape));
    }
  }
  make_folder(folder);
  std::error_code code;
  if (fs::equivalent(folder, from.folder().empty() ? fs::path(".") : from.folder(), code)) {
    fail("{}: a checkpoint cannot be saved over the one it comes from; name another folder",
         folder.string());
  }
  remove_index(folder);
  const std::vector<ShardPlan> plans = plans_of(from);
  write_shards(folder, plans, [&](const TensorToWrite& tensor, ShardWriter& out) {
    const auto changed = overrides.find(tensor.name);
    out.write(changed != overrides.end() ? std::span<const std::byte>(changed->second)
                                         : from.data(*from.find(tensor.name)));
  });
  for (const char* name : kSmallFiles) {
    const fs::path source = from.folder() / name;
    if (!fs::exists(source, code)) continue;
    AtomicFile copy(folder / name);
    copy.write(read_whole(source, std::size_t{1} << 30));
    copy.commit();
  }
  if (needs_index(plans)) write_index(folder, plans);
}

}  // namespace triax
