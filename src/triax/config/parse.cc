// config.json -> K3Config. Each group of keys has one function; spec: text model, section 1.1.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "triax/config/config.h"
#include "triax/config/fields.h"
#include "triax/core/error.h"
#include "triax/core/mxfp4.h"

namespace triax {
namespace {

using config_detail::Fields;
using config_detail::parse_object;

// Largest values accepted: far beyond any model of this kind, and small enough that parameters and
// bytes of any accepted shape fit in 64 bits.
constexpr std::size_t kMaxLayers = 1024;
constexpr std::size_t kMaxWidth = std::size_t{1} << 17;  // hidden, latent, expert width, ranks
constexpr std::size_t kMaxInner = std::size_t{1} << 20;  // dense width, heads * head size
constexpr std::size_t kMaxHeads = std::size_t{1} << 12;
constexpr std::size_t kMaxHeadDim = std::size_t{1} << 12;
constexpr std::size_t kMaxExperts = std::size_t{1} << 16;
constexpr std::size_t kMaxVocab = std::size_t{1} << 24;
constexpr std::size_t kMaxConvTaps = 8;
constexpr std::size_t kMaxConfigBytes = std::size_t{64} << 20;

// Which layer is KDA and which MLA. The lists count from one, are disjoint, and cover 1..layers.
void read_layer_list(K3Config& c, const Fields& linear, const char* key, LayerKind kind,
                     std::vector<bool>& seen) {
  for (const std::int64_t layer : linear.integers(key)) {
    if (layer < 1 || layer > static_cast<std::int64_t>(c.num_hidden_layers)) {
      linear.wrong(key, fmt::format("names layer {}; layers count from 1 to num_hidden_layers = {}",
                                    layer, c.num_hidden_layers));
    }
    const auto i = static_cast<std::size_t>(layer - 1);
    if (seen[i]) {
      linear.wrong(key, fmt::format("names layer {}, which kda_layers or full_attn_layers already "
                                    "names; each layer stands in one list, once",
                                    layer));
    }
    seen[i] = true;
    c.layer_kinds[i] = kind;
  }
}

void read_layer_kinds(K3Config& c, const Fields& linear) {
  c.layer_kinds.assign(c.num_hidden_layers, LayerKind::kda);
  std::vector<bool> seen(c.num_hidden_layers, false);
  read_layer_list(c, linear, "kda_layers", LayerKind::kda, seen);
  read_layer_list(c, linear, "full_attn_layers", LayerKind::mla, seen);
  const auto hole = std::find(seen.begin(), seen.end(), false);
  if (hole != seen.end()) {
    linear.wrong("kda_layers", fmt::format("and full_attn_layers leave out layer {}; together they "
                                           "name every layer from 1 to num_hidden_layers = {}",
                                           hole - seen.begin() + 1, c.num_hidden_layers));
  }
}

void read_kda(K3Config& c, const Fields& linear) {
  c.kda_num_heads = linear.size("num_heads", 1, kMaxHeads);
  c.kda_head_dim = linear.size("head_dim", 1, kMaxHeadDim);
  if (c.kda_inner() > kMaxInner) {
    linear.wrong("num_heads", fmt::format("times head_dim is {}; expected at most {}",
                                          c.kda_inner(), kMaxInner));
  }
  c.short_conv_kernel_size = linear.size("short_conv_kernel_size", 1, kMaxConvTaps);
  c.use_full_rank_gate = linear.flag("use_full_rank_gate");
  if (linear.has("gate_lower_bound")) {
    const float bound = linear.number("gate_lower_bound");
    if (!(bound < 0.0f)) {
      linear.wrong("gate_lower_bound",
                   fmt::format("is {}; a log decay is negative (the release has -5)", bound));
    }
    c.gate_lower_bound = bound;
  }
}

void read_mla(K3Config& c, const Fields& text) {
  c.num_attention_heads = text.size("num_attention_heads", 1, kMaxHeads);
  if (text.has("num_key_value_heads") &&
      text.size("num_key_value_heads", 1, kMaxHeads) != c.num_attention_heads) {
    text.wrong(
        "num_key_value_heads",
        fmt::format("is {}, but num_attention_heads is {}; MLA has one key and value head for "
                    "each query head",
                    text.size("num_key_value_heads", 1, kMaxHeads), c.num_attention_heads));
  }
  if (!text.flag("mla_use_nope")) {
    text.wrong("mla_use_nope", "is false; triax computes MLA without rotary positions only");
  }
  c.q_lora_rank = text.size_or("q_lora_rank", 0, 1, kMaxWidth);
  c.kv_lora_rank = text.size("kv_lora_rank", 1, kMaxWidth);
  c.qk_nope_head_dim = text.size("qk_nope_head_dim", 1, kMaxHeadDim);
  c.qk_rope_head_dim = text.size("qk_rope_head_dim", 1, kMaxHeadDim);
  c.v_head_dim = text.size("v_head_dim", 1, kMaxHeadDim);
  const std::size_t widest = std::max(c.q_head_dim(), c.qk_nope_head_dim + c.v_head_dim);
  if (c.num_attention_heads * widest > kMaxInner) {
    text.wrong("num_attention_heads", fmt::format("times the head size is {}; expected at most {}",
                                                  c.num_attention_heads * widest, kMaxInner));
  }
  c.mla_use_output_gate = text.flag("mla_use_output_gate");
}

void require_one(const Fields& text, const char* key) {
  if (text.has(key) && text.size(key, 0, kMaxExperts) != 1) {
    text.wrong(key, fmt::format("is {}; triax routes over one group of experts only (1)",
                                text.size(key, 0, kMaxExperts)));
  }
}

void require_group_multiple(const Fields& text, const char* key, std::size_t width) {
  if (width % kMxfp4Group != 0) {
    text.wrong(key, fmt::format("is {}; routed experts are MXFP4 in groups of {} columns, so it is "
                                "a multiple of {}",
                                width, kMxfp4Group, kMxfp4Group));
  }
}

// One group of quantization_config: the experts in MXFP4, or a trunk in 8 bits. Which tensors are
// 8-bit is for their own dtypes to say.
void read_quantization_group(const Fields& group, const std::string& whole_format) {
  const std::string format = group.has("format") ? group.text("format") : whole_format;
  const bool int8 = format == "int-quantized";
  if (!int8 && format != "mxfp4-pack-quantized") {
    group.wrong("format", fmt::format("is {}; triax reads mxfp4-pack-quantized (experts) and "
                                      "int-quantized (8-bit trunk) only",
                                      in_quotes(format)));
  }
  const auto weights = group.object("weights");
  if (!weights) return;
  if (weights->has("group_size") && weights->size("group_size", 0, kMaxWidth) != kMxfp4Group) {
    weights->wrong("group_size", fmt::format("is {}; {} has one scale for each {} columns",
                                             weights->size("group_size", 0, kMaxWidth),
                                             int8 ? "an 8-bit trunk" : "MXFP4", kMxfp4Group));
  }
  if (!int8) return;
  if (weights->has("num_bits") && weights->size("num_bits", 0, 64) != 8) {
    weights->wrong("num_bits", fmt::format("is {}; triax reads a trunk of 8 bits only",
                                           weights->size("num_bits", 0, 64)));
  }
  if (weights->has("type") && weights->text("type") != "int") {
    weights->wrong("type", fmt::format("is {}; triax reads whole numbers (\"int\") only",
                                       in_quotes(weights->text("type"))));
  }
  if (weights->has("symmetric") && !weights->flag("symmetric")) {
    weights->wrong("symmetric", "is false; triax reads 8-bit weights without zero points only");
  }
}

void read_quantization(const Fields& from) {
  const auto quantization = from.object("quantization_config");
  if (!quantization) return;
  std::string format = "mxfp4-pack-quantized";
  if (quantization->has("format")) format = quantization->text("format");
  if (format != "mxfp4-pack-quantized" && format != "int-quantized" &&
      format != "mixed-precision") {
    quantization->wrong("format",
                        fmt::format("is {}; triax reads mxfp4-pack-quantized (experts), "
                                    "int-quantized (8-bit trunk), or mixed-precision of these two",
                                    in_quotes(format)));
  }
  const auto groups = quantization->object("config_groups");
  if (!groups) return;
  for (std::size_t i = 0;; ++i) {
    const auto group = groups->object(fmt::format("group_{}", i).c_str());
    if (!group) return;
    read_quantization_group(*group, format);
  }
}

void read_experts(K3Config& c, const Fields& text) {
  c.num_experts = text.size_or("num_experts", 0, 0, kMaxExperts);
  c.routed_expert_hidden_size = c.hidden_size;
  if (c.num_experts == 0) return;
  c.first_k_dense_replace = text.size("first_k_dense_replace", 0, kMaxLayers);
  c.moe_layer_freq = text.size("moe_layer_freq", 1, kMaxLayers);
  c.num_experts_per_token = text.size("num_experts_per_token", 1, kMaxExperts);
  if (c.num_experts_per_token > c.num_experts) {
    text.wrong("num_experts_per_token",
               fmt::format("is {}, but num_experts is {}; a token cannot have more experts than "
                           "there are",
                           c.num_experts_per_token, c.num_experts));
  }
  c.moe_intermediate_size = text.size("moe_intermediate_size", 1, kMaxWidth);
  require_group_multiple(text, "moe_intermediate_size", c.moe_intermediate_size);
  c.num_shared_experts = text.size_or("num_shared_experts", 0, 0, 1024);
  if (c.shared_intermediate() > kMaxInner) {
    text.wrong("num_shared_experts", fmt::format("times moe_intermediate_size is {}; expected at "
                                                 "most {}",
                                                 c.shared_intermediate(), kMaxInner));
  }
  c.has_latent = text.has("routed_expert_hidden_size");
  if (c.has_latent) {
    c.routed_expert_hidden_size = text.size("routed_expert_hidden_size", 1, kMaxWidth);
    c.latent_moe_use_norm = text.flag("latent_moe_use_norm");
  }
  require_group_multiple(text, c.has_latent ? "routed_expert_hidden_size" : "hidden_size",
                         c.routed_expert_hidden_size);
  c.moe_renormalize = text.flag("moe_renormalize");
  c.routed_scaling_factor = text.number("routed_scaling_factor");
  const std::string router = text.text("moe_router_activation_func");
  if (router != "sigmoid") {
    text.wrong("moe_router_activation_func",
               fmt::format("is {}; triax computes \"sigmoid\" only", in_quotes(router)));
  }
  require_one(text, "num_expert_group");
  require_one(text, "topk_group");
}

bool any_dense_layer(const K3Config& c) {
  for (std::size_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    if (c.ffn(layer) == Ffn::dense) return true;
  }
  return false;
}

float positive(const Fields& text, const char* key) {
  const float value = text.number(key);
  if (!(value > 0.0f)) text.wrong(key, fmt::format("is {}; expected a positive number", value));
  return value;
}

void read_activation(K3Config& c, const Fields& text, bool linear_beta_given) {
  const std::string act = text.text("hidden_act");
  if (act != "situ" && act != "silu") {
    text.wrong("hidden_act",
               fmt::format("is {}; triax computes \"situ\" and \"silu\"", in_quotes(act)));
  }
  c.act_situ = act == "situ";
  if (!c.act_situ) return;
  c.activation_situ_beta = positive(text, "activation_situ_beta");
  if (!linear_beta_given) {
    text.wrong("activation_situ_linear_beta",
               "is missing; write null if the up branch is not capped");
  }
  if (text.has("activation_situ_linear_beta")) {
    c.activation_situ_linear_beta = positive(text, "activation_situ_linear_beta");
  }
}

std::size_t pair_item(const Fields& vision, const char* key, std::size_t i) {
  const auto both = vision.integers(key);
  if (both.size() != 2 || both[i] < 1 || both[i] > static_cast<std::int64_t>(kMaxHeadDim)) {
    vision.wrong(key, fmt::format("expected two numbers from 1 to {}", kMaxHeadDim));
  }
  return static_cast<std::size_t>(both[i]);
}

VisionConfig read_vision(const Fields& vision) {
  VisionConfig v;
  v.hidden = vision.size("vt_hidden_size", 1, kMaxWidth);
  v.layers = vision.size("vt_num_hidden_layers", 1, kMaxLayers);
  v.heads = vision.size("vt_num_attention_heads", 1, kMaxHeads);
  v.qkv_hidden = vision.size("qkv_hidden_size", 1, kMaxWidth);
  if (v.qkv_hidden % v.heads != 0) {
    vision.wrong("qkv_hidden_size", fmt::format("is {}; expected a multiple of "
                                                "vt_num_attention_heads = {}",
                                                v.qkv_hidden, v.heads));
  }
  v.intermediate = vision.size("vt_intermediate_size", 1, kMaxInner);
  v.patch_size = vision.size("patch_size", 1, kMaxHeadDim);
  v.pos_emb_height = vision.size("init_pos_emb_height", 1, kMaxHeadDim);
  v.pos_emb_width = vision.size("init_pos_emb_width", 1, kMaxHeadDim);
  v.merge_height = pair_item(vision, "merge_kernel_size", 0);
  v.merge_width = pair_item(vision, "merge_kernel_size", 1);
  v.text_hidden = vision.size("text_hidden_size", 1, kMaxWidth);
  return v;
}

// Token ids stand in the text section and at the top level of the release; the text section
// decides.
void read_token_ids(K3Config& c, const Fields& text, const Fields& top) {
  const auto pick = [&](const char* key) -> const Fields& { return text.has(key) ? text : top; };
  c.eos_token_ids = pick("eos_token_id").token_ids("eos_token_id");
  c.bos_token_id = pick("bos_token_id").token_id("bos_token_id");
  c.pad_token_id = pick("pad_token_id").token_id("pad_token_id");
}

void merge_ids(std::vector<std::int32_t>& into, const std::vector<std::int32_t>& more) {
  for (const std::int32_t id : more) {
    if (std::find(into.begin(), into.end(), id) == into.end()) into.push_back(id);
  }
}

std::string read_small_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot open: {}", path.string(), std::strerror(errno));
  std::string text;
  char block[65536];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMaxConfigBytes) {
      fail("{}: more than {} bytes; this is no configuration", path.string(), kMaxConfigBytes);
    }
  }
  if (file.bad()) fail("{}: cannot read: {}", path.string(), std::strerror(errno));
  return text;
}

}  // namespace

K3Config K3Config::parse(std::string_view text_in, std::string_view where) {
  const nlohmann::json root = parse_object(text_in, where);
  const Fields top(root, where, "");
  const std::optional<Fields> nested = top.object("text_config");
  const Fields& text = nested ? *nested : top;
  const nlohmann::json& text_object = nested ? root.at("text_config") : root;

  K3Config c;
  c.hidden_size = text.size("hidden_size", 1, kMaxWidth);
  c.num_hidden_layers = text.size("num_hidden_layers", 1, kMaxLayers);
  c.vocab_size = text.size("vocab_size", 1, kMaxVocab);
  c.rms_norm_eps = positive(text, "rms_norm_eps");
  c.tie_word_embeddings =
      (text.has("tie_word_embeddings") ? text : top).flag("tie_word_embeddings");
  c.attn_res_block_size = text.size_or("attn_res_block_size", 0, 1, kMaxLayers);
  c.num_nextn_predict_layers = text.size_or("num_nextn_predict_layers", 0, 0, kMaxLayers);

  const std::optional<Fields> linear = text.object("linear_attn_config");
  if (!linear) {
    text.wrong("linear_attn_config",
               "is missing; it says which layers are KDA and which MLA, and there is no default");
  }
  read_layer_kinds(c, *linear);
  if (c.kda_layers() > 0) read_kda(c, *linear);
  if (c.mla_layers() > 0) read_mla(c, text);

  read_experts(c, text);
  if (any_dense_layer(c)) {
    c.intermediate_size = text.size("intermediate_size", 1, kMaxInner);
  } else {
    c.intermediate_size = text.size_or("intermediate_size", 0, 1, kMaxInner);
  }
  read_activation(c, text, text_object.contains("activation_situ_linear_beta"));
  read_quantization(text.has("quantization_config") ? text : top);

  if (const auto vision = top.object("vision_config")) {
    c.vision = read_vision(*vision);
    if (c.vision->text_hidden != c.hidden_size) {
      vision->wrong("text_hidden_size", fmt::format("is {}, but hidden_size is {}",
                                                    c.vision->text_hidden, c.hidden_size));
    }
  }
  read_token_ids(c, text, top);
  return c;
}

K3Config K3Config::load(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path file = folder ? path / "config.json" : path;
  if (!std::filesystem::exists(file, ignored)) {
    fail("{}: there is no such file; name a model folder or its config.json", file.string());
  }
  K3Config c = parse(read_small_file(file), file.string());
  // What ends a generation may stand only beside the configuration.
  const std::filesystem::path generation = file.parent_path() / "generation_config.json";
  if (folder && std::filesystem::exists(generation, ignored)) {
    const std::string where = generation.string();
    const nlohmann::json root = parse_object(read_small_file(generation), where);
    merge_ids(c.eos_token_ids, Fields(root, where, "").token_ids("eos_token_id"));
  }
  return c;
}

}  // namespace triax
