// config.json of a K3-shaped model, validated, and what follows from it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triax {

enum class LayerKind : std::uint8_t { kda, mla };
enum class Ffn : std::uint8_t { dense, moe };

// The released vision tower's sizes, as far as its tensors need them.
struct VisionConfig {
  std::size_t hidden = 0;        // vt_hidden_size
  std::size_t layers = 0;        // vt_num_hidden_layers
  std::size_t heads = 0;         // vt_num_attention_heads
  std::size_t qkv_hidden = 0;    // qkv_hidden_size: width of q, of k and of v
  std::size_t intermediate = 0;  // vt_intermediate_size
  std::size_t patch_size = 0;
  std::size_t pos_emb_height = 0;
  std::size_t pos_emb_width = 0;
  std::size_t merge_height = 0;  // merge_kernel_size
  std::size_t merge_width = 0;
  std::size_t text_hidden = 0;  // text_hidden_size
};

// Field names follow config.json; spec: text model, section 1.1 (every key and its other values).
// Layers count from 0.
struct K3Config {
  std::size_t hidden_size = 0;
  std::size_t num_hidden_layers = 0;
  std::size_t vocab_size = 0;
  float rms_norm_eps = 0;
  bool tie_word_embeddings = false;
  std::vector<LayerKind> layer_kinds;   // [num_hidden_layers]
  std::size_t attn_res_block_size = 0;  // 0: ordinary residuals, no mix tensors

  // MLA. All 0 when no layer is MLA.
  std::size_t num_attention_heads = 0;
  std::size_t q_lora_rank = 0;  // 0: one q_proj, no norm
  std::size_t kv_lora_rank = 0;
  std::size_t qk_nope_head_dim = 0;
  std::size_t qk_rope_head_dim = 0;
  std::size_t v_head_dim = 0;
  bool mla_use_output_gate = true;

  // KDA (linear_attn_config). All 0 when no layer is KDA.
  std::size_t kda_num_heads = 0;
  std::size_t kda_head_dim = 0;  // K = V
  std::size_t short_conv_kernel_size = 0;
  bool use_full_rank_gate = true;         // false: g_b_proj(g_a_proj(x)), rank kda_head_dim
  std::optional<float> gate_lower_bound;  // none: Kimi-Linear's softplus gate

  // Feed-forward.
  std::size_t intermediate_size = 0;  // dense layers
  std::size_t num_experts = 0;        // 0: every layer dense
  std::size_t num_experts_per_token = 0;
  std::size_t moe_intermediate_size = 0;
  std::size_t num_shared_experts = 0;
  std::size_t routed_expert_hidden_size = 0;  // width of z; hidden_size when there is no latent
  bool has_latent = false;                    // latent projections and norm exist
  bool latent_moe_use_norm = false;
  std::size_t first_k_dense_replace = 0;
  std::size_t moe_layer_freq = 1;
  bool moe_renormalize = true;
  float routed_scaling_factor = 1.0f;

  bool act_situ = true;  // hidden_act "situ"; false: "silu"
  float activation_situ_beta = 4.0f;
  float activation_situ_linear_beta = 0.0f;  // 0: the up branch is not capped (null in the file)

  std::optional<VisionConfig> vision;
  std::vector<std::int32_t> eos_token_ids;
  std::optional<std::int32_t> bos_token_id, pad_token_id;
  std::size_t num_nextn_predict_layers = 0;  // ignored extra layers; the reader says so in one line

  static constexpr float kLoraNormEps = 1e-6f;  // q_a_layernorm, kv_a_layernorm: not rms_norm_eps
  static constexpr float kL2Eps = 1e-6f;        // added to the sum of squares of q and k

  LayerKind kind(std::size_t layer) const { return layer_kinds[layer]; }
  bool is_kda(std::size_t layer) const { return layer_kinds[layer] == LayerKind::kda; }
  Ffn ffn(std::size_t layer) const {
    const bool moe =
        num_experts > 0 && layer >= first_k_dense_replace && layer % moe_layer_freq == 0;
    return moe ? Ffn::moe : Ffn::dense;
  }
  bool uses_attn_res() const { return attn_res_block_size > 0; }
  // Does the running sum get stored before this layer's attention?
  bool opens_block(std::size_t layer) const {
    return uses_attn_res() && layer % attn_res_block_size == 0;
  }
  std::size_t blocks() const;  // stored sums at the end of a pass
  std::size_t kda_inner() const { return kda_num_heads * kda_head_dim; }
  std::size_t q_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  std::size_t latent_width() const { return kv_lora_rank + qk_rope_head_dim; }  // cache row
  std::size_t shared_intermediate() const { return num_shared_experts * moe_intermediate_size; }
  std::size_t kda_layers() const;
  std::size_t mla_layers() const;
  std::size_t moe_layers() const;
  // A_log entries to assume when only the configuration is known: heads padded to head_dim.
  std::size_t assumed_a_log_entries() const;

  // `text` is the JSON; `where` names it in messages. Throws Error naming the field.
  static K3Config parse(std::string_view text, std::string_view where);
  // A config.json, or a folder that holds one.
  static K3Config load(const std::filesystem::path& path);
};

}  // namespace triax
