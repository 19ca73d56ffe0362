#include "triax/checkpoint/checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "triax/checkpoint/index.h"
#include "triax/checkpoint/name_pool.h"
#include "triax/checkpoint/safetensors.h"
#include "triax/core/checked.h"
#include "triax/core/error.h"

namespace triax {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";
constexpr std::size_t kMaxIndexBytes = std::size_t{1} << 30;
constexpr std::string_view kRoot = "language_model.";

SafetensorsHeader read_header(const fs::path& path, std::size_t bytes) {
  const std::string where = path.string();
  const auto start = read_prefix(path, kSafetensorsLengthBytes);
  const std::size_t length = safetensors_header_length(start, bytes, where);
  return parse_safetensors_header(read_prefix(path, kSafetensorsLengthBytes + length), bytes,
                                  where);
}

void check_files_exist(const fs::path& folder, const ShardIndex& index) {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const std::string& file : index.files()) {
    if (!fs::exists(folder / file, ignored)) missing.push_back(file);
  }
  if (!missing.empty()) {
    fail("{}: {} of {} shards that {} names are missing: {}; download them", folder.string(),
         missing.size(), index.files().size(), kIndexName, fmt::join(missing, ", "));
  }
}

}  // namespace

struct Checkpoint::Impl {
  fs::path folder;
  bool has_index = false;
  std::vector<ShardInfo> shards;
  std::vector<MappedFile> maps;
  std::vector<TensorEntry> tensors;
  NamePool names;
  NameTable table;
  std::string_view root;
  std::size_t total_bytes = 0;

  void add_shard(const fs::path& path) {
    const std::size_t bytes = regular_file_size(path);
    SafetensorsHeader header = read_header(path, bytes);
    for (TensorEntry& entry : header.entries) {
      entry.shard = shards.size();
      total_bytes = checked_add(total_bytes, entry.bytes);
    }
    tensors.insert(tensors.end(), header.entries.begin(), header.entries.end());
    names.take(std::move(header.names));
    shards.push_back({path, bytes});
  }

  void build_table() {
    const std::size_t twice = table.build(tensors);
    if (twice == tensors.size()) return;
    const TensorEntry& second = tensors[twice];
    const auto first = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const TensorEntry& e) { return e.name == second.name; });
    fail("{}: tensor {} is also in {}; a tensor stands in one shard", shard_name(second.shard),
         in_quotes(second.name), shard_name(first->shard));
  }

  // Every name of the index is in the shard it says, once, and no shard holds a tensor beyond it.
  void check_index(const ShardIndex& index) const {
    std::vector<bool> seen(tensors.size(), false);
    std::size_t absent = 0;
    std::string first_absent, first_shard;
    index.for_each([&](std::string_view name, std::size_t file) {
      const std::size_t at = table.find(name, tensors);
      if (at == NameTable::npos || tensors[at].shard != file) {
        if (at != NameTable::npos) {
          fail("{}: tensor {} is in this shard, but {} places it in {}",
               shard_name(tensors[at].shard), in_quotes(name), kIndexName, shard_name(file));
        }
        if (absent++ == 0) {
          first_absent = name;
          first_shard = shard_name(file);
        }
        return;
      }
      if (seen[at]) {
        fail("{}: weight_map names tensor {} twice", (folder / kIndexName).string(),
             in_quotes(name));
      }
      seen[at] = true;
    });
    if (absent > 0) {
      fail("{}: tensor {} is in {} but not in this shard{}; download the shard again", first_shard,
           in_quotes(first_absent), kIndexName,
           absent > 1 ? fmt::format(" (and {} more tensors)", absent - 1) : "");
    }
    const auto extra = std::find(seen.begin(), seen.end(), false);
    if (extra != seen.end()) {
      const TensorEntry& entry = tensors[static_cast<std::size_t>(extra - seen.begin())];
      fail("{}: tensor {} is in this shard but not in {}", shard_name(entry.shard),
           in_quotes(entry.name), kIndexName);
    }
    if (index.total_size() && *index.total_size() != total_bytes) {
      fail("{}: metadata.total_size is {}, but the tensors have {} bytes together",
           (folder / kIndexName).string(), *index.total_size(), total_bytes);
    }
  }

  void find_root() {
    const TensorEntry* plain = nullptr;
    const TensorEntry* nested = nullptr;
    for (const TensorEntry& e : tensors) {
      if (e.name.starts_with(kRoot)) nested = &e;
      if (e.name.starts_with("model.") || e.name.starts_with("lm_head.")) plain = &e;
    }
    if (plain != nullptr && nested != nullptr) {
      fail("{}: names begin with \"{}\" ({}) and without it ({}); all of them do or none",
           folder.string(), kRoot, in_quotes(nested->name), in_quotes(plain->name));
    }
    root = nested != nullptr ? kRoot : std::string_view();
  }

  void map_shards() {
    for (const ShardInfo& shard : shards) {
      maps.emplace_back(shard.path);
      if (maps.back().bytes().size() != shard.bytes) {
        fail("{}: changed its size while it was opened", shard.path.string());
      }
    }
  }

  std::string shard_name(std::size_t shard) const { return shards[shard].path.string(); }
};

Checkpoint::Checkpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Checkpoint::~Checkpoint() = default;

std::shared_ptr<const Checkpoint> Checkpoint::open(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    fail("{}: is not a folder; name a model folder (config.json and safetensors shards)",
         folder.string());
  }
  if (!fs::exists(folder / kIndexName, ignored)) {
    if (!fs::exists(folder / kSingleName, ignored)) {
      fail("{}: holds neither {} nor {}; name a folder with the released layout", folder.string(),
           kIndexName, kSingleName);
    }
    return open_file(folder / kSingleName);
  }
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  impl->has_index = true;
  const ShardIndex index = ShardIndex::parse(read_whole(folder / kIndexName, kMaxIndexBytes),
                                             (folder / kIndexName).string());
  check_files_exist(folder, index);
  impl->tensors.reserve(index.tensors());
  for (const std::string& file : index.files()) impl->add_shard(folder / file);
  impl->build_table();
  impl->check_index(index);
  impl->find_root();
  impl->map_shards();
  return std::shared_ptr<const Checkpoint>(new Checkpoint(std::move(impl)));
}

std::shared_ptr<const Checkpoint> Checkpoint::open_file(const fs::path& file) {
  auto impl = std::make_unique<Impl>();
  impl->folder = file.parent_path();
  impl->add_shard(file);
  impl->build_table();
  impl->find_root();
  impl->map_shards();
  return std::shared_ptr<const Checkpoint>(new Checkpoint(std::move(impl)));
}

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const std::size_t at = impl_->table.find(name, impl_->tensors);
  return at == NameTable::npos ? nullptr : &impl_->tensors[at];
}

std::span<const TensorEntry> Checkpoint::tensors() const {
  return impl_->tensors;
}
std::span<const ShardInfo> Checkpoint::shards() const {
  return impl_->shards;
}

std::span<const std::byte> Checkpoint::data(const TensorEntry& entry) const {
  return impl_->maps[entry.shard].bytes().subspan(entry.offset, entry.bytes);
}

void Checkpoint::read(const TensorEntry& entry, std::size_t begin, std::span<std::byte> out) const {
  TRIAX_CHECK(begin <= entry.bytes && out.size() <= entry.bytes - begin, "beyond the tensor");
  impl_->maps[entry.shard].read(entry.offset + begin, out);
}

std::string_view Checkpoint::root() const {
  return impl_->root;
}
std::size_t Checkpoint::total_bytes() const {
  return impl_->total_bytes;
}
const fs::path& Checkpoint::folder() const {
  return impl_->folder;
}
bool Checkpoint::has_index() const {
  return impl_->has_index;
}

}  // namespace triax
