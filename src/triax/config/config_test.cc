// Every row of the configuration table, the derived sizes, and messages that name the field.
#include "triax/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/temp_folder.h"
#include "triax/core/error.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json read_json(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

json released() {
  return read_json(TRIAX_GOLDEN_DIR "/k3/config.json");
}

K3Config parse(const json& root) {
  return K3Config::parse(root.dump(), "config.json");
}

// The release with one key of text_config changed.
K3Config with(const char* key, const json& value) {
  json root = released();
  root["text_config"][key] = value;
  return parse(root);
}
K3Config with_linear(const char* key, const json& value) {
  json root = released();
  root["text_config"]["linear_attn_config"][key] = value;
  return parse(root);
}
K3Config without(const char* key) {
  json root = released();
  root["text_config"].erase(key);
  return parse(root);
}

template <class Call>
std::string message(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "(no error)";
}

TEST(Config, Release) {
  const K3Config c = parse(released());
  EXPECT_EQ(c.hidden_size, 7168u);
  EXPECT_EQ(c.num_hidden_layers, 93u);
  EXPECT_EQ(c.vocab_size, 163840u);
  EXPECT_FLOAT_EQ(c.rms_norm_eps, 1e-5f);
  EXPECT_FALSE(c.tie_word_embeddings);
  EXPECT_EQ(c.attn_res_block_size, 12u);
  EXPECT_EQ(c.num_attention_heads, 96u);
  EXPECT_EQ(c.q_lora_rank, 1536u);
  EXPECT_EQ(c.kv_lora_rank, 512u);
  EXPECT_EQ(c.qk_nope_head_dim, 128u);
  EXPECT_EQ(c.qk_rope_head_dim, 64u);
  EXPECT_EQ(c.v_head_dim, 128u);
  EXPECT_TRUE(c.mla_use_output_gate);
  EXPECT_EQ(c.kda_num_heads, 96u);
  EXPECT_EQ(c.kda_head_dim, 128u);
  EXPECT_EQ(c.short_conv_kernel_size, 4u);
  EXPECT_TRUE(c.use_full_rank_gate);
  EXPECT_EQ(c.gate_lower_bound, -5.0f);
  EXPECT_EQ(c.intermediate_size, 33792u);
  EXPECT_EQ(c.num_experts, 896u);
  EXPECT_EQ(c.num_experts_per_token, 16u);
  EXPECT_EQ(c.moe_intermediate_size, 3072u);
  EXPECT_EQ(c.num_shared_experts, 2u);
  EXPECT_TRUE(c.has_latent);
  EXPECT_EQ(c.routed_expert_hidden_size, 3584u);
  EXPECT_TRUE(c.latent_moe_use_norm);
  EXPECT_TRUE(c.moe_renormalize);
  EXPECT_EQ(c.routed_scaling_factor, 1.0f);
  EXPECT_TRUE(c.act_situ);
  EXPECT_EQ(c.activation_situ_beta, 4.0f);
  EXPECT_EQ(c.activation_situ_linear_beta, 25.0f);
  EXPECT_THAT(c.eos_token_ids, ElementsAre(163586));
  EXPECT_EQ(c.bos_token_id, 163584);
  EXPECT_EQ(c.pad_token_id, 163839);
  EXPECT_EQ(c.num_nextn_predict_layers, 0u);
}

TEST(Config, ReleaseDerived) {
  const K3Config c = parse(released());
  EXPECT_EQ(c.kda_layers(), 69u);
  EXPECT_EQ(c.mla_layers(), 24u);
  EXPECT_EQ(c.moe_layers(), 92u);
  EXPECT_TRUE(c.is_kda(0));
  EXPECT_EQ(c.kind(3), LayerKind::mla);
  EXPECT_EQ(c.kind(91), LayerKind::mla);
  EXPECT_EQ(c.kind(92), LayerKind::mla);
  EXPECT_EQ(c.kind(90), LayerKind::kda);
  EXPECT_EQ(c.ffn(0), Ffn::dense);
  EXPECT_EQ(c.ffn(1), Ffn::moe);
  EXPECT_EQ(c.blocks(), 8u);
  EXPECT_TRUE(c.opens_block(0));
  EXPECT_TRUE(c.opens_block(84));
  EXPECT_FALSE(c.opens_block(85));
  EXPECT_EQ(c.kda_inner(), 12288u);
  EXPECT_EQ(c.q_head_dim(), 192u);
  EXPECT_EQ(c.latent_width(), 576u);
  EXPECT_EQ(c.shared_intermediate(), 6144u);
  EXPECT_EQ(c.assumed_a_log_entries(), 128u);
}

TEST(Config, ReleasedVisionSection) {
  const K3Config c = parse(released());
  ASSERT_TRUE(c.vision.has_value());
  EXPECT_EQ(c.vision->hidden, 1024u);
  EXPECT_EQ(c.vision->layers, 27u);
  EXPECT_EQ(c.vision->heads, 12u);
  EXPECT_EQ(c.vision->qkv_hidden, 1536u);
  EXPECT_EQ(c.vision->intermediate, 4096u);
  EXPECT_EQ(c.vision->patch_size, 14u);
  EXPECT_EQ(c.vision->pos_emb_height, 64u);
  EXPECT_EQ(c.vision->merge_width, 2u);
  EXPECT_EQ(c.vision->text_hidden, 7168u);
  json no_vision = released();
  no_vision.erase("vision_config");
  EXPECT_FALSE(parse(no_vision).vision.has_value());
  no_vision["vision_config"] = nullptr;
  EXPECT_FALSE(parse(no_vision).vision.has_value());
}

TEST(Config, KeysAtTheTopLevel) {
  const json flat = released()["text_config"];
  const K3Config c = parse(flat);
  EXPECT_EQ(c.hidden_size, 7168u);
  EXPECT_EQ(c.moe_layers(), 92u);
  EXPECT_FALSE(c.vision.has_value());
}

TEST(Config, GoldenModels) {
  const K3Config a = K3Config::load(TRIAX_GOLDEN_DIR "/text/tiny-a");
  EXPECT_EQ(a.num_hidden_layers, 9u);
  EXPECT_EQ(a.blocks(), 3u);
  EXPECT_EQ(a.assumed_a_log_entries(), 32u);
  const K3Config b = K3Config::load(TRIAX_GOLDEN_DIR "/text/tiny-b/config.json");
  EXPECT_EQ(b.routed_scaling_factor, 1.5f);
  const K3Config c = K3Config::load(TRIAX_GOLDEN_DIR "/text/tiny-c");
  EXPECT_EQ(c.kda_num_heads, 3u);
  EXPECT_EQ(c.num_attention_heads, 5u);
  EXPECT_THAT(c.layer_kinds,
              ElementsAre(LayerKind::kda, LayerKind::mla, LayerKind::kda, LayerKind::mla));
}

// linear_attn_config: disjoint lists that cover 1..L.

TEST(ConfigRow, LinearAttnConfigMissing) {
  EXPECT_THAT(message([] { without("linear_attn_config"); }), HasSubstr("linear_attn_config"));
  EXPECT_THAT(message([] { with("linear_attn_config", 3); }), HasSubstr("linear_attn_config"));
  EXPECT_THAT(message([] { with_linear("kda_layers", nullptr); }), HasSubstr("kda_layers"));
  EXPECT_THAT(message([] { with_linear("full_attn_layers", nullptr); }),
              HasSubstr("full_attn_layers"));
}

TEST(ConfigRow, LayerListsContradict) {
  const auto lists = [](const json& kda, const json& mla) {
    json root = released();
    root["text_config"]["num_hidden_layers"] = 3;
    root["text_config"]["linear_attn_config"]["kda_layers"] = kda;
    root["text_config"]["linear_attn_config"]["full_attn_layers"] = mla;
    return parse(root);
  };
  EXPECT_EQ(lists({2, 1}, {3}).mla_layers(), 1u);
  EXPECT_THAT(message([&] { lists({1, 2}, {2, 3}); }), HasSubstr("full_attn_layers names layer 2"));
  EXPECT_THAT(message([&] { lists({1, 1}, {2, 3}); }), HasSubstr("kda_layers names layer 1"));
  EXPECT_THAT(message([&] { lists({1}, {3}); }), HasSubstr("leave out layer 2"));
  EXPECT_THAT(message([&] { lists({0, 1, 2}, {3}); }), HasSubstr("names layer 0"));
  EXPECT_THAT(message([&] { lists({1, 2}, {4}); }), HasSubstr("names layer 4"));
  EXPECT_THAT(message([&] { lists({1, -2}, {3}); }), HasSubstr("names layer -2"));
  EXPECT_THAT(message([&] { lists({1, 2.5}, {3}); }), HasSubstr("kda_layers"));
  EXPECT_THAT(message([&] { lists({1, "2"}, {3}); }), HasSubstr("kda_layers"));
  EXPECT_THAT(message([&] { lists({1, 2}, 3); }), HasSubstr("full_attn_layers"));
  EXPECT_THAT(message([&] { lists({1, 18446744073709551615ull}, {3}); }), HasSubstr("kda_layers"));
}

TEST(ConfigRow, OnlyOneKindOfLayerNeedsOnlyItsKeys) {
  json kda = released();
  json& text = kda["text_config"];
  text["num_hidden_layers"] = 2;
  text["linear_attn_config"]["kda_layers"] = {1, 2};
  text["linear_attn_config"]["full_attn_layers"] = json::array();
  for (const char* key :
       {"num_attention_heads", "num_key_value_heads", "kv_lora_rank", "qk_nope_head_dim",
        "qk_rope_head_dim", "v_head_dim", "mla_use_nope", "mla_use_output_gate", "q_lora_rank"}) {
    text.erase(key);
  }
  const K3Config a = parse(kda);
  EXPECT_EQ(a.num_attention_heads, 0u);
  EXPECT_EQ(a.latent_width(), 0u);

  json mla = released();
  mla["text_config"]["num_hidden_layers"] = 2;
  mla["text_config"]["linear_attn_config"] = {{"kda_layers", json::array()},
                                              {"full_attn_layers", {1, 2}}};
  const K3Config b = parse(mla);
  EXPECT_EQ(b.kda_num_heads, 0u);
  EXPECT_EQ(b.assumed_a_log_entries(), 0u);
}

TEST(ConfigRow, QLoraRank) {
  EXPECT_EQ(with("q_lora_rank", nullptr).q_lora_rank, 0u);
  EXPECT_EQ(without("q_lora_rank").q_lora_rank, 0u);
  EXPECT_THAT(message([] { with("q_lora_rank", 0); }), HasSubstr("q_lora_rank is 0"));
}

TEST(ConfigRow, DenseOnly) {
  for (const K3Config& c :
       {with("num_experts", 0), with("num_experts", nullptr), without("num_experts")}) {
    EXPECT_EQ(c.moe_layers(), 0u);
    EXPECT_EQ(c.ffn(92), Ffn::dense);
    EXPECT_EQ(c.shared_intermediate(), 0u);
  }
  json root = released();
  for (const char* key :
       {"num_experts", "num_experts_per_token", "moe_intermediate_size", "num_shared_experts",
        "routed_expert_hidden_size", "moe_renormalize", "moe_router_activation_func",
        "routed_scaling_factor", "first_k_dense_replace", "moe_layer_freq"}) {
    root["text_config"].erase(key);
  }
  EXPECT_EQ(parse(root).moe_layers(), 0u);
}

TEST(ConfigRow, WhichLayersHaveExperts) {
  const K3Config later = with("first_k_dense_replace", 3);
  EXPECT_EQ(later.moe_layers(), 90u);
  EXPECT_EQ(later.ffn(2), Ffn::dense);
  const K3Config every_third = with("moe_layer_freq", 3);
  EXPECT_EQ(every_third.ffn(0), Ffn::dense);
  EXPECT_EQ(every_third.ffn(1), Ffn::dense);
  EXPECT_EQ(every_third.ffn(3), Ffn::moe);
  EXPECT_EQ(every_third.moe_layers(), 30u);
  EXPECT_THAT(message([] { with("moe_layer_freq", 0); }), HasSubstr("moe_layer_freq is 0"));
  EXPECT_THAT(message([] { without("moe_layer_freq"); }), HasSubstr("moe_layer_freq is missing"));
  EXPECT_THAT(message([] { without("first_k_dense_replace"); }),
              HasSubstr("first_k_dense_replace is missing"));
}

TEST(ConfigRow, NoDenseLayerNeedsNoDenseWidth) {
  json root = released();
  root["text_config"]["first_k_dense_replace"] = 0;
  root["text_config"].erase("intermediate_size");
  EXPECT_EQ(parse(root).moe_layers(), 93u);
  EXPECT_THAT(message([] { without("intermediate_size"); }), HasSubstr("intermediate_size"));
}

TEST(ConfigRow, NoLatent) {
  for (const K3Config& c :
       {without("routed_expert_hidden_size"), with("routed_expert_hidden_size", nullptr)}) {
    EXPECT_FALSE(c.has_latent);
    EXPECT_FALSE(c.latent_moe_use_norm);
    EXPECT_EQ(c.routed_expert_hidden_size, 7168u);
  }
  json root = released();
  root["text_config"].erase("routed_expert_hidden_size");
  root["text_config"].erase("latent_moe_use_norm");
  EXPECT_FALSE(parse(root).has_latent);
}

TEST(ConfigRow, LatentNorm) {
  EXPECT_FALSE(with("latent_moe_use_norm", false).latent_moe_use_norm);
  EXPECT_THAT(message([] { without("latent_moe_use_norm"); }),
              HasSubstr("latent_moe_use_norm is missing"));
}

TEST(ConfigRow, SharedExperts) {
  EXPECT_EQ(with("num_shared_experts", 0).shared_intermediate(), 0u);
  EXPECT_EQ(without("num_shared_experts").num_shared_experts, 0u);
  EXPECT_EQ(with("num_shared_experts", 1).shared_intermediate(), 3072u);
}

TEST(ConfigRow, RouterWeights) {
  EXPECT_FALSE(with("moe_renormalize", false).moe_renormalize);
  EXPECT_EQ(with("routed_scaling_factor", 2.5).routed_scaling_factor, 2.5f);
  EXPECT_EQ(with("routed_scaling_factor", 2).routed_scaling_factor, 2.0f);
  EXPECT_THAT(message([] { with("routed_scaling_factor", 1e300); }),
              HasSubstr("routed_scaling_factor"));
  EXPECT_THAT(message([] { with("routed_scaling_factor", "1"); }),
              HasSubstr("routed_scaling_factor"));
}

TEST(ConfigRow, RouterActivationAndGroupsAreRefusedByName) {
  EXPECT_THAT(message([] { with("moe_router_activation_func", "softmax"); }),
              testing::AllOf(HasSubstr("moe_router_activation_func"), HasSubstr("softmax")));
  EXPECT_THAT(message([] { with("num_expert_group", 8); }), HasSubstr("num_expert_group is 8"));
  EXPECT_THAT(message([] { with("topk_group", 4); }), HasSubstr("topk_group is 4"));
}

TEST(ConfigRow, HiddenAct) {
  EXPECT_FALSE(with("hidden_act", "silu").act_situ);
  EXPECT_THAT(message([] { with("hidden_act", "gelu"); }),
              testing::AllOf(HasSubstr("hidden_act"), HasSubstr("gelu")));
  EXPECT_THAT(message([] { without("hidden_act"); }), HasSubstr("hidden_act is missing"));
  json silu = released();
  silu["text_config"]["hidden_act"] = "silu";
  silu["text_config"].erase("activation_situ_beta");
  silu["text_config"].erase("activation_situ_linear_beta");
  EXPECT_FALSE(parse(silu).act_situ);
}

TEST(ConfigRow, SituBetas) {
  EXPECT_EQ(with("activation_situ_linear_beta", nullptr).activation_situ_linear_beta, 0.0f);
  EXPECT_EQ(with("activation_situ_beta", 2.5).activation_situ_beta, 2.5f);
  EXPECT_THAT(message([] { without("activation_situ_beta"); }),
              HasSubstr("activation_situ_beta is missing"));
  EXPECT_THAT(message([] { without("activation_situ_linear_beta"); }),
              HasSubstr("activation_situ_linear_beta is missing"));
  EXPECT_THAT(message([] { with("activation_situ_linear_beta", 0); }),
              HasSubstr("activation_situ_linear_beta"));
}

TEST(ConfigRow, AttnResBlockSize) {
  for (const K3Config& c : {without("attn_res_block_size"), with("attn_res_block_size", nullptr)}) {
    EXPECT_FALSE(c.uses_attn_res());
    EXPECT_EQ(c.blocks(), 0u);
    EXPECT_FALSE(c.opens_block(0));
  }
  EXPECT_EQ(with("attn_res_block_size", 93).blocks(), 1u);
  EXPECT_EQ(with("attn_res_block_size", 1).blocks(), 93u);
  EXPECT_EQ(with("attn_res_block_size", 31).blocks(), 3u);
  EXPECT_EQ(with("attn_res_block_size", 200).blocks(), 1u);
  EXPECT_THAT(message([] { with("attn_res_block_size", 0); }),
              HasSubstr("attn_res_block_size is 0"));
}

TEST(ConfigRow, KdaGate) {
  EXPECT_FALSE(with_linear("use_full_rank_gate", false).use_full_rank_gate);
  EXPECT_THAT(message([] { with_linear("use_full_rank_gate", nullptr); }),
              HasSubstr("use_full_rank_gate is missing"));
  EXPECT_FALSE(with_linear("gate_lower_bound", nullptr).gate_lower_bound.has_value());
  EXPECT_EQ(with_linear("gate_lower_bound", -2).gate_lower_bound, -2.0f);
  EXPECT_THAT(message([] { with_linear("gate_lower_bound", 0); }), HasSubstr("gate_lower_bound"));
  EXPECT_THAT(message([] { with_linear("gate_lower_bound", 5.0); }), HasSubstr("gate_lower_bound"));
  json root = released();
  root["text_config"]["linear_attn_config"].erase("gate_lower_bound");
  EXPECT_FALSE(parse(root).gate_lower_bound.has_value());
}

TEST(ConfigRow, KdaShape) {
  EXPECT_EQ(with_linear("num_heads", 7).kda_num_heads, 7u);
  EXPECT_EQ(with_linear("head_dim", 32).assumed_a_log_entries(), 96u);
  for (const char* key : {"num_heads", "head_dim", "short_conv_kernel_size"}) {
    EXPECT_THAT(message([&] { with_linear(key, nullptr); }),
                HasSubstr(std::string("linear_attn_config.") + key + " is missing"));
    EXPECT_THAT(message([&] { with_linear(key, 0); }), HasSubstr(std::string(key) + " is 0"));
    EXPECT_THAT(message([&] { with_linear(key, -4); }), HasSubstr(std::string(key) + " is -4"));
    EXPECT_THAT(message([&] { with_linear(key, "4"); }), HasSubstr(key));
    EXPECT_THAT(message([&] { with_linear(key, 4.0); }), HasSubstr(key));
    EXPECT_THAT(message([&] { with_linear(key, 18446744073709551615ull); }), HasSubstr(key));
  }
  EXPECT_EQ(with_linear("short_conv_kernel_size", 8).short_conv_kernel_size, 8u);
  EXPECT_THAT(message([] { with_linear("short_conv_kernel_size", 9); }),
              HasSubstr("short_conv_kernel_size is 9"));
  EXPECT_EQ(with_linear("short_conv_kernel_size", 1).short_conv_kernel_size, 1u);
}

TEST(ConfigRow, Mla) {
  EXPECT_FALSE(with("mla_use_output_gate", false).mla_use_output_gate);
  EXPECT_THAT(message([] { without("mla_use_output_gate"); }), HasSubstr("mla_use_output_gate"));
  EXPECT_THAT(message([] { with("mla_use_nope", false); }), HasSubstr("mla_use_nope is false"));
  EXPECT_THAT(message([] { with("num_key_value_heads", 8); }), HasSubstr("num_key_value_heads"));
  EXPECT_EQ(without("num_key_value_heads").num_attention_heads, 96u);
}

TEST(ConfigRow, TieWordEmbeddings) {
  EXPECT_TRUE(with("tie_word_embeddings", true).tie_word_embeddings);
  json top_only = released();
  top_only["text_config"].erase("tie_word_embeddings");
  top_only["tie_word_embeddings"] = true;
  EXPECT_TRUE(parse(top_only).tie_word_embeddings);
  top_only.erase("tie_word_embeddings");
  EXPECT_THAT(message([&] { parse(top_only); }), HasSubstr("tie_word_embeddings is missing"));
}

TEST(ConfigRow, PredictLayersAreAccepted) {
  EXPECT_EQ(with("num_nextn_predict_layers", 2).num_nextn_predict_layers, 2u);
  EXPECT_EQ(with("num_nextn_predict_layers", 2).num_hidden_layers, 93u);
  EXPECT_EQ(without("num_nextn_predict_layers").num_nextn_predict_layers, 0u);
}

TEST(ConfigRow, RmsNormEps) {
  EXPECT_FLOAT_EQ(with("rms_norm_eps", 1e-6).rms_norm_eps, 1e-6f);
  EXPECT_THAT(message([] { with("rms_norm_eps", 0); }), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(message([] { without("rms_norm_eps"); }), HasSubstr("rms_norm_eps is missing"));
}

// Every key that fixes a shape: missing, of a wrong type, zero or negative is an error that names
// it.
TEST(ConfigErrors, ShapeKeysHaveNoDefault) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads",
                          "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                          "num_experts_per_token", "moe_intermediate_size", "intermediate_size"}) {
    const std::string full = std::string("text_config.") + key;
    EXPECT_THAT(message([&] { without(key); }), HasSubstr(full + " is missing"));
    EXPECT_THAT(message([&] { with(key, 0); }), HasSubstr(full + " is 0"));
    EXPECT_THAT(message([&] { with(key, -1); }), HasSubstr(full + " is -1"));
    EXPECT_THAT(message([&] { with(key, "x"); }), HasSubstr(full + " holds string"));
    EXPECT_THAT(message([&] { with(key, 1.5); }), HasSubstr(full + " holds 1.5"));
    EXPECT_THAT(message([&] { with(key, std::int64_t{1} << 62); }), HasSubstr(full));
  }
}

TEST(ConfigErrors, FlagsAreTrueOrFalse) {
  for (const char* key : {"mla_use_nope", "mla_use_output_gate", "latent_moe_use_norm",
                          "moe_renormalize", "tie_word_embeddings"}) {
    EXPECT_THAT(message([&] { with(key, 1); }), HasSubstr(std::string(key) + " holds a number"));
  }
}

TEST(ConfigErrors, ContradictingExperts) {
  EXPECT_THAT(message([] { with("num_experts_per_token", 897); }),
              testing::AllOf(HasSubstr("num_experts_per_token is 897"), HasSubstr("896")));
  EXPECT_THAT(message([] { with("moe_intermediate_size", 3080); }),
              testing::AllOf(HasSubstr("moe_intermediate_size is 3080"), HasSubstr("32")));
  EXPECT_THAT(message([] { with("routed_expert_hidden_size", 3585); }),
              HasSubstr("routed_expert_hidden_size is 3585"));
  json root = released();
  root.erase("vision_config");
  root["text_config"].erase("routed_expert_hidden_size");
  root["text_config"]["hidden_size"] = 7169;
  EXPECT_THAT(message([&] { parse(root); }), HasSubstr("hidden_size is 7169"));
}

TEST(ConfigErrors, Quantization) {
  json root = released();
  json& q = root["text_config"]["quantization_config"];
  q["format"] = "nvfp4-pack-quantized";
  EXPECT_THAT(message([&] { parse(root); }),
              testing::AllOf(HasSubstr("quantization_config.format"), HasSubstr("nvfp4")));
  q["format"] = "mxfp4-pack-quantized";
  q["config_groups"]["group_0"]["weights"]["group_size"] = 16;
  EXPECT_THAT(message([&] { parse(root); }), HasSubstr("group_size is 16"));
  q["config_groups"]["group_0"]["weights"]["group_size"] = 32;
  q["format"] = "mixed-precision";
  json trunk = q["config_groups"]["group_0"];
  trunk["format"] = "int-quantized";
  trunk["weights"]["num_bits"] = 8;
  trunk["weights"]["type"] = "int";
  q["config_groups"]["group_1"] = trunk;
  EXPECT_EQ(parse(root).num_experts, 896u);
  for (const auto& [key, value] : {std::pair<const char*, json>{"num_bits", 4},
                                   {"type", "float"},
                                   {"symmetric", false},
                                   {"group_size", 128}}) {
    q["config_groups"]["group_1"] = trunk;
    q["config_groups"]["group_1"]["weights"][key] = value;
    EXPECT_THAT(message([&] { parse(root); }),
                HasSubstr(std::string("config_groups.group_1.weights.") + key));
  }
  q["config_groups"]["group_1"] = trunk;
  q["config_groups"]["group_1"]["format"] = "pack-quantized";
  EXPECT_THAT(message([&] { parse(root); }), HasSubstr("pack-quantized"));
  root["text_config"].erase("quantization_config");
  EXPECT_EQ(parse(root).num_experts, 896u);
}

TEST(ConfigErrors, Vision) {
  const auto vision = [](const char* key, const json& value) {
    json root = released();
    root["vision_config"][key] = value;
    return parse(root);
  };
  EXPECT_THAT(message([&] { vision("vt_hidden_size", nullptr); }),
              HasSubstr("vision_config.vt_hidden_size is missing"));
  EXPECT_THAT(message([&] { vision("merge_kernel_size", {2}); }), HasSubstr("merge_kernel_size"));
  EXPECT_THAT(message([&] { vision("text_hidden_size", 64); }),
              HasSubstr("text_hidden_size is 64"));
  EXPECT_THAT(message([&] { vision("qkv_hidden_size", 1537); }), HasSubstr("qkv_hidden_size"));
}

TEST(ConfigErrors, TextThatIsNoConfiguration) {
  const auto text = [](std::string_view t) {
    return message([&] { K3Config::parse(t, "some/config.json"); });
  };
  EXPECT_THAT(text(""), HasSubstr("some/config.json: not valid JSON"));
  EXPECT_THAT(text("{\"hidden_size\": 1"), HasSubstr("not valid JSON"));
  EXPECT_THAT(text("[1]"), HasSubstr("expected an object"));
  EXPECT_THAT(text("{}"), HasSubstr("hidden_size is missing"));
  EXPECT_THAT(text("{\"text_config\": 3}"), HasSubstr("text_config holds a number"));
  EXPECT_THAT(text("{\"hidden_size\": 1e999}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(text(std::string(100000, '[')), HasSubstr("not valid JSON"));
}

TEST(ConfigTokens, EosIsOneIdOrAList) {
  EXPECT_THAT(with("eos_token_id", {5, 9}).eos_token_ids, ElementsAre(5, 9));
  json root = released();
  root["text_config"].erase("eos_token_id");
  root["eos_token_id"] = 11;  // at the top level only
  EXPECT_THAT(parse(root).eos_token_ids, ElementsAre(11));
  root.erase("eos_token_id");
  EXPECT_TRUE(parse(root).eos_token_ids.empty());
  EXPECT_THAT(message([] { with("eos_token_id", -1); }), HasSubstr("eos_token_id"));
  EXPECT_THAT(message([] { with("eos_token_id", "x"); }), HasSubstr("eos_token_id"));
  EXPECT_THAT(message([] { with("eos_token_id", {1, 1e3}); }), HasSubstr("eos_token_id"));
  EXPECT_THAT(message([] { with("bos_token_id", 4294967296); }), HasSubstr("bos_token_id"));
}

class ConfigFolder : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  test::TempFolder temp_;
  const fs::path& folder_ = temp_.path();
};

TEST_F(ConfigFolder, GenerationConfigAddsEnds) {
  write("config.json", released().dump());
  EXPECT_THAT(K3Config::load(folder_).eos_token_ids, ElementsAre(163586));
  write("generation_config.json", R"({"eos_token_id": [163586, 7], "temperature": 1.0})");
  EXPECT_THAT(K3Config::load(folder_).eos_token_ids, ElementsAre(163586, 7));
  EXPECT_THAT(K3Config::load(folder_ / "config.json").eos_token_ids, ElementsAre(163586));
  write("generation_config.json", "{");
  EXPECT_THAT(message([&] { K3Config::load(folder_); }), HasSubstr("generation_config.json"));
}

TEST_F(ConfigFolder, MissingFile) {
  EXPECT_THAT(message([&] { K3Config::load(folder_); }),
              HasSubstr("config.json: there is no such"));
  EXPECT_THAT(message([&] { K3Config::load(folder_ / "other"); }), HasSubstr("other: there is no"));
}

}  // namespace
}  // namespace triax
