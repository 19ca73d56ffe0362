// The layout of trainable numbers, and filling it from a checkpoint.
#include "triax/train/parameters.h"

#include <cstring>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/checked.h"
#include "triax/core/mxfp4.h"

namespace triax::train {
namespace {

constexpr std::size_t kAlign = 16;  // numbers: a cache line of float32
constexpr std::string_view kPacked = "_packed";

bool is_expert(const TensorRow& row) {
  return row.role == TensorRole::expert_packed;
}

}  // namespace

ParameterLayout::ParameterLayout(const K3Config& config)
    : config_(config), first_expert_(config.num_hidden_layers) {
  names_.layers.resize(config.num_hidden_layers);
  for_each_tensor(config_, {true, false}, [&](const TensorId& id) {
    const TensorRow& row = *id.row;
    if (row.role == TensorRole::expert_scale) return;
    Tensor t{id, tensor_name(id, ""), tensor_shape(row, config_), size_, 0};
    if (is_expert(row)) {
      t.name.resize(t.name.size() - kPacked.size());
      t.shape[1] *= 2;  // two numbers a byte
      if (id.expert == 0 && first_expert_[id.layer] == 0) first_expert_[id.layer] = tensors_.size();
    }
    t.size = checked_product(t.shape);
    size_ = checked_add(size_, (t.size + kAlign - 1) / kAlign * kAlign);
    if (row.slot.matrix != nullptr) by_name_[&row.slot.matrix(names_, id.layer)] = tensors_.size();
    if (row.slot.vector != nullptr) by_name_[&row.slot.vector(names_, id.layer)] = tensors_.size();
    tensors_.push_back(std::move(t));
  });
}

const ParameterLayout::Tensor& ParameterLayout::of(const void* name) const {
  const auto at = by_name_.find(name);
  TRIAX_CHECK(at != by_name_.end(), "a tensor of this configuration");
  return tensors_[at->second];
}

const ParameterLayout::Tensor& ParameterLayout::expert(std::size_t layer, std::size_t expert,
                                                       std::size_t which) const {
  TRIAX_CHECK(config_.ffn(layer) == Ffn::moe && expert < config_.num_experts && which < 3);
  return tensors_[first_expert_[layer] + 3 * expert + which];
}

namespace {

// Elements of the file's tensor, at most out.size() of them; a file may hold padding behind.
template <class F>
void widen(const TensorEntry& entry, std::span<const std::byte> bytes, std::span<F> out) {
  const std::size_t n = std::min(out.size(), bytes.size() / dtype_size(entry.dtype));
  for (std::size_t i = 0; i < n; ++i) {
    if (entry.dtype == DType::F32) {
      float value;
      std::memcpy(&value, bytes.data() + 4 * i, sizeof value);
      out[i] = value;
    } else {
      bf16 value;
      std::memcpy(&value, bytes.data() + 2 * i, sizeof value);
      out[i] = to_float(value);
    }
  }
}

const TensorEntry& entry_of(const Checkpoint& checkpoint, const std::string& name) {
  const TensorEntry* entry = checkpoint.find(name);
  TRIAX_CHECK(entry != nullptr, "check_tensors() has seen it");
  return *entry;
}

template <class F>
void decode(const Checkpoint& checkpoint, const std::string& packed, Mat<F> out) {
  const std::string scale = packed.substr(0, packed.size() - kPacked.size()) + "_scale";
  const auto bytes = [&](const std::string& name) {
    return reinterpret_cast<const std::uint8_t*>(
        checkpoint.data(entry_of(checkpoint, name)).data());
  };
  const Mxfp4View view{bytes(packed), bytes(scale), out.shape[0], out.shape[1]};
  std::vector<float> row(view.cols);
  for (std::size_t r = 0; r < view.rows; ++r) {
    mxfp4_decode_row(view, r, row);
    std::copy(row.begin(), row.end(), out[r].data);
  }
}

}  // namespace

template <class F>
void load_parameters(const Checkpoint& checkpoint, Parameters<F>& out) {
  check_tensors(out.layout().config(), checkpoint);
  for (const ParameterLayout::Tensor& t : out.layout().tensors()) {
    const std::string name = tensor_name(t.id, checkpoint.root());
    if (is_expert(*t.id.row)) {
      decode(checkpoint, name, out.as_matrix(t));
      continue;
    }
    const TensorEntry& entry = entry_of(checkpoint, name);
    if (entry.dtype != DType::F32 && entry.dtype != DType::BF16) {
      fail("{}: stored as {}; training starts from BF16 or F32, not from a packed trunk", name,
           dtype_name(entry.dtype));
    }
    widen(entry, checkpoint.data(entry), out[t]);
  }
}

template void load_parameters<float>(const Checkpoint&, Parameters<float>&);
template void load_parameters<double>(const Checkpoint&, Parameters<double>&);

}  // namespace triax::train
