// The accounting as text and as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "triax/weights/accounting.h"

namespace triax {
namespace {

using Json = nlohmann::ordered_json;

std::string_view kind_name(LayerKind kind) {
  return kind == LayerKind::kda ? "KDA" : "MLA";
}
std::string_view ffn_name(Ffn ffn) {
  return ffn == Ffn::dense ? "dense" : "MoE";
}

std::string_view label(Component component) {
  constexpr std::string_view kLabels[] = {"embedding table",
                                          "output head",
                                          "KDA module",
                                          "MLA module",
                                          "dense MLP",
                                          "router and correction bias",
                                          "latent down, norm, up",
                                          "shared experts",
                                          "routed experts",
                                          "depth mixes (norm, projection)",
                                          "layer norms, final norm",
                                          "vision tower",
                                          "projector"};
  static_assert(std::size(kLabels) == kComponents);
  return kLabels[static_cast<std::size_t>(component)];
}

// 1234567 -> "1,234,567"
std::string grouped(std::uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

template <class... Args>
void line(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  out += '\n';
}

void schedule_text(const Accounting& a, std::string& out) {
  line(out, "Schedule ({} layers, counted from 0; a * opens a block of Attention Residuals)",
       a.layers.size());
  // Runs of equal layers between block starts, as in "  0      * KDA dense".
  for (std::size_t first = 0; first < a.layers.size();) {
    std::size_t end = first + 1;
    while (end < a.layers.size() && a.layers[end].kind == a.layers[first].kind &&
           a.layers[end].ffn == a.layers[first].ffn && !a.layers[end].opens_block) {
      ++end;
    }
    const std::string range =
        end - first == 1 ? std::to_string(first) : fmt::format("{}-{}", first, end - 1);
    line(out, "  {:<7} {} {}, {}", range, a.layers[first].opens_block ? '*' : ' ',
         kind_name(a.layers[first].kind), ffn_name(a.layers[first].ffn));
    first = end;
  }
  if (a.blocks.empty()) {
    line(out, "  no depth mixes: ordinary residuals");
    return;
  }
  std::string blocks;
  for (const DepthBlock& b : a.blocks) {
    blocks += fmt::format("{}{}-{}", blocks.empty() ? "" : ", ", b.first, b.last);
  }
  line(out, "  blocks: {}", blocks);
}

void components_text(const Accounting& a, std::string& out) {
  constexpr auto kRow = "  {:<31} {:>17} {:>9} {:>21} {:>21} {:>16}";
  line(out, kRow, "Components", "parameters each", "instances", "parameters", "bytes",
       "active a token");
  const auto sum = [&](std::string_view name, const Amount& amount) {
    line(out, kRow, name, "", "", grouped(amount.parameters), grouped(amount.bytes),
         grouped(amount.active));
  };
  for (const ComponentAccount& c : a.components) {
    line(out, kRow, label(c.component), grouped(c.per_instance), grouped(c.instances),
         grouped(c.total.parameters), grouped(c.total.bytes), grouped(c.total.active));
  }
  sum("language model", a.text);
  if (a.vision.tensors > 0) sum("vision tower and projector", a.vision);
  sum("whole model", a.all);
  out += '\n';
  line(out, kRow, "Layers", "parameters each", "layers", "parameters", "bytes", "active a token");
  for (const LayerGroup& g : a.groups) {
    line(out, kRow, fmt::format("{}, {}", kind_name(g.kind), ffn_name(g.ffn)), grouped(g.per_layer),
         grouped(g.layers), grouped(g.total.parameters), grouped(g.total.bytes),
         grouped(g.total.active));
  }
  Amount moe;
  std::uint64_t layers = 0;
  for (const LayerAccount& l : a.layers) {
    if (l.ffn != Ffn::moe) continue;
    moe += l.moe;
    ++layers;
  }
  if (layers == 0) return;
  line(out, kRow, "of them: latent MoE", grouped(moe.parameters / layers), grouped(layers),
       grouped(moe.parameters), grouped(moe.bytes), grouped(moe.active));
}

Json amount_json(const Amount& a) {
  return {{"tensors", a.tensors},
          {"parameters", a.parameters},
          {"bytes", a.bytes},
          {"active", a.active}};
}

Json named(std::initializer_list<std::pair<const char*, Json>> head, const Amount& amount) {
  Json out = Json::object();
  for (const auto& [key, value] : head) out[key] = value;
  out.update(amount_json(amount));
  return out;
}

Json sequence_json(const SequenceAccount& s) {
  return {{"kda_state_bytes", s.kda_state_bytes},
          {"conv_values", s.conv_values},
          {"conv_bytes_bf16", s.conv_bytes_bf16},
          {"conv_bytes_f32", s.conv_bytes_f32},
          {"latent_values_per_token", s.latent_values_per_token},
          {"latent_bytes_per_token_bf16", s.latent_bytes_per_token_bf16},
          {"latent_bytes_per_token_f32", s.latent_bytes_per_token_f32}};
}

}  // namespace

std::string Accounting::format_text() const {
  std::string out;
  schedule_text(*this, out);
  out += '\n';
  components_text(*this, out);
  out += '\n';
  line(out, "Totals ({})", from_files ? "as stored in the folder" : "by the configuration");
  const auto total = [&](std::string_view name, std::uint64_t value, std::string_view unit) {
    line(out, "  {:<52} {:>21} {}", name, grouped(value), unit);
  };
  total("tensors", all.tensors, "");
  total("bytes", all.bytes, "B");
  total("text without routed experts (trunk)", trunk_bytes, "B");
  total("trunk without embedding table and head", trunk_bytes_without_tables, "B");
  if (trunk_scale_bytes > 0) total("of the trunk: scales of 8-bit weights", trunk_scale_bytes, "B");
  total("routed experts", routed_bytes, "B");
  total("of them scales", routed_scale_bytes, "B");
  total("one routed expert", expert_bytes, "B");
  total("active a token, with the embedding table", active_with_embedding, "parameters");
  total("active a token, without the embedding table", active_without_embedding, "parameters");
  total("read a token: trunk", trunk_bytes_read_per_token, "B");
  total("read a token: routed experts", expert_bytes_read_per_token, "B");
  out += '\n';
  line(out, "A sequence holds");
  total("KDA state, float32", sequence.kda_state_bytes, "B");
  total("convolution windows, bf16 mode", sequence.conv_bytes_bf16, "B");
  total("convolution windows, f32 mode", sequence.conv_bytes_f32, "B");
  total("latent cache, bf16 mode", sequence.latent_bytes_per_token_bf16, "B a token");
  total("latent cache, f32 mode", sequence.latent_bytes_per_token_f32, "B a token");
  return out;
}

std::string Accounting::to_json() const {
  Json out;
  out["source"] = from_files ? "files" : "config";
  out["total"] = amount_json(all);
  out["language_model"] = amount_json(text);
  out["vision"] = amount_json(vision);
  out["active_with_embedding"] = active_with_embedding;
  out["active_without_embedding"] = active_without_embedding;
  out["tied_head"] = tied_head;
  out["trunk_bytes"] = trunk_bytes;
  out["trunk_bytes_without_tables"] = trunk_bytes_without_tables;
  out["trunk_scale_bytes"] = trunk_scale_bytes;
  out["routed_bytes"] = routed_bytes;
  out["routed_scale_bytes"] = routed_scale_bytes;
  out["expert_bytes"] = expert_bytes;
  out["trunk_bytes_read_per_token"] = trunk_bytes_read_per_token;
  out["expert_bytes_read_per_token"] = expert_bytes_read_per_token;
  out["sequence"] = sequence_json(sequence);
  out["components"] = Json::array();
  for (const ComponentAccount& c : components) {
    out["components"].push_back(named({{"name", component_name(c.component)},
                                       {"instances", c.instances},
                                       {"parameters_each", c.per_instance}},
                                      c.total));
  }
  out["layer_groups"] = Json::array();
  for (const LayerGroup& g : groups) {
    out["layer_groups"].push_back(named({{"attention", kind_name(g.kind)},
                                         {"ffn", ffn_name(g.ffn)},
                                         {"layers", g.layers},
                                         {"parameters_each", g.per_layer}},
                                        g.total));
  }
  out["blocks"] = Json::array();
  for (const DepthBlock& b : blocks)
    out["blocks"].push_back({{"first", b.first}, {"last", b.last}});
  out["layers"] = Json::array();
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerAccount& layer = layers[l];
    Json row = named({{"layer", l},
                      {"attention", kind_name(layer.kind)},
                      {"ffn", ffn_name(layer.ffn)},
                      {"opens_block", layer.opens_block}},
                     layer.total);
    if (layer.ffn == Ffn::moe) row["moe"] = amount_json(layer.moe);
    out["layers"].push_back(std::move(row));
  }
  return out.dump(2);
}

}  // namespace triax
