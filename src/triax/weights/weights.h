// The weights of a K3-shaped model: the whole architecture at a glance.
//
// Matrices are views into the mapped shards, [out, in], used where they lie, until place_trunk
// (trunk.h) has moved them to memory of their own or made them 8-bit. Vectors are small and are
// widened to float32 (exact). Which tensor of the checkpoint fills which member, with which
// shape and dtype, stands in the tensor table (tensor_table.h). Layers count from 0.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "triax/config/config.h"
#include "triax/core/buffer.h"
#include "triax/core/huge_buffer.h"
#include "triax/core/matrix.h"

namespace triax {

class Checkpoint;

// One depth mix. `w` = norm.weight * proj.weight[0], elementwise, float32: [hidden].
struct DepthMixWeights {
  std::vector<float> norm;  // [hidden]
  std::vector<float> proj;  // [1, hidden]
  std::vector<float> w;     // derived
};

// P = heads * head_dim.
struct KdaWeights {
  MatrixView q_proj, k_proj, v_proj;                // [P, hidden]
  std::vector<float> q_conv1d, k_conv1d, v_conv1d;  // [P, 1, taps] as stored
  MatrixView f_a_proj;                              // [head_dim, hidden]
  MatrixView f_b_proj;                              // [P, head_dim]
  std::vector<float> A_log;                         // [>= heads]; entries past `heads` are padding
  std::vector<float> dt_bias;                       // [P]
  MatrixView b_proj;                                // [heads, hidden]
  MatrixView g_proj;                                // [P, hidden] (use_full_rank_gate)
  MatrixView g_a_proj, g_b_proj;                    // [head_dim, hidden], [P, head_dim] (otherwise)
  std::vector<float> o_norm;                        // [head_dim]
  MatrixView o_proj;                                // [hidden, P]
  // derived
  std::vector<float> A;                             // [heads] = exp(A_log)
  std::vector<float> q_conv_t, k_conv_t, v_conv_t;  // [taps, P]
};

struct MlaWeights {
  MatrixView q_a_proj;               // [q_lora_rank, hidden]
  std::vector<float> q_a_layernorm;  // [q_lora_rank], eps 1e-6
  MatrixView q_b_proj;               // [heads * (nope + rope), q_lora_rank]
  MatrixView q_proj;                 // [heads * (nope + rope), hidden] when there is no q_lora_rank
  MatrixView kv_a_proj_with_mqa;     // [kv_lora_rank + rope, hidden]
  std::vector<float> kv_a_layernorm;  // [kv_lora_rank], eps 1e-6
  MatrixView kv_b_proj;               // [heads * (nope + value), kv_lora_rank]
  MatrixView g_proj;                  // [heads * value, hidden]; absent without mla_use_output_gate
  MatrixView o_proj;                  // [hidden, heads * value]
};

// gate/up/down of a dense layer, or of the shared experts together.
struct MlpWeights {
  MatrixView gate_proj, up_proj;  // [width, hidden]
  MatrixView down_proj;           // [hidden, width]
};

// The routed experts themselves come from an ExpertStore (experts/).
struct MoeWeights {
  MatrixView gate;                             // [experts, hidden]: the router
  std::vector<float> e_score_correction_bias;  // [experts]: chooses, never weighs
  MatrixView routed_expert_down_proj;          // [latent, hidden]
  std::vector<float> routed_expert_norm;       // [latent]
  MatrixView routed_expert_up_proj;            // [hidden, latent]
  MlpWeights shared_experts;                   // width num_shared_experts * moe_intermediate_size
};

struct LayerWeights {
  LayerKind kind = LayerKind::kda;
  Ffn ffn = Ffn::moe;
  DepthMixWeights self_attention_res, mlp_res;
  std::vector<float> input_layernorm, post_attention_layernorm;  // [hidden]
  KdaWeights kda;                                                // filled when kind is kda
  MlaWeights mla;                                                // filled when kind is mla
  MlpWeights mlp;                                                // filled when ffn is dense
  MoeWeights moe;                                                // filled when ffn is moe
};

struct K3Weights {
  MatrixView embed_tokens;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  DepthMixWeights output_attn_res;
  std::vector<float> norm;                       // [hidden]
  MatrixView lm_head;                            // [vocab, hidden]; the embedding when tied
  std::shared_ptr<const Checkpoint> checkpoint;  // keeps the mapping alive
  // Matrices whose data lie misaligned in their shard, copied; shared, since copies of this struct
  // hold the same views.
  std::vector<std::shared_ptr<const Buffer<std::byte>>> copied;
  // Memory of matrices that place_trunk placed, shared likewise.
  std::vector<std::shared_ptr<const HugeBuffer>> regions;

  // Binds every text tensor of `checkpoint` by the tensor table and computes the derived members.
  // Throws Error naming the tensor, with expected and actual shape or dtype, before anything is
  // used.
  static K3Weights load(const K3Config& config, std::shared_ptr<const Checkpoint> checkpoint);
};

}  // namespace triax
