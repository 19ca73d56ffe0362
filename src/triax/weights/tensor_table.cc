// The rows of the tensor table. Everything about a tensor stands here and nowhere else.
#include "triax/weights/tensor_table.h"

#include <iterator>

#include "triax/weights/weights.h"

namespace triax {
namespace {

// ---- When a row exists
// ---------------------------------------------------------------------------

bool always(const K3Config&, std::size_t) {
  return true;
}
bool untied(const K3Config& c, std::size_t) {
  return !c.tie_word_embeddings;
}
bool mixes(const K3Config& c, std::size_t) {
  return c.uses_attn_res();
}
bool kda(const K3Config& c, std::size_t l) {
  return c.is_kda(l);
}
bool kda_full_gate(const K3Config& c, std::size_t l) {
  return c.is_kda(l) && c.use_full_rank_gate;
}
bool kda_low_gate(const K3Config& c, std::size_t l) {
  return c.is_kda(l) && !c.use_full_rank_gate;
}
bool mla(const K3Config& c, std::size_t l) {
  return !c.is_kda(l);
}
bool mla_q_lora(const K3Config& c, std::size_t l) {
  return mla(c, l) && c.q_lora_rank > 0;
}
bool mla_q_full(const K3Config& c, std::size_t l) {
  return mla(c, l) && c.q_lora_rank == 0;
}
bool mla_gate(const K3Config& c, std::size_t l) {
  return mla(c, l) && c.mla_use_output_gate;
}
bool dense(const K3Config& c, std::size_t l) {
  return c.ffn(l) == Ffn::dense;
}
bool moe(const K3Config& c, std::size_t l) {
  return c.ffn(l) == Ffn::moe;
}
bool latent(const K3Config& c, std::size_t l) {
  return moe(c, l) && c.has_latent;
}
bool latent_norm(const K3Config& c, std::size_t l) {
  return latent(c, l) && c.latent_moe_use_norm;
}
bool shared(const K3Config& c, std::size_t l) {
  return moe(c, l) && c.num_shared_experts > 0;
}
bool vision(const K3Config& c, std::size_t) {
  return c.vision.has_value();
}

// ---- Where a row goes
// ----------------------------------------------------------------------------

constexpr Slot slot_of(MatrixView& (*f)(K3Weights&, std::size_t)) {
  return {f, nullptr};
}
constexpr Slot slot_of(std::vector<float>& (*f)(K3Weights&, std::size_t)) {
  return {nullptr, f};
}

template <auto... Path>
auto& model_member(K3Weights& weights, std::size_t) {
  return (weights.*....*Path);
}
template <auto... Path>
auto& layer_member(K3Weights& weights, std::size_t layer) {
  return (weights.layers[layer].*....*Path);
}

// A member of the model, or of a layer, reached through a path of members.
template <auto... Path>
constexpr Slot model = slot_of(&model_member<Path...>);
template <auto... Path>
constexpr Slot layer = slot_of(&layer_member<Path...>);

constexpr Slot none{};

using W = K3Weights;
using L = LayerWeights;
using Mix = DepthMixWeights;
using Kda = KdaWeights;
using Mla = MlaWeights;
using Mlp = MlpWeights;
using Moe = MoeWeights;
using D = Dim;
using C = Component;
using R = TensorRole;
using S = Scope;
using Q = Quirk;
using P = Packing;
using U = Update;
constexpr DType BF16 = DType::BF16, F32 = DType::F32, U8 = DType::U8;

// clang-format off
constexpr TensorRow kTable[] = {
    // name, scope, exists, rank, dims, dtype, quirk, component, role, packing, update, slot
    {"model.embed_tokens.weight", S::global, always, 2, {D::vocab, D::hidden}, BF16, Q::wide, C::embedding, R::embedding, P::stored, U::adamw, model<&W::embed_tokens>},

    {"model.layers.{L}.input_layernorm.weight", S::layer, always, 1, {D::hidden}, BF16, Q::wide, C::norm, R::norm, P::stored, U::adamw_no_decay, layer<&L::input_layernorm>},
    {"model.layers.{L}.post_attention_layernorm.weight", S::layer, always, 1, {D::hidden}, BF16, Q::wide, C::norm, R::norm, P::stored, U::adamw_no_decay, layer<&L::post_attention_layernorm>},
    {"model.layers.{L}.self_attention_res_norm.weight", S::layer, mixes, 1, {D::hidden}, BF16, Q::wide, C::depth_mix, R::mix_norm, P::stored, U::adamw_no_decay, layer<&L::self_attention_res, &Mix::norm>},
    {"model.layers.{L}.self_attention_res_proj.weight", S::layer, mixes, 2, {D::one, D::hidden}, BF16, Q::wide, C::depth_mix, R::mix_proj, P::stored, U::adamw_no_decay, layer<&L::self_attention_res, &Mix::proj>},
    {"model.layers.{L}.mlp_res_norm.weight", S::layer, mixes, 1, {D::hidden}, BF16, Q::wide, C::depth_mix, R::mix_norm, P::stored, U::adamw_no_decay, layer<&L::mlp_res, &Mix::norm>},
    {"model.layers.{L}.mlp_res_proj.weight", S::layer, mixes, 2, {D::one, D::hidden}, BF16, Q::wide, C::depth_mix, R::mix_proj, P::stored, U::adamw_no_decay, layer<&L::mlp_res, &Mix::proj>},

    {"model.layers.{L}.self_attn.q_proj.weight", S::layer, kda, 2, {D::kda_inner, D::hidden}, BF16, Q::wide, C::kda, R::matrix, P::int8, U::muon_heads, layer<&L::kda, &Kda::q_proj>},
    {"model.layers.{L}.self_attn.k_proj.weight", S::layer, kda, 2, {D::kda_inner, D::hidden}, BF16, Q::wide, C::kda, R::matrix, P::int8, U::muon_heads, layer<&L::kda, &Kda::k_proj>},
    {"model.layers.{L}.self_attn.v_proj.weight", S::layer, kda, 2, {D::kda_inner, D::hidden}, BF16, Q::wide, C::kda, R::matrix, P::int8, U::muon_heads, layer<&L::kda, &Kda::v_proj>},
    {"model.layers.{L}.self_attn.q_conv1d.weight", S::layer, kda, 3, {D::kda_inner, D::one, D::conv_taps}, F32, Q::wide, C::kda, R::conv, P::stored, U::adamw_no_decay, layer<&L::kda, &Kda::q_conv1d>},
    {"model.layers.{L}.self_attn.k_conv1d.weight", S::layer, kda, 3, {D::kda_inner, D::one, D::conv_taps}, F32, Q::wide, C::kda, R::conv, P::stored, U::adamw_no_decay, layer<&L::kda, &Kda::k_conv1d>},
    {"model.layers.{L}.self_attn.v_conv1d.weight", S::layer, kda, 3, {D::kda_inner, D::one, D::conv_taps}, F32, Q::wide, C::kda, R::conv, P::stored, U::adamw_no_decay, layer<&L::kda, &Kda::v_conv1d>},
    {"model.layers.{L}.self_attn.A_log", S::layer, kda, 1, {D::a_log_entries}, F32, Q::padded, C::kda, R::a_log, P::stored, U::adamw_no_decay, layer<&L::kda, &Kda::A_log>},
    {"model.layers.{L}.self_attn.dt_bias", S::layer, kda, 1, {D::kda_inner}, F32, Q::wide, C::kda, R::dt_bias, P::stored, U::adamw_no_decay, layer<&L::kda, &Kda::dt_bias>},
    {"model.layers.{L}.self_attn.f_a_proj.weight", S::layer, kda, 2, {D::kda_head_dim, D::hidden}, BF16, Q::wide, C::kda, R::matrix, P::stored, U::muon, layer<&L::kda, &Kda::f_a_proj>},
    {"model.layers.{L}.self_attn.f_b_proj.weight", S::layer, kda, 2, {D::kda_inner, D::kda_head_dim}, BF16, Q::wide, C::kda, R::matrix, P::stored, U::muon, layer<&L::kda, &Kda::f_b_proj>},
    {"model.layers.{L}.self_attn.b_proj.weight", S::layer, kda, 2, {D::kda_heads, D::hidden}, BF16, Q::wide, C::kda, R::matrix, P::stored, U::adamw, layer<&L::kda, &Kda::b_proj>},
    {"model.layers.{L}.self_attn.g_proj.weight", S::layer, kda_full_gate, 2, {D::kda_inner, D::hidden}, BF16, Q::wide, C::kda, R::matrix, P::int8, U::muon, layer<&L::kda, &Kda::g_proj>},
    {"model.layers.{L}.self_attn.g_a_proj.weight", S::layer, kda_low_gate, 2, {D::kda_head_dim, D::hidden}, BF16, Q::wide, C::kda, R::matrix, P::stored, U::muon, layer<&L::kda, &Kda::g_a_proj>},
    {"model.layers.{L}.self_attn.g_b_proj.weight", S::layer, kda_low_gate, 2, {D::kda_inner, D::kda_head_dim}, BF16, Q::wide, C::kda, R::matrix, P::stored, U::muon, layer<&L::kda, &Kda::g_b_proj>},
    {"model.layers.{L}.self_attn.o_norm.weight", S::layer, kda, 1, {D::kda_head_dim}, F32, Q::wide, C::kda, R::norm, P::stored, U::adamw_no_decay, layer<&L::kda, &Kda::o_norm>},
    {"model.layers.{L}.self_attn.o_proj.weight", S::layer, kda, 2, {D::hidden, D::kda_inner}, BF16, Q::wide, C::kda, R::matrix, P::int8, U::muon, layer<&L::kda, &Kda::o_proj>},

    {"model.layers.{L}.self_attn.q_proj.weight", S::layer, mla_q_full, 2, {D::q_inner, D::hidden}, BF16, Q::wide, C::mla, R::matrix, P::int8, U::muon_heads, layer<&L::mla, &Mla::q_proj>},
    {"model.layers.{L}.self_attn.q_a_proj.weight", S::layer, mla_q_lora, 2, {D::q_lora, D::hidden}, BF16, Q::wide, C::mla, R::matrix, P::int8, U::muon, layer<&L::mla, &Mla::q_a_proj>},
    {"model.layers.{L}.self_attn.q_a_layernorm.weight", S::layer, mla_q_lora, 1, {D::q_lora}, BF16, Q::wide, C::mla, R::norm, P::stored, U::adamw_no_decay, layer<&L::mla, &Mla::q_a_layernorm>},
    {"model.layers.{L}.self_attn.q_b_proj.weight", S::layer, mla_q_lora, 2, {D::q_inner, D::q_lora}, BF16, Q::wide, C::mla, R::matrix, P::int8, U::muon_heads, layer<&L::mla, &Mla::q_b_proj>},
    {"model.layers.{L}.self_attn.kv_a_proj_with_mqa.weight", S::layer, mla, 2, {D::kv_latent, D::hidden}, BF16, Q::wide, C::mla, R::matrix, P::int8, U::muon, layer<&L::mla, &Mla::kv_a_proj_with_mqa>},
    {"model.layers.{L}.self_attn.kv_a_layernorm.weight", S::layer, mla, 1, {D::kv_lora}, BF16, Q::wide, C::mla, R::norm, P::stored, U::adamw_no_decay, layer<&L::mla, &Mla::kv_a_layernorm>},
    {"model.layers.{L}.self_attn.kv_b_proj.weight", S::layer, mla, 2, {D::kv_inner, D::kv_lora}, BF16, Q::wide, C::mla, R::matrix, P::stored, U::muon_key_value, layer<&L::mla, &Mla::kv_b_proj>},
    {"model.layers.{L}.self_attn.g_proj.weight", S::layer, mla_gate, 2, {D::mla_inner, D::hidden}, BF16, Q::wide, C::mla, R::matrix, P::int8, U::muon, layer<&L::mla, &Mla::g_proj>},
    {"model.layers.{L}.self_attn.o_proj.weight", S::layer, mla, 2, {D::hidden, D::mla_inner}, BF16, Q::wide, C::mla, R::matrix, P::int8, U::muon, layer<&L::mla, &Mla::o_proj>},

    {"model.layers.{L}.mlp.gate_proj.weight", S::layer, dense, 2, {D::dense_width, D::hidden}, BF16, Q::wide, C::dense_mlp, R::matrix, P::int8, U::muon, layer<&L::mlp, &Mlp::gate_proj>},
    {"model.layers.{L}.mlp.up_proj.weight", S::layer, dense, 2, {D::dense_width, D::hidden}, BF16, Q::wide, C::dense_mlp, R::matrix, P::int8, U::muon, layer<&L::mlp, &Mlp::up_proj>},
    {"model.layers.{L}.mlp.down_proj.weight", S::layer, dense, 2, {D::hidden, D::dense_width}, BF16, Q::wide, C::dense_mlp, R::matrix, P::int8, U::muon, layer<&L::mlp, &Mlp::down_proj>},

    {"model.layers.{L}.block_sparse_moe.gate.weight", S::layer, moe, 2, {D::experts, D::hidden}, BF16, Q::wide, C::router, R::router, P::stored, U::muon, layer<&L::moe, &Moe::gate>},
    {"model.layers.{L}.block_sparse_moe.gate.e_score_correction_bias", S::layer, moe, 1, {D::experts}, F32, Q::wide, C::router, R::router_bias, P::stored, U::none, layer<&L::moe, &Moe::e_score_correction_bias>},
    {"model.layers.{L}.block_sparse_moe.routed_expert_down_proj.weight", S::layer, latent, 2, {D::latent, D::hidden}, BF16, Q::wide, C::latent, R::matrix, P::int8, U::muon, layer<&L::moe, &Moe::routed_expert_down_proj>},
    {"model.layers.{L}.block_sparse_moe.routed_expert_norm.weight", S::layer, latent_norm, 1, {D::latent}, BF16, Q::wide, C::latent, R::norm, P::stored, U::adamw_no_decay, layer<&L::moe, &Moe::routed_expert_norm>},
    {"model.layers.{L}.block_sparse_moe.routed_expert_up_proj.weight", S::layer, latent, 2, {D::hidden, D::latent}, BF16, Q::wide, C::latent, R::matrix, P::int8, U::muon, layer<&L::moe, &Moe::routed_expert_up_proj>},
    {"model.layers.{L}.block_sparse_moe.shared_experts.gate_proj.weight", S::layer, shared, 2, {D::shared_width, D::hidden}, BF16, Q::wide, C::shared_experts, R::matrix, P::int8, U::muon, layer<&L::moe, &Moe::shared_experts, &Mlp::gate_proj>},
    {"model.layers.{L}.block_sparse_moe.shared_experts.up_proj.weight", S::layer, shared, 2, {D::shared_width, D::hidden}, BF16, Q::wide, C::shared_experts, R::matrix, P::int8, U::muon, layer<&L::moe, &Moe::shared_experts, &Mlp::up_proj>},
    {"model.layers.{L}.block_sparse_moe.shared_experts.down_proj.weight", S::layer, shared, 2, {D::hidden, D::shared_width}, BF16, Q::wide, C::shared_experts, R::matrix, P::int8, U::muon, layer<&L::moe, &Moe::shared_experts, &Mlp::down_proj>},

    {"model.norm.weight", S::global, always, 1, {D::hidden}, BF16, Q::wide, C::norm, R::norm, P::stored, U::adamw_no_decay, model<&W::norm>},
    {"model.output_attn_res_norm.weight", S::global, mixes, 1, {D::hidden}, BF16, Q::wide, C::depth_mix, R::mix_norm, P::stored, U::adamw_no_decay, model<&W::output_attn_res, &Mix::norm>},
    {"model.output_attn_res_proj.weight", S::global, mixes, 2, {D::one, D::hidden}, BF16, Q::wide, C::depth_mix, R::mix_proj, P::stored, U::adamw_no_decay, model<&W::output_attn_res, &Mix::proj>},
    {"lm_head.weight", S::global, untied, 2, {D::vocab, D::hidden}, BF16, Q::wide, C::lm_head, R::head, P::int8, U::adamw, model<&W::lm_head>},

    {"model.layers.{L}.block_sparse_moe.experts.{E}.w1.weight_packed", S::expert, moe, 2, {D::expert_width, D::latent_packed}, U8, Q::none, C::routed_experts, R::expert_packed, P::stored, U::muon, none},
    {"model.layers.{L}.block_sparse_moe.experts.{E}.w1.weight_scale", S::expert, moe, 2, {D::expert_width, D::latent_groups}, U8, Q::e8m0, C::routed_experts, R::expert_scale, P::stored, U::none, none},
    {"model.layers.{L}.block_sparse_moe.experts.{E}.w2.weight_packed", S::expert, moe, 2, {D::latent, D::expert_width_packed}, U8, Q::none, C::routed_experts, R::expert_packed, P::stored, U::muon, none},
    {"model.layers.{L}.block_sparse_moe.experts.{E}.w2.weight_scale", S::expert, moe, 2, {D::latent, D::expert_width_groups}, U8, Q::e8m0, C::routed_experts, R::expert_scale, P::stored, U::none, none},
    {"model.layers.{L}.block_sparse_moe.experts.{E}.w3.weight_packed", S::expert, moe, 2, {D::expert_width, D::latent_packed}, U8, Q::none, C::routed_experts, R::expert_packed, P::stored, U::muon, none},
    {"model.layers.{L}.block_sparse_moe.experts.{E}.w3.weight_scale", S::expert, moe, 2, {D::expert_width, D::latent_groups}, U8, Q::e8m0, C::routed_experts, R::expert_scale, P::stored, U::none, none},

    {"mm_projector.proj.0.weight", S::vision, vision, 2, {D::vision_merged, D::vision_merged}, BF16, Q::wide, C::projector, R::vision_matrix, P::stored, U::none, none},
    {"mm_projector.proj.2.weight", S::vision, vision, 2, {D::vision_text, D::vision_merged}, BF16, Q::wide, C::projector, R::vision_matrix, P::stored, U::none, none},
    {"mm_projector.post_norm.weight", S::vision, vision, 1, {D::vision_text}, BF16, Q::wide, C::projector, R::norm, P::stored, U::none, none},
    {"vision_tower.patch_embed.proj.weight", S::vision, vision, 4, {D::vision_hidden, D::vision_channels, D::vision_patch, D::vision_patch}, BF16, Q::wide, C::vision_tower, R::vision_matrix, P::stored, U::none, none},
    {"vision_tower.patch_embed.pos_emb.weight", S::vision, vision, 3, {D::vision_rows, D::vision_columns, D::vision_hidden}, BF16, Q::wide, C::vision_tower, R::vision_positions, P::stored, U::none, none},
    {"vision_tower.encoder.blocks.{L}.norm0.weight", S::vision_block, vision, 1, {D::vision_hidden}, BF16, Q::wide, C::vision_tower, R::norm, P::stored, U::none, none},
    {"vision_tower.encoder.blocks.{L}.norm1.weight", S::vision_block, vision, 1, {D::vision_hidden}, BF16, Q::wide, C::vision_tower, R::norm, P::stored, U::none, none},
    {"vision_tower.encoder.blocks.{L}.wqkv.weight", S::vision_block, vision, 2, {D::vision_qkv, D::vision_hidden}, BF16, Q::wide, C::vision_tower, R::vision_matrix, P::stored, U::none, none},
    {"vision_tower.encoder.blocks.{L}.wo.weight", S::vision_block, vision, 2, {D::vision_hidden, D::vision_attended}, BF16, Q::wide, C::vision_tower, R::vision_matrix, P::stored, U::none, none},
    {"vision_tower.encoder.blocks.{L}.mlp.fc0.weight", S::vision_block, vision, 2, {D::vision_width, D::vision_hidden}, BF16, Q::wide, C::vision_tower, R::vision_matrix, P::stored, U::none, none},
    {"vision_tower.encoder.blocks.{L}.mlp.fc1.weight", S::vision_block, vision, 2, {D::vision_hidden, D::vision_width}, BF16, Q::wide, C::vision_tower, R::vision_matrix, P::stored, U::none, none},
    {"vision_tower.encoder.final_layernorm.weight", S::vision, vision, 1, {D::vision_hidden}, BF16, Q::wide, C::vision_tower, R::norm, P::stored, U::none, none},
};
// clang-format on

struct DimRow {
  std::string_view name;
  std::size_t (*value)(const K3Config&);
};

// In the order of Dim.
constexpr DimRow kDims[] = {
    {"1", [](const K3Config&) -> std::size_t { return 1; }},
    {"hidden_size", [](const K3Config& c) { return c.hidden_size; }},
    {"vocab_size", [](const K3Config& c) { return c.vocab_size; }},
    {"KDA num_heads * head_dim", [](const K3Config& c) { return c.kda_inner(); }},
    {"KDA num_heads", [](const K3Config& c) { return c.kda_num_heads; }},
    {"KDA head_dim", [](const K3Config& c) { return c.kda_head_dim; }},
    {"short_conv_kernel_size", [](const K3Config& c) { return c.short_conv_kernel_size; }},
    {"KDA num_heads or more", [](const K3Config& c) { return c.assumed_a_log_entries(); }},
    {"q_lora_rank", [](const K3Config& c) { return c.q_lora_rank; }},
    {"num_attention_heads * (qk_nope_head_dim + qk_rope_head_dim)",
     [](const K3Config& c) { return c.num_attention_heads * c.q_head_dim(); }},
    {"kv_lora_rank", [](const K3Config& c) { return c.kv_lora_rank; }},
    {"kv_lora_rank + qk_rope_head_dim", [](const K3Config& c) { return c.latent_width(); }},
    {"num_attention_heads * (qk_nope_head_dim + v_head_dim)",
     [](const K3Config& c) { return c.num_attention_heads * (c.qk_nope_head_dim + c.v_head_dim); }},
    {"num_attention_heads * v_head_dim",
     [](const K3Config& c) { return c.num_attention_heads * c.v_head_dim; }},
    {"intermediate_size", [](const K3Config& c) { return c.intermediate_size; }},
    {"num_experts", [](const K3Config& c) { return c.num_experts; }},
    {"routed_expert_hidden_size", [](const K3Config& c) { return c.routed_expert_hidden_size; }},
    {"routed_expert_hidden_size / 2",
     [](const K3Config& c) { return c.routed_expert_hidden_size / 2; }},
    {"routed_expert_hidden_size / 32",
     [](const K3Config& c) { return c.routed_expert_hidden_size / 32; }},
    {"moe_intermediate_size", [](const K3Config& c) { return c.moe_intermediate_size; }},
    {"moe_intermediate_size / 2", [](const K3Config& c) { return c.moe_intermediate_size / 2; }},
    {"moe_intermediate_size / 32", [](const K3Config& c) { return c.moe_intermediate_size / 32; }},
    {"num_shared_experts * moe_intermediate_size",
     [](const K3Config& c) { return c.shared_intermediate(); }},
    {"vt_hidden_size", [](const K3Config& c) { return c.vision->hidden; }},
    {"3 * qkv_hidden_size", [](const K3Config& c) { return 3 * c.vision->qkv_hidden; }},
    {"qkv_hidden_size", [](const K3Config& c) { return c.vision->qkv_hidden; }},
    {"vt_intermediate_size", [](const K3Config& c) { return c.vision->intermediate; }},
    {"3", [](const K3Config&) -> std::size_t { return 3; }},
    {"patch_size", [](const K3Config& c) { return c.vision->patch_size; }},
    {"init_pos_emb_height", [](const K3Config& c) { return c.vision->pos_emb_height; }},
    {"init_pos_emb_width", [](const K3Config& c) { return c.vision->pos_emb_width; }},
    {"vt_hidden_size * merge_kernel_size",
     [](const K3Config& c) {
       return c.vision->hidden * c.vision->merge_height * c.vision->merge_width;
     }},
    {"text_hidden_size", [](const K3Config& c) { return c.vision->text_hidden; }},
};
static_assert(std::size(kDims) == static_cast<std::size_t>(Dim::vision_text) + 1);

constexpr std::string_view kComponentNames[] = {
    "embedding",      "lm_head",        "kda",       "mla",  "dense_mlp",    "router",   "latent",
    "shared_experts", "routed_experts", "depth_mix", "norm", "vision_tower", "projector"};
static_assert(std::size(kComponentNames) == kComponents);

}  // namespace

std::span<const TensorRow> tensor_table() {
  return kTable;
}

std::size_t dim_value(Dim dim, const K3Config& config) {
  return kDims[static_cast<std::size_t>(dim)].value(config);
}

std::string_view dim_name(Dim dim) {
  return kDims[static_cast<std::size_t>(dim)].name;
}

std::string_view update_name(Update update) {
  constexpr std::string_view kNames[] = {
      "none", "AdamW",          "AdamW, no decay",
      "Muon", "Muon, per head", "Muon, per head, keys and values"};
  return kNames[static_cast<std::size_t>(update)];
}

std::string_view component_name(Component component) {
  return kComponentNames[static_cast<std::size_t>(component)];
}

Init init_of(TensorRole role) {
  using Kind = Init::Kind;
  switch (role) {
    case TensorRole::embedding:
    case TensorRole::conv:
      return {Kind::normal, 0.0, 0.5};
    case TensorRole::vision_positions:
      return {Kind::normal, 0.0, 0.3};
    case TensorRole::norm:
    case TensorRole::mix_norm:
      return {Kind::normal, 1.0, 0.1};
    case TensorRole::head:
      return {Kind::normal_by_columns, 0.0, 2.0};
    case TensorRole::matrix:
    case TensorRole::mix_proj:
    case TensorRole::router:
    case TensorRole::vision_matrix:
      return {Kind::normal_by_columns, 0.0, 1.0};
    case TensorRole::a_log:
      return {Kind::uniform, -0.5, 0.75};
    case TensorRole::dt_bias:
      return {Kind::uniform, -5.0, 0.0};
    case TensorRole::router_bias:
      return {Kind::uniform, -0.05, 0.05};
    case TensorRole::expert_packed:
    case TensorRole::expert_scale:
      return {Kind::mxfp4, 0.0, 1.0};
  }
  TRIAX_CHECK(false, "role without an initialisation");
  return {};
}

}  // namespace triax
