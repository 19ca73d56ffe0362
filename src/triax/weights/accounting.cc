// Accounting as a visitor of the tensor table.
#include "triax/weights/accounting.h"

#include <algorithm>
#include <array>
#include <map>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/checked.h"

namespace triax {
namespace {

constexpr std::size_t index_of(Component component) {
  return static_cast<std::size_t>(component);
}

bool is_moe(Component component) {
  return component == Component::router || component == Component::latent ||
         component == Component::shared_experts || component == Component::routed_experts;
}

// Collects tensors one by one, or `copies` equal ones (the experts of a layer) at a time.
class Counter {
 public:
  explicit Counter(const K3Config& config) : config_(config) {
    out_.layers.resize(config.num_hidden_layers);
    out_.tied_head = config.tie_word_embeddings;
    for (std::size_t l = 0; l < out_.layers.size(); ++l) {
      out_.layers[l].kind = config.kind(l);
      out_.layers[l].ffn = config.ffn(l);
      out_.layers[l].opens_block = config.opens_block(l);
    }
  }

  void add(const TensorId& id, std::uint64_t elements, std::size_t element_bytes,
           std::uint64_t copies) {
    const TensorRow& row = *id.row;
    Amount one;
    one.tensors = copies;
    one.parameters = checked_mul(parameters_of(id, elements), copies);
    one.bytes = checked_mul(checked_mul(elements, element_bytes), copies);
    one.active = active(row, elements, one);
    sums_[index_of(row.component)] += one;
    if (row.role == TensorRole::expert_scale) out_.routed_scale_bytes += one.bytes;
    if (id.scales) out_.trunk_scale_bytes += one.bytes;
    if (row.scope == Scope::layer || row.scope == Scope::expert) {
      out_.layers[id.layer].total += one;
      if (is_moe(row.component)) out_.layers[id.layer].moe += one;
    }
    if (row.role == TensorRole::embedding) {
      embedding_row_bytes_ = elements / config_.vocab_size * element_bytes;
    }
  }

  Accounting finish() {
    finish_components();
    finish_totals();
    finish_groups();
    finish_sequence();
    return std::move(out_);
  }

 private:
  std::uint64_t active(const TensorRow& row, std::uint64_t elements, const Amount& one) const {
    if (row.role == TensorRole::embedding) return elements / config_.vocab_size;
    if (row.component != Component::routed_experts) return is_vision(row) ? 0 : one.parameters;
    // top-k of the layer's experts, whatever part of them `one` is
    return one.parameters / config_.num_experts * config_.num_experts_per_token;
  }

  // How often a component occurs: the layers that have it, counted by the table's own conditions.
  std::uint64_t instances(Component component) const {
    std::uint64_t best = 0;
    if (component == Component::depth_mix || component == Component::norm) {
      // every norm vector is an instance; a mix is a norm and a projection
      for_each_tensor(config_, {true, false}, [&](const TensorId& id) {
        const bool counts = component == Component::norm || id.row->role == TensorRole::mix_norm;
        best += id.row->component == component && counts ? 1 : 0;
      });
      return best;
    }
    for (const TensorRow& row : tensor_table()) {
      if (row.component != component) continue;
      if (row.scope != Scope::layer && row.scope != Scope::expert) return 1;
      std::uint64_t n = 0;
      for (std::size_t l = 0; l < config_.num_hidden_layers; ++l)
        n += row.exists(config_, l) ? 1 : 0;
      best = std::max(best, row.scope == Scope::expert ? n * config_.num_experts : n);
    }
    return best;
  }

  void finish_components() {
    for (std::size_t i = 0; i < kComponents; ++i) {
      if (sums_[i].tensors == 0) continue;
      const auto component = static_cast<Component>(i);
      const std::uint64_t n = std::max<std::uint64_t>(1, instances(component));
      out_.components.push_back({component, n, sums_[i].parameters / n, sums_[i]});
    }
  }

  void finish_totals() {
    for (std::size_t i = 0; i < kComponents; ++i) {
      const auto component = static_cast<Component>(i);
      const bool vision = component == Component::vision_tower || component == Component::projector;
      (vision ? out_.vision : out_.text) += sums_[i];
      out_.all += sums_[i];
    }
    const Amount& table = sums_[index_of(Component::embedding)];
    const Amount& head = sums_[index_of(Component::lm_head)];
    const Amount& routed = sums_[index_of(Component::routed_experts)];
    out_.active_with_embedding = out_.text.active - table.active + table.parameters;
    out_.active_without_embedding =
        out_.active_with_embedding - (config_.tie_word_embeddings ? 0 : table.parameters);
    out_.routed_bytes = routed.bytes;
    out_.trunk_bytes = out_.text.bytes - routed.bytes;
    out_.trunk_bytes_without_tables = out_.trunk_bytes - table.bytes - head.bytes;
    out_.trunk_bytes_read_per_token =
        out_.trunk_bytes - (config_.tie_word_embeddings ? 0 : table.bytes) + embedding_row_bytes_;
    const std::uint64_t experts = config_.moe_layers() * config_.num_experts;
    if (experts == 0) return;
    out_.expert_bytes = routed.bytes / experts;
    out_.expert_bytes_read_per_token =
        out_.expert_bytes * config_.num_experts_per_token * config_.moe_layers();
  }

  void finish_groups() {
    std::map<std::pair<Ffn, LayerKind>, LayerGroup> groups;  // dense first, KDA before MLA
    for (std::size_t l = 0; l < out_.layers.size(); ++l) {
      const LayerAccount& layer = out_.layers[l];
      LayerGroup& group = groups[{layer.ffn, layer.kind}];
      group.kind = layer.kind;
      group.ffn = layer.ffn;
      ++group.layers;
      group.total += layer.total;
      if (layer.opens_block) out_.blocks.push_back({l, l});
      if (!out_.blocks.empty()) out_.blocks.back().last = l;
    }
    for (auto& [key, group] : groups) {
      group.per_layer = group.total.parameters / group.layers;
      out_.groups.push_back(group);
    }
  }

  void finish_sequence() {
    SequenceAccount& s = out_.sequence;
    const std::uint64_t kda = config_.kda_layers(), mla = config_.mla_layers();
    const std::uint64_t taps = config_.short_conv_kernel_size;
    s.kda_state_bytes = kda * config_.kda_inner() * config_.kda_head_dim * sizeof(float);
    s.conv_values = kda * 3 * config_.kda_inner() * (taps > 0 ? taps - 1 : 0);
    s.latent_values_per_token = mla * config_.latent_width();
    s.conv_bytes_bf16 = s.conv_values * sizeof(bf16);
    s.conv_bytes_f32 = s.conv_values * sizeof(float);
    s.latent_bytes_per_token_bf16 = s.latent_values_per_token * sizeof(bf16);
    s.latent_bytes_per_token_f32 = s.latent_values_per_token * sizeof(float);
  }

  const K3Config& config_;
  Accounting out_;
  std::array<Amount, kComponents> sums_;
  std::uint64_t embedding_row_bytes_ = 0;
};

}  // namespace

Amount& Amount::operator+=(const Amount& other) {
  tensors += other.tensors;
  parameters = checked_add(parameters, other.parameters);
  bytes = checked_add(bytes, other.bytes);
  active += other.active;
  return *this;
}

const ComponentAccount* Accounting::find(Component component) const {
  for (const ComponentAccount& c : components) {
    if (c.component == component) return &c;
  }
  return nullptr;
}

Accounting account(const K3Config& config) {
  Counter counter(config);
  for_each_tensor(config, {}, [&](const TensorId& id) {
    if (id.expert != 0) return;  // the experts of a layer are equal: all of them at the first
    const std::uint64_t copies = id.row->scope == Scope::expert ? config.num_experts : 1;
    counter.add(id, checked_product(tensor_shape(*id.row, config)), dtype_size(id.row->dtype),
                copies);
  });
  return counter.finish();
}

Accounting account(const K3Config& config, const Checkpoint& checkpoint) {
  check_tensors(config, checkpoint);
  Counter counter(config);
  // The experts of a layer together, so that the share of the chosen ones is exact.
  std::map<std::pair<const TensorRow*, std::size_t>, std::pair<TensorId, const TensorEntry*>>
      routed;
  for (const TensorEntry& entry : checkpoint.tensors()) {
    const auto id = identify(config, checkpoint.root(), entry.name);
    if (!id) continue;
    if (id->row->scope == Scope::expert) {
      routed.try_emplace({id->row, id->layer}, *id, &entry);
    } else {
      counter.add(*id, checked_product(entry.shape), dtype_size(entry.dtype), 1);
    }
  }
  for (const auto& [key, tensor] : routed) {
    const auto& [id, entry] = tensor;
    counter.add(id, checked_product(entry->shape), dtype_size(entry->dtype), config.num_experts);
  }
  Accounting out = counter.finish();
  out.from_files = true;
  return out;
}

}  // namespace triax
