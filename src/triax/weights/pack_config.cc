// The quantization_config of a packed checkpoint, as compressed-tensors words it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "triax/core/error.h"
#include "triax/weights/pack.h"
#include "triax/weights/tensor_table.h"

namespace triax {
namespace {

using Json = nlohmann::ordered_json;

// "model.layers.{L}.self_attn.q_proj.weight" -> "re:.*model\.layers\.\d+\.self_attn\.q_proj$"
std::string module_pattern(std::string_view row_name) {
  constexpr std::string_view kWeight = ".weight";
  row_name.remove_suffix(kWeight.size());
  std::string out = "re:.*";
  for (std::size_t i = 0; i < row_name.size(); ++i) {
    if (row_name.substr(i).starts_with("{L}")) {
      out += "\\d+";
      i += 2;
    } else {
      if (row_name[i] == '.') out += '\\';
      out += row_name[i];
    }
  }
  return out + "$";
}

bool occurs(const TensorRow& row, const K3Config& config) {
  for (std::size_t l = 0; l < detail::scope_instances(row.scope, config); ++l) {
    if (row.exists(config, l)) return true;
  }
  return false;
}

// Modules of the trunk by pattern, in table order: those that are 8-bit, or those that are not.
Json patterns(const K3Config& config, bool packed) {
  Json out = Json::array();
  std::set<std::string> seen;
  for (const TensorRow& row : tensor_table()) {
    const bool linear = row.role == TensorRole::matrix || row.role == TensorRole::router ||
                        row.role == TensorRole::head;
    if (!linear || !occurs(row, config) || packs_int8(row, config) != packed) continue;
    const std::string pattern = module_pattern(row.name);
    if (seen.insert(pattern).second) out.push_back(pattern);
  }
  return out;
}

Json group(std::string_view format, Json targets, int bits, std::string_view type) {
  return {{"format", format},
          {"input_activations", nullptr},
          {"output_activations", nullptr},
          {"targets", std::move(targets)},
          {"weights",
           {{"actorder", nullptr},
            {"block_structure", nullptr},
            {"dynamic", false},
            {"group_size", kQuantGroup},
            {"num_bits", bits},
            {"strategy", "group"},
            {"symmetric", true},
            {"type", type}}}};
}

// The release names the parts of the trunk that its one group leaves alone.
bool speaks_of_the_trunk(const Json& entry) {
  if (!entry.is_string()) return false;
  const std::string& text = entry.get_ref<const std::string&>();
  for (const char* part : {"self_attn", "shared_experts", "mlp", "lm_head"}) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

void extend(const K3Config& config, Json& quantization) {
  Json& groups = quantization["config_groups"];
  if (!groups.is_object()) groups = Json::object();
  if (groups.empty() && config.moe_layers() > 0) {
    groups["group_0"] = group("mxfp4-pack-quantized", Json::array({"Linear"}), 4, "float");
  }
  std::size_t number = 0;
  while (groups.contains(fmt::format("group_{}", number))) ++number;
  groups[fmt::format("group_{}", number)] =
      group("int-quantized", patterns(config, true), 8, "int");
  quantization["format"] = groups.size() > 1 ? "mixed-precision" : "int-quantized";
  Json ignore = Json::array();
  if (quantization.contains("ignore") && quantization["ignore"].is_array()) {
    for (const Json& entry : quantization["ignore"]) {
      if (!speaks_of_the_trunk(entry)) ignore.push_back(entry);
    }
  }
  for (const Json& pattern : patterns(config, false)) ignore.push_back(pattern);
  quantization["ignore"] = std::move(ignore);
  if (!quantization.contains("quant_method")) quantization["quant_method"] = "compressed-tensors";
  if (!quantization.contains("quantization_status")) {
    quantization["quantization_status"] = "compressed";
  }
}

}  // namespace

std::string packed_config_text(const K3Config& config, std::string_view text,
                               std::string_view where) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::exception&) {
    fail("{}: is not JSON; nothing was packed", where);
  }
  const auto section = [&]() -> Json& {
    if (!root.contains("text_config") || !root["text_config"].is_object()) return root;
    const bool above = root.contains("quantization_config") &&
                       !root["text_config"].contains("quantization_config");
    return above ? root : root["text_config"];
  };
  Json& quantization = section()["quantization_config"];
  if (!quantization.is_object()) quantization = Json::object();
  extend(config, quantization);
  return root.dump(2) + "\n";
}

}  // namespace triax
