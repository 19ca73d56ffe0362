// Which tensors a synthetic checkpoint has, and in which shard each lies.
#include <algorithm>
#include <numeric>

#include "triax/core/checked.h"
#include "triax/weights/synth.h"

namespace triax {
namespace {

struct Named {
  std::string_view name;
  std::string_view text;
};
constexpr Named kBuiltin[] = {
#include "builtin_configs.inc"
};

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;
constexpr std::string_view kRoot = "language_model.";

std::string read_config(const std::string& config) {
  if (const auto text = builtin_config(config)) return std::string(*text);
  std::filesystem::path path = config;
  if (std::filesystem::is_directory(path)) path /= "config.json";
  if (!std::filesystem::exists(path)) {
    fail("{}: no such configuration; give k3, tiny, small, bench or the path of a config.json",
         config);
  }
  return read_whole(path, kMaxConfigBytes);
}

void check_mxfp4(const K3Config& c, const std::string& where) {
  if (c.moe_layers() == 0) return;
  for (const auto& [name, value] :
       {std::pair{"routed_expert_hidden_size", c.routed_expert_hidden_size},
        std::pair{"moe_intermediate_size", c.moe_intermediate_size}}) {
    if (value % 32 != 0) {
      fail("{}: {} is {}, expected a multiple of 32, the group of MXFP4", where, name, value);
    }
  }
}

TensorToWrite to_write(const K3Config& config, const TensorId& id) {
  return {tensor_name(id, kRoot), id.row->dtype, tensor_shape(*id.row, config)};
}

class Planner {
 public:
  explicit Planner(SynthPlan& plan) : plan_(plan) { plan_.bytes = 0; }

  void open_shard() {
    plan_.shards.emplace_back();
    plan_.ids.emplace_back();
  }
  void add(const TensorId& id) { add(id, to_write(plan_.config, id)); }
  void add(const TensorId& id, TensorToWrite tensor) {
    plan_.bytes = checked_add(plan_.bytes, tensor.bytes());
    plan_.shards.back().tensors.push_back(std::move(tensor));
    plan_.ids.back().push_back(id);
  }
  void finish() {
    for (std::size_t s = 0; s < plan_.shards.size(); ++s) {
      plan_.shards[s].file_name = shard_file_name(s, plan_.shards.size());
    }
  }

 private:
  SynthPlan& plan_;
};

// When a new shard begins: by size, or so that there are just as many as asked for.
class Cutter {
 public:
  Cutter(const SynthOptions& options, const K3Config& config)
      : shards_(options.shards), limit_(checked_mul(options.shard_mib, std::size_t{1} << 20)) {
    if (shards_ == 0) return;
    for_each_tensor(config, {true, false}, [&](const TensorId& id) {
      total_ = checked_add(total_, to_write(config, id).bytes());
      units_ += starts_unit(id) ? 1 : 0;
    });
    if (units_ < shards_) {
      fail("{} shards cannot be made of {} tensors; ask for fewer", shards_, units_);
    }
  }

  bool cut_before(const TensorId& id, std::size_t bytes) {
    bool cut = false;
    if (starts_unit(id)) {
      if (shards_ == 0) {
        cut = size_ > 0 && checked_add(size_, bytes) > limit_;
      } else if (size_ > 0 && made_ < shards_) {
        // the share is full, or what is left is just enough for one unit a shard
        cut = done_ >= total_ / shards_ * made_ || units_ <= shards_ - made_;
      }
      --units_;
    }
    if (cut) {
      ++made_;
      size_ = 0;
    }
    size_ += bytes;
    done_ += bytes;
    return cut;
  }

 private:
  // An expert's packed weights and their scales stay in one shard.
  static bool starts_unit(const TensorId& id) { return id.row->role != TensorRole::expert_scale; }

  std::size_t shards_, limit_;
  std::size_t total_ = 0, units_ = 0;  // units: those not yet placed
  std::size_t made_ = 1, size_ = 0, done_ = 0;
};

void plan_by_size(const SynthOptions& options, SynthPlan& plan) {
  Cutter cutter(options, plan.config);
  Planner planner(plan);
  planner.open_shard();
  for_each_tensor(plan.config, {true, false}, [&](const TensorId& id) {
    TensorToWrite tensor = to_write(plan.config, id);
    if (cutter.cut_before(id, tensor.bytes())) planner.open_shard();
    planner.add(id, std::move(tensor));
  });
  planner.finish();
}

// The shards of the release.
void plan_as_released(SynthPlan& plan) {
  const K3Config& c = plan.config;
  Planner planner(plan);
  std::vector<std::vector<TensorId>> layers(c.num_hidden_layers);
  std::vector<TensorId> outside, projector, tower;
  for_each_tensor(c, {}, [&](const TensorId& id) {
    if (id.row->scope == Scope::layer) {
      layers[id.layer].push_back(id);
    } else if (id.row->scope == Scope::global) {
      outside.push_back(id);
    } else if (is_vision(*id.row)) {
      (id.row->component == Component::projector ? projector : tower).push_back(id);
    }
  });
  std::vector<std::size_t> order(c.num_experts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [](std::size_t e) { return std::to_string(e); });
  const auto shard = [&](const std::vector<TensorId>& ids) {
    planner.open_shard();
    for (const TensorId& id : ids) planner.add(id);
  };
  for (std::size_t l = 0; l < layers.size(); ++l) {
    shard(layers[l]);
    for (std::size_t e : c.ffn(l) == Ffn::moe ? order : std::vector<std::size_t>()) {
      for (const TensorRow& row : tensor_table()) {
        if (row.scope == Scope::expert) planner.add({&row, l, e});
      }
    }
  }
  shard(outside);
  if (!projector.empty()) shard(projector);
  if (!tower.empty()) shard(tower);
  planner.finish();
}

}  // namespace

std::optional<std::string_view> builtin_config(std::string_view name) {
  for (const Named& entry : kBuiltin) {
    if (entry.name == name) return entry.text;
  }
  return std::nullopt;
}

SynthPlan plan_synthesis(const SynthOptions& options) {
  SynthPlan plan;
  plan.config_text = read_config(options.config);
  plan.config = K3Config::parse(plan.config_text, options.config);
  check_mxfp4(plan.config, options.config);
  if (options.shard_mib == 0) fail("a shard of 0 MiB holds nothing; give a size of at least 1");
  if (options.config == "k3") {
    plan_as_released(plan);
  } else {
    plan_by_size(options, plan);
  }
  return plan;
}

}  // namespace triax
