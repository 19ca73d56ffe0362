// K3Weights::load: binds the tensors of a folder to the members that the tensor table names.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/buffer.h"
#include "triax/weights/tensor_table.h"
#include "triax/weights/weights.h"

namespace triax {
namespace {

// Widens a stored vector to float32; exact. `bytes` may lie at any address.
std::vector<float> widen(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> out(bytes.size() / dtype_size(dtype));
  if (dtype == DType::F32) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    bf16 value;
    std::memcpy(&value, bytes.data() + 2 * i, sizeof value);
    out[i] = to_float(value);
  }
  return out;
}

// The tensor where it lies, or a copy of it when its address does not suit its element type.
const std::byte* bind_bytes(const TensorEntry& entry, std::span<const std::byte> bytes,
                            K3Weights& weights) {
  const std::byte* data = bytes.data();
  if (reinterpret_cast<std::uintptr_t>(data) % dtype_size(entry.dtype) == 0) return data;
  auto copy = std::make_shared<Buffer<std::byte>>(bytes.size());
  std::memcpy(copy->data(), data, bytes.size());
  data = copy->data();
  weights.copied.push_back(std::move(copy));
  return data;
}

MatrixView bind_matrix(const TensorId& id, const TensorEntry& entry, const Checkpoint& checkpoint,
                       K3Weights& weights) {
  MatrixView out{bind_bytes(entry, checkpoint.data(entry), weights), entry.dtype, entry.shape[0],
                 entry.shape[1]};
  if (entry.dtype != DType::I8) return out;
  TensorId scales = id;
  scales.scales = true;
  const TensorEntry* found = checkpoint.find(tensor_name(scales, checkpoint.root()));
  TRIAX_CHECK(found != nullptr);
  out.scale = reinterpret_cast<const bf16*>(bind_bytes(*found, checkpoint.data(*found), weights));
  return out;
}

// A vector to be widened.
struct Binding {
  std::vector<float>* member;
  std::span<const std::byte> bytes;
  DType dtype;
};

void derive_mix(DepthMixWeights& mix) {
  mix.w.resize(mix.norm.size());
  for (std::size_t i = 0; i < mix.w.size(); ++i) mix.w[i] = mix.norm[i] * mix.proj[i];
}

// [P, 1, taps] -> [taps, P]
std::vector<float> transpose_taps(const std::vector<float>& conv, std::size_t taps) {
  const std::size_t channels = conv.size() / taps;
  std::vector<float> out(conv.size());
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t t = 0; t < taps; ++t) out[t * channels + c] = conv[c * taps + t];
  }
  return out;
}

void derive_kda(const K3Config& config, KdaWeights& kda) {
  kda.A.resize(config.kda_num_heads);
  for (std::size_t h = 0; h < kda.A.size(); ++h) {
    kda.A[h] = static_cast<float>(std::exp(static_cast<double>(kda.A_log[h])));
  }
  kda.q_conv_t = transpose_taps(kda.q_conv1d, config.short_conv_kernel_size);
  kda.k_conv_t = transpose_taps(kda.k_conv1d, config.short_conv_kernel_size);
  kda.v_conv_t = transpose_taps(kda.v_conv1d, config.short_conv_kernel_size);
}

}  // namespace

K3Weights K3Weights::load(const K3Config& config, std::shared_ptr<const Checkpoint> checkpoint) {
  check_tensors(config, *checkpoint);
  K3Weights out;
  out.layers.resize(config.num_hidden_layers);
  std::vector<Binding> vectors;
  for_each_tensor(config, {true, false}, [&](const TensorId& id) {
    const Slot& slot = id.row->slot;
    if (slot.matrix == nullptr && slot.vector == nullptr) return;
    const TensorEntry* entry = checkpoint->find(tensor_name(id, checkpoint->root()));
    TRIAX_CHECK(entry != nullptr);
    if (slot.matrix != nullptr) {
      slot.matrix(out, id.layer) = bind_matrix(id, *entry, *checkpoint, out);
      return;
    }
    const std::span<const std::byte> bytes = checkpoint->data(*entry);
    // Ask for all vectors before the first is read: exactly their pages, many at a time, instead of
    // a fault with the disk's whole read-ahead around each.
    advise(bytes, Access::will_need);
    vectors.push_back({&slot.vector(out, id.layer), bytes, entry->dtype});
  });
  for (const Binding& v : vectors) *v.member = widen(v.bytes, v.dtype);
  for (std::size_t l = 0; l < out.layers.size(); ++l) {
    LayerWeights& layer = out.layers[l];
    layer.kind = config.kind(l);
    layer.ffn = config.ffn(l);
    derive_mix(layer.self_attention_res);
    derive_mix(layer.mlp_res);
    if (layer.kind == LayerKind::kda) derive_kda(config, layer.kda);
  }
  derive_mix(out.output_attn_res);
  if (config.tie_word_embeddings) out.lm_head = out.embed_tokens;
  out.checkpoint = std::move(checkpoint);
  return out;
}

}  // namespace triax
