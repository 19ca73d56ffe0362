#include "triax/experts/mapped_experts.h"

#include <array>
#include <cstring>

#include "triax/core/checked.h"
#include "triax/core/mxfp4.h"
#include "triax/weights/tensor_table.h"

namespace triax {
namespace {

constexpr std::size_t kCheckAtOpen = std::size_t{2} << 30;  // bytes of scales
constexpr std::array<const char*, 6> kParts{"w1.weight_packed", "w1.weight_scale",
                                            "w2.weight_packed", "w2.weight_scale",
                                            "w3.weight_packed", "w3.weight_scale"};

std::string part_name(std::string_view root, std::size_t layer, std::size_t expert,
                      const char* part) {
  return fmt::format("{}model.layers.{}.block_sparse_moe.experts.{}.{}", root, layer, expert, part);
}

}  // namespace

ExpertTable::ExpertTable(const K3Config& c, std::shared_ptr<const Checkpoint> checkpoint)
    : checkpoint_(std::move(checkpoint)),
      experts_(c.num_experts),
      width_(c.moe_intermediate_size),
      latent_(c.routed_expert_hidden_size),
      first_(c.num_hidden_layers, kNone) {
  places_.reserve(checked_mul(c.moe_layers(), experts_));
  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) {
    if (c.ffn(l) != Ffn::moe) continue;
    first_[l] = places_.size();
    places_.resize(places_.size() + experts_);
  }
  // Shapes and dtypes are the tensor table's to know.
  for_each_tensor(c, {true, false}, [&](const TensorId& id) {
    if (id.row->scope != Scope::expert) return;
    const std::string name = tensor_name(id, checkpoint_->root());
    const TensorEntry* entry = checkpoint_->find(name);
    if (entry == nullptr) fail("{}: tensor is missing from the model folder", name);
    check_tensor(c, id, *entry);
    for (std::size_t p = 0; p < kParts.size(); ++p) {
      if (!name.ends_with(kParts[p])) continue;
      places_[index(id.layer, id.expert)][p] =
          reinterpret_cast<const std::uint8_t*>(checkpoint_->data(*entry).data());
    }
  });
}

ExpertView ExpertTable::view(std::size_t layer, std::size_t expert) const {
  TRIAX_CHECK(has_layer(layer) && expert < experts_);
  const Place& p = places_[index(layer, expert)];
  return {
      {p[0], p[1], width_, latent_}, {p[2], p[3], latent_, width_}, {p[4], p[5], width_, latent_}};
}

std::size_t ExpertTable::scale_bytes() const {
  return checked_mul(places_.size(), checked_mul(3, checked_mul(width_, latent_) / kMxfp4Group));
}

void ExpertTable::check_scales(std::size_t layer, std::size_t expert) const {
  const ExpertView e = view(layer, expert);
  const Mxfp4View* const matrices[] = {&e.w1, &e.w2, &e.w3};
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t row = 0;
    if (mxfp4_find_nan_scale(*matrices[i], row)) {
      fail("{}: row {} holds the scale byte 255 (NaN), expected 0..254; download its shard again",
           part_name(checkpoint_->root(), layer, expert, kParts[2 * i + 1]), row);
    }
  }
}

MappedExperts::MappedExperts(const K3Config& config, std::shared_ptr<const Checkpoint> checkpoint)
    : table_(config, std::move(checkpoint)) {
  checked_at_open_ = table_.scale_bytes() <= kCheckAtOpen;
  seen_ = std::vector<std::atomic<bool>>(table_.size());
  if (!checked_at_open_) return;
  for (std::size_t l = 0; l < config.num_hidden_layers; ++l) {
    for (std::size_t e = 0; table_.has_layer(l) && e < config.num_experts; ++e)
      table_.check_scales(l, e);
  }
}

void MappedExperts::fetch(std::size_t layer, std::span<const std::int32_t> ids,
                          std::span<ExpertView> views) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto expert = static_cast<std::size_t>(ids[i]);
    views[i] = table_.view(layer, expert);
    std::atomic<bool>& seen = seen_[table_.index(layer, expert)];
    if (seen.load(std::memory_order_relaxed)) continue;
    // All its pages at once, instead of one fault after the other in the middle of a product.
    for (const Mxfp4View* m : {&views[i].w1, &views[i].w2, &views[i].w3}) {
      advise(std::as_bytes(std::span(m->packed, m->rows * m->cols / 2)), Access::populate);
      advise(std::as_bytes(std::span(m->scale, m->rows * m->cols / 32)), Access::populate);
    }
    if (!checked_at_open_) table_.check_scales(layer, expert);
    seen.store(true, std::memory_order_relaxed);
  }
}

ResidentExperts::ResidentExperts(const K3Config& config,
                                 std::shared_ptr<const Checkpoint> checkpoint,
                                 const std::function<void(std::size_t, std::size_t)>& progress)
    : table_(config, std::move(checkpoint)) {
  const std::size_t weights =
      checked_mul(config.moe_intermediate_size, config.routed_expert_hidden_size);
  record_ = 3 * (weights / 2 + weights / kMxfp4Group);
  memory_ = Buffer<std::uint8_t>(checked_mul(record_, table_.size()));
  std::size_t done = 0;
  for (std::size_t l = 0; l < config.num_hidden_layers; ++l) {
    for (std::size_t e = 0; table_.has_layer(l) && e < config.num_experts; ++e) {
      table_.check_scales(l, e);
      std::uint8_t* at = memory_.data() + table_.index(l, e) * record_;
      const ExpertView view = table_.view(l, e);
      for (const Mxfp4View* m : {&view.w1, &view.w2, &view.w3}) {
        std::memcpy(at, m->packed, weights / 2);
        std::memcpy(at + weights / 2, m->scale, weights / kMxfp4Group);
        at += record_ / 3;
      }
      done += record_;
      if (progress) progress(done, memory_.size());
    }
  }
}

void ResidentExperts::fetch(std::size_t layer, std::span<const std::int32_t> ids,
                            std::span<ExpertView> views) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto expert = static_cast<std::size_t>(ids[i]);
    views[i] = table_.view(layer, expert);
    const std::uint8_t* at = memory_.data() + table_.index(layer, expert) * record_;
    for (Mxfp4View* m : {&views[i].w1, &views[i].w2, &views[i].w3}) {
      m->packed = at;
      m->scale = at + m->rows * m->cols / 2;
      at += record_ / 3;
    }
  }
}

std::unique_ptr<ExpertStore> open_mapped_experts(const K3Config& config,
                                                 std::shared_ptr<const Checkpoint> checkpoint) {
  if (config.moe_layers() == 0) return nullptr;
  return std::make_unique<MappedExperts>(config, std::move(checkpoint));
}

}  // namespace triax
