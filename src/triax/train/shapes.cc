// Named shapes: what they share with K3, and their sizes.
#include "triax/train/shapes.h"

#include <nlohmann/json.hpp>

#include "triax/checkpoint/file.h"
#include "triax/core/error.h"

namespace triax::train {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;

// K3's switches and constants, sizes of "mini".
constexpr const char* kBase = R"({
 "architectures": ["KimiK3ForConditionalGeneration"],
 "model_type": "kimi_k3",
 "dtype": "bfloat16",
 "tie_word_embeddings": false,
 "text_config": {
  "architectures": ["KimiLinearForCausalLM"],
  "model_type": "kimi_linear",
  "dtype": "bfloat16",
  "vocab_size": 4096,
  "hidden_size": 192,
  "num_hidden_layers": 9,
  "intermediate_size": 512,
  "rms_norm_eps": 1e-05,
  "tie_word_embeddings": false,
  "max_position_embeddings": 1048576,
  "attn_res_block_size": 3,
  "linear_attn_config": {
   "kda_layers": [1, 2, 3, 5, 6, 7],
   "full_attn_layers": [4, 8, 9],
   "num_heads": 3,
   "head_dim": 64,
   "short_conv_kernel_size": 4,
   "gate_lower_bound": -5.0,
   "use_full_rank_gate": true
  },
  "num_attention_heads": 3,
  "num_key_value_heads": 3,
  "q_lora_rank": 64,
  "kv_lora_rank": 64,
  "qk_nope_head_dim": 64,
  "qk_rope_head_dim": 32,
  "v_head_dim": 64,
  "mla_use_nope": true,
  "mla_use_output_gate": true,
  "hidden_act": "situ",
  "activation_situ_beta": 4.0,
  "activation_situ_linear_beta": 25.0,
  "num_experts": 48,
  "num_experts_per_token": 6,
  "num_shared_experts": 2,
  "moe_intermediate_size": 128,
  "routed_expert_hidden_size": 96,
  "latent_moe_use_norm": true,
  "first_k_dense_replace": 1,
  "moe_layer_freq": 1,
  "moe_renormalize": true,
  "moe_router_activation_func": "sigmoid",
  "routed_scaling_factor": 1.0,
  "num_expert_group": 1,
  "topk_group": 1,
  "topk_method": "noaux_tc",
  "use_grouped_topk": true,
  "num_nextn_predict_layers": 0,
  "quantization_config": {
   "config_groups": {"group_0": {
    "format": "mxfp4-pack-quantized",
    "input_activations": null,
    "output_activations": null,
    "targets": ["Linear"],
    "weights": {"actorder": null, "block_structure": null, "dynamic": false, "group_size": 32,
     "num_bits": 4, "observer": "minmax", "observer_kwargs": {}, "scale_dtype": "torch.uint8",
     "strategy": "group", "symmetric": true, "type": "float", "zp_dtype": null}}},
   "format": "mxfp4-pack-quantized",
   "global_compression_ratio": null,
   "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*",
    "re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "re:.*lm_head.*", "re:.*vision_tower.*",
    "re:.*mm_projector.*"],
   "kv_cache_scheme": null,
   "quant_method": "compressed-tensors",
   "quantization_status": "compressed"
  }
 }
})";

struct Named {
  std::string_view name, changes;
};
constexpr Named kShapes[] = {
    {"mini", "{}"},
    {"nano", R"({"hidden_size": 64, "num_hidden_layers": 5, "intermediate_size": 192,
      "linear_attn_config": {"num_heads": 2, "head_dim": 32}, "num_attention_heads": 2,
      "num_key_value_heads": 2, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32,
      "qk_rope_head_dim": 16, "v_head_dim": 32, "num_experts": 8, "num_experts_per_token": 2,
      "moe_intermediate_size": 32, "routed_expert_hidden_size": 32})"},
    {"small", R"({"hidden_size": 256, "num_hidden_layers": 13, "intermediate_size": 768,
      "linear_attn_config": {"num_heads": 4, "head_dim": 64}, "num_attention_heads": 4,
      "num_key_value_heads": 4, "q_lora_rank": 96, "num_experts": 64,
      "routed_expert_hidden_size": 128})"},
};

// Three KDA layers, one MLA, and so on; the last one is MLA. Counted from 1, as in the file.
void set_pattern(ordered_json& text) {
  const std::size_t layers = text["num_hidden_layers"].get<std::size_t>();
  ordered_json kda = ordered_json::array(), mla = ordered_json::array();
  for (std::size_t l = 1; l <= layers; ++l) {
    (l % 4 == 0 || l == layers ? mla : kda).push_back(l);
  }
  text["linear_attn_config"]["kda_layers"] = kda;
  text["linear_attn_config"]["full_attn_layers"] = mla;
}

void check_known(const ordered_json& text, const ordered_json& changes, const std::string& shape,
                 const std::string& path) {
  for (const auto& [key, value] : changes.items()) {
    if (!text.contains(key)) {
      fail(
          "model.{}{}: the shape {} has no such field; fields are those of text_config in "
          "config.json",
          path, key, in_quotes(shape));
    }
    if (value.is_object() && text[key].is_object()) {
      check_known(text[key], value, shape, path + key + ".");
    }
  }
}

void put_on_top(ordered_json& text, const ordered_json& changes) {
  const bool listed = changes.contains("linear_attn_config") &&
                      changes["linear_attn_config"].contains("kda_layers");
  text.update(changes, true);
  if (changes.contains("num_hidden_layers") && !listed) set_pattern(text);
}

ordered_json read_shape(const std::string& shape) {
  for (const Named& named : kShapes) {
    if (named.name != shape) continue;
    ordered_json out = ordered_json::parse(kBase);
    put_on_top(out["text_config"], ordered_json::parse(named.changes));
    return out;
  }
  std::filesystem::path path = shape;
  if (std::filesystem::is_directory(path)) path /= "config.json";
  if (!std::filesystem::exists(path)) {
    fail("model.shape: there is no shape {}; give nano, mini, small, or the path of a config.json",
         in_quotes(shape));
  }
  const std::string text = read_whole(path, kMaxConfigBytes);
  ordered_json out;
  try {
    out = ordered_json::parse(text);
  } catch (const ordered_json::exception& error) {
    fail("{}: not JSON: {}", path.string(), error.what());
  }
  if (!out.is_object()) fail("{}: expected an object", path.string());
  return out;
}

}  // namespace

std::string model_config_text(const std::string& shape, std::string_view changes_text,
                              const VocabularyIds& vocabulary) {
  ordered_json out = read_shape(shape);
  // A configuration without text_config is one itself (Kimi Linear's form).
  ordered_json& text = out.contains("text_config") ? out["text_config"] : out;
  const ordered_json changes = ordered_json::parse(changes_text);
  check_known(text, changes, shape, "");
  put_on_top(text, changes);
  text["vocab_size"] = vocabulary.size;
  for (ordered_json* level : {&out, &text}) {
    for (const auto& [key, id] :
         {std::pair{"bos_token_id", vocabulary.bos}, std::pair{"eos_token_id", vocabulary.eos},
          std::pair{"pad_token_id", vocabulary.pad}}) {
      if (id.has_value())
        (*level)[key] = *id;
      else
        level->erase(key);
    }
  }
  // A model trained from scratch has no vision tower.
  out.erase("vision_config");
  return out.dump(1) + "\n";
}

}  // namespace triax::train
