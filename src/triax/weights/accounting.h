// What a model consists of: its schedule, the parameters and bytes of every component, what a token
// uses, and what a sequence holds. Derived from the tensor table; nothing is written down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "triax/config/config.h"
#include "triax/weights/tensor_table.h"

namespace triax {

// Scales count as no parameters; A_log counts with the entries it is stored with.
struct Amount {
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  std::uint64_t active = 0;  // parameters that one token uses; of an embedding table one row

  Amount& operator+=(const Amount& other);
};

// All of a component: 69 KDA modules, 82,432 routed experts, ...
struct ComponentAccount {
  Component component{};
  std::uint64_t instances = 0;
  std::uint64_t per_instance = 0;  // parameters; the mean, rounded down, where files differ
  Amount total;
};

// One decoder layer.
struct LayerAccount {
  LayerKind kind{};
  Ffn ffn{};
  bool opens_block = false;
  Amount total;
  Amount moe;  // router, latent projections, shared and routed experts
};

// Layers of one kind together.
struct LayerGroup {
  LayerKind kind{};
  Ffn ffn{};
  std::uint64_t layers = 0;
  std::uint64_t per_layer = 0;  // parameters
  Amount total;
};

// One block of Attention Residuals: layers first..last share it, its sum is stored before `first`.
struct DepthBlock {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

// What one sequence holds. A value of the windows and of the latent takes 2 bytes in bf16 mode,
// 4 bytes in f32 mode; the KDA state is float32 in both.
struct SequenceAccount {
  std::uint64_t kda_state_bytes = 0;
  std::uint64_t conv_values = 0;  // last taps - 1 inputs of three convolutions
  std::uint64_t conv_bytes_bf16 = 0;
  std::uint64_t conv_bytes_f32 = 0;
  std::uint64_t latent_values_per_token = 0;  // kv_lora_rank + qk_rope_head_dim, each MLA layer
  std::uint64_t latent_bytes_per_token_bf16 = 0;
  std::uint64_t latent_bytes_per_token_f32 = 0;
};

struct Accounting {
  bool from_files = false;  // counted in a folder, not assumed from the configuration
  bool tied_head = false;   // the embedding table is the output head
  std::vector<LayerAccount> layers;
  std::vector<LayerGroup> groups;
  std::vector<DepthBlock> blocks;
  std::vector<ComponentAccount> components;  // those that the model has, in the order of Component

  Amount text;    // the language model
  Amount vision;  // tower and projector
  Amount all;
  std::uint64_t active_with_embedding = 0;       // the whole table counted
  std::uint64_t active_without_embedding = 0;    // (a tied table is the head, and counted)
  std::uint64_t trunk_bytes = 0;                 // text without routed experts
  std::uint64_t trunk_bytes_without_tables = 0;  // ... and without embedding table and head
  std::uint64_t trunk_scale_bytes = 0;           // of them: scales of 8-bit matrices
  std::uint64_t routed_bytes = 0;
  std::uint64_t routed_scale_bytes = 0;
  std::uint64_t expert_bytes = 0;                 // one routed expert, six tensors
  std::uint64_t trunk_bytes_read_per_token = 0;   // trunk, of the embedding table one row
  std::uint64_t expert_bytes_read_per_token = 0;  // top-k experts of every layer that has them
  SequenceAccount sequence;

  const ComponentAccount* find(Component component) const;
  std::string format_text() const;  // for people, lines
  std::string to_json() const;      // one object, plain integers
};

// By the configuration alone: the released layout, vision included if the configuration has it.
Accounting account(const K3Config& config);
// What the folder holds, checked against the configuration (check_tensors).
Accounting account(const K3Config& config, const Checkpoint& checkpoint);

}  // namespace triax
