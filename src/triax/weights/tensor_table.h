// The tensor table: every fact about a tensor of a K3-shaped checkpoint, stated once.
//
// A row says the name in the file, for which layers it exists, its symbolic shape, its dtype, which
// component it counts for, what it is to optimisers, quantisers and synthesis, and which member of
// K3Weights it fills. Loading, checking, accounting, synthesis and saving are visitors of the
// table. Source: spec text-model section 6. Layers and experts count from 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/config/config.h"
#include "triax/core/dtype.h"
#include "triax/core/matrix.h"

namespace triax {

class Checkpoint;
struct TensorEntry;
struct K3Weights;

// What `{L}` and `{E}` in a row's name run over.
enum class Scope : std::uint8_t {
  global,        // once
  layer,         // {L}: decoder layers
  expert,        // {L}, {E}: routed experts of a layer
  vision,        // once, never below the root
  vision_block,  // {L}: blocks of the vision tower, never below the root
};

// What a tensor counts for in the accounting.
enum class Component : std::uint8_t {
  embedding,
  lm_head,
  kda,
  mla,
  dense_mlp,
  router,
  latent,
  shared_experts,
  routed_experts,
  depth_mix,
  norm,
  vision_tower,
  projector,
};
inline constexpr std::size_t kComponents = 13;
std::string_view component_name(Component component);  // "kda", "routed_experts", ...

// What a tensor is to an optimiser, a quantiser and to synthesis.
enum class TensorRole : std::uint8_t {
  matrix,
  embedding,
  head,
  norm,
  mix_norm,
  mix_proj,
  conv,
  a_log,
  dt_bias,
  router,
  router_bias,
  expert_packed,
  expert_scale,
  vision_matrix,
  vision_positions,
};

// Symbolic sizes; dim_value() gives the number, dim_name() what an error message calls it.
enum class Dim : std::uint8_t {
  one,
  hidden,
  vocab,
  kda_inner,  // P = KDA heads * head_dim
  kda_heads,
  kda_head_dim,
  conv_taps,
  a_log_entries,  // quirk: the file may hold more than one entry a head; see Quirk::padded
  q_lora,
  q_inner,  // MLA heads * (nope + rope)
  kv_lora,
  kv_latent,  // kv_lora + rope
  kv_inner,   // MLA heads * (nope + value)
  mla_inner,  // MLA heads * value
  dense_width,
  experts,
  latent,
  latent_packed,  // latent / 2
  latent_groups,  // latent / 32
  expert_width,
  expert_width_packed,
  expert_width_groups,
  shared_width,
  vision_hidden,
  vision_qkv,       // 3 * qkv_hidden
  vision_attended,  // qkv_hidden
  vision_width,
  vision_channels,  // 3
  vision_patch,
  vision_rows,
  vision_columns,
  vision_merged,  // vision_hidden * merge height * merge width
  vision_text,
};
std::size_t dim_value(Dim dim, const K3Config& config);
std::string_view dim_name(Dim dim);

// What a file may do differently from the row.
enum class Quirk : std::uint8_t {
  none,
  wide,    // a trunk tensor: BF16 or F32, whichever the row says
  padded,  // as wide; and the file may hold more entries than heads, the rest is padding
  e8m0,    // U8 or F8_E8M0: the same byte
};

// What the trunk may be held in (ADR 0009). `int8`: codes and scales instead of the stored numbers,
// made at load or by `triax pack`, if the columns are a multiple of the group of 32. Those are the
// large products, nearly all of the bytes that a token reads of the trunk. The others stay as they
// are stored: the embedding (one row a token), routers, vectors, and the matrices that are small or
// read another way: f_a, f_b, g_a, g_b (rank head_dim, 128 in the release), b_proj (a row a head),
// kv_b_proj (the absorbed form of MLA reads it head by head in float32).
enum class Packing : std::uint8_t { stored, int8 };

// What changes a tensor in training (spec: training; train/optimizer.h). Muon
// orthogonalises the update of a matrix, or of each of its blocks of rows, alone.
enum class Update : std::uint8_t {
  none,            // no optimiser: the router's bias (quantile balancing), scales, vision
  adamw,           // AdamW with weight decay
  adamw_no_decay,  // vectors, and the queries of depth mixes
  muon,            // Muon, the whole matrix; of routed experts each matrix of each expert
  muon_heads,      // a block for each head
  muon_key_value,  // each head's key rows and value rows apart
};
std::string_view update_name(Update update);

// How synthesis fills a tensor (synth.h). `scale` is the standard deviation, or for `by_columns`
// and expert tensors the gain over sqrt(inputs of an output).
struct Init {
  enum class Kind : std::uint8_t { normal, normal_by_columns, uniform, mxfp4 } kind;
  double a = 0;  // mean, or low end
  double b = 0;  // standard deviation, gain, or high end
};
Init init_of(TensorRole role);

// A member of K3Weights, as a function of the layer. Empty for experts and vision.
struct Slot {
  MatrixView& (*matrix)(K3Weights&, std::size_t layer) = nullptr;
  std::vector<float>& (*vector)(K3Weights&, std::size_t layer) = nullptr;
};

struct TensorRow {
  std::string_view name;  // below the root, with {L} and {E}
  Scope scope;
  bool (*exists)(const K3Config&, std::size_t layer);
  std::uint8_t rank;
  std::array<Dim, 4> dims;
  DType dtype;
  Quirk quirk;
  Component component;
  TensorRole role;
  Packing packing;
  Update update;
  Slot slot;
};

// In the order in which a checkpoint is written: embedding, layers, what follows the layers,
// routed experts, vision.
std::span<const TensorRow> tensor_table();

// One tensor of one model.
struct TensorId {
  const TensorRow* row = nullptr;
  std::size_t layer = 0;  // or block of the vision tower
  std::size_t expert = 0;
  bool scales = false;  // the scales of a row that is 8-bit in this file: NAME_scale
};

bool is_vision(const TensorRow& row);
std::string tensor_name(const TensorId& id, std::string_view root);
// The shape by the configuration alone (padded rows: as assumed without a file).
std::vector<std::size_t> tensor_shape(const TensorRow& row, const K3Config& config);
// The same of any tensor: scales of an 8-bit matrix are [rows, columns / 32].
std::vector<std::size_t> tensor_shape(const TensorId& id, const K3Config& config);
// May this matrix of this model be 8-bit?
bool packs_int8(const TensorRow& row, const K3Config& config);
// Weights that `elements` stored elements stand for: two a packed byte, none for scales.
std::uint64_t parameters_of(const TensorId& id, std::uint64_t elements);

// Calls visit(TensorId) for every tensor of the model in table order. `text` and `vision` choose.
struct Parts {
  bool text = true;
  bool vision = true;
};
template <class Visit>
void for_each_tensor(const K3Config& config, Parts parts, Visit&& visit);

// The tensor of that full name, if the model has one. `root` as Checkpoint::root().
std::optional<TensorId> identify(const K3Config& config, std::string_view root,
                                 std::string_view name);

// Checks one tensor's dtype and shape. Throws Error naming the tensor, expected and found.
void check_tensor(const K3Config& config, const TensorId& id, const TensorEntry& entry);

// Checks the whole folder: every text tensor is there with the right shape and dtype, an 8-bit
// matrix with its scales, vision is there entirely or not at all, and nothing is there that no row
// knows (layers past num_hidden_layers and rotary_emb.inv_freq are ignored). Throws Error naming
// the tensor. Reads headers only.
void check_tensors(const K3Config& config, const Checkpoint& checkpoint);

// True when the folder holds vision tensors of this configuration.
bool has_vision_tensors(const K3Config& config, const Checkpoint& checkpoint);

// ---- implementation
// ------------------------------------------------------------------------------

namespace detail {
// The instances of a scope: 1, layers, or blocks.
std::size_t scope_instances(Scope scope, const K3Config& config);
}  // namespace detail

template <class Visit>
void for_each_tensor(const K3Config& config, Parts parts, Visit&& visit) {
  const std::span<const TensorRow> table = tensor_table();
  for (std::size_t begin = 0, end = 0; begin < table.size(); begin = end) {
    const Scope scope = table[begin].scope;
    while (end < table.size() && table[end].scope == scope) ++end;
    if (is_vision(table[begin]) ? !parts.vision : !parts.text) continue;
    const std::size_t instances = detail::scope_instances(scope, config);
    for (std::size_t layer = 0; layer < instances; ++layer) {
      const bool routed = scope == Scope::expert && table[begin].exists(config, layer);
      const std::size_t copies = scope != Scope::expert ? 1 : routed ? config.num_experts : 0;
      for (std::size_t expert = 0; expert < copies; ++expert) {
        for (std::size_t r = begin; r < end; ++r) {
          if (table[r].exists(config, layer)) visit(TensorId{&table[r], layer, expert});
        }
      }
    }
  }
}

}  // namespace triax
