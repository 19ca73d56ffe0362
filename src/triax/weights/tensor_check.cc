// Visitors of the tensor table: names, shapes, and the check of a folder against a configuration.
#include <algorithm>
#include <charconv>
#include <numeric>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/checked.h"
#include "triax/weights/tensor_table.h"

namespace triax {
namespace {

constexpr std::string_view kLayer = "{L}";
constexpr std::string_view kExpert = "{E}";
constexpr std::string_view kScales = "_scale";  // NAME.weight_scale beside an 8-bit NAME.weight

std::string shape_text(std::span<const std::size_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string expected_shape_text(const TensorId& id, const K3Config& config) {
  const TensorRow& row = *id.row;
  std::string values, names;
  if (id.scales) {
    return fmt::format("{} = [{}, {} / {}]", shape_text(tensor_shape(id, config)),
                       dim_name(row.dims[0]), dim_name(row.dims[1]), kQuantGroup);
  }
  for (std::size_t i = 0; i < row.rank; ++i) {
    const char* comma = i == 0 ? "" : ", ";
    const bool padded = row.dims[i] == Dim::a_log_entries;
    values += padded ? fmt::format("{}at least {}", comma, config.kda_num_heads)
                     : fmt::format("{}{}", comma, dim_value(row.dims[i], config));
    names += fmt::format("{}{}", comma, dim_name(row.dims[i]));
  }
  return fmt::format("[{}] = [{}]", values, names);
}

// Takes a decimal number without leading zeros off the front of `text`.
bool take_number(std::string_view& text, std::size_t& value) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || (text.front() == '0' && at - text.data() > 1)) return false;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  return true;
}

// Does `name` follow the row's pattern? Fills layer and expert.
bool matches(std::string_view pattern, std::string_view name, std::size_t& layer,
             std::size_t& expert) {
  for (const auto& [mark, value] : {std::pair{kLayer, &layer}, std::pair{kExpert, &expert}}) {
    const std::size_t at = pattern.find(mark);
    if (at == std::string_view::npos) break;
    if (name.substr(0, at) != pattern.substr(0, at)) return false;
    name.remove_prefix(at);
    pattern.remove_prefix(at + mark.size());
    if (!take_number(name, *value)) return false;
  }
  return name == pattern;
}

bool dtype_fits(const TensorId& id, DType dtype) {
  const TensorRow& row = *id.row;
  if (id.scales) return dtype == DType::BF16;
  if (row.packing == Packing::int8 && dtype == DType::I8) return true;
  switch (row.quirk) {
    case Quirk::none:
      return dtype == row.dtype;
    case Quirk::wide:
    case Quirk::padded:
      return dtype == DType::BF16 || dtype == DType::F32;
    case Quirk::e8m0:
      return dtype == DType::U8 || dtype == DType::F8_E8M0;
  }
  return false;
}

std::string_view accepted_dtypes(const TensorId& id) {
  const TensorRow& row = *id.row;
  if (id.scales) return "BF16";
  if (row.packing == Packing::int8) return "BF16, F32 or I8";
  switch (row.quirk) {
    case Quirk::none:
      break;
    case Quirk::wide:
    case Quirk::padded:
      return "BF16 or F32";
    case Quirk::e8m0:
      return "U8 or F8_E8M0";
  }
  return dtype_name(row.dtype);
}

std::string_view without_root(std::string_view name, std::string_view root) {
  return name.starts_with(root) ? name.substr(root.size()) : name;
}

// Tensors that a reader passes over: layers past the last one (multi-token prediction), rotary
// tables of an older exporter, and a vision tower that the configuration does not describe.
bool ignorable(const K3Config& config, std::string_view root, std::string_view name) {
  if (name.starts_with("vision_tower.") || name.starts_with("mm_projector.")) {
    return !config.vision.has_value();
  }
  std::string_view rest = without_root(name, root);
  if (rest.ends_with(".rotary_emb.inv_freq")) return true;
  constexpr std::string_view kLayers = "model.layers.";
  if (!rest.starts_with(kLayers)) return false;
  rest.remove_prefix(kLayers.size());
  std::size_t layer = 0;
  return take_number(rest, layer) && layer >= config.num_hidden_layers;
}

struct Counts {
  std::size_t text = 0;
  std::size_t vision = 0;
};

Counts count_expected(const K3Config& config) {
  Counts out;
  for_each_tensor(config, {},
                  [&](const TensorId& id) { ++(is_vision(*id.row) ? out.vision : out.text); });
  return out;
}

[[noreturn]] void report_missing(const K3Config& config, const Checkpoint& checkpoint,
                                 Parts parts) {
  std::string first;
  std::size_t missing = 0;
  for_each_tensor(config, parts, [&](const TensorId& id) {
    const std::string name = tensor_name(id, checkpoint.root());
    if (checkpoint.find(name) != nullptr) return;
    if (missing++ == 0) first = name;
  });
  fail(
      "{}: tensor {} is not in the checkpoint{}; the configuration asks for it: download the "
      "missing shards or use the config.json that belongs to these weights",
      checkpoint.folder().string(), first,
      missing > 1 ? fmt::format(" (and {} more)", missing - 1) : std::string());
}

}  // namespace

std::size_t detail::scope_instances(Scope scope, const K3Config& config) {
  switch (scope) {
    case Scope::layer:
    case Scope::expert:
      return config.num_hidden_layers;
    case Scope::vision_block:
      return config.vision ? config.vision->layers : 0;
    case Scope::vision:
      return config.vision ? 1 : 0;
    case Scope::global:
      break;
  }
  return 1;
}

bool is_vision(const TensorRow& row) {
  return row.scope == Scope::vision || row.scope == Scope::vision_block;
}

std::string tensor_name(const TensorId& id, std::string_view root) {
  std::string out(is_vision(*id.row) ? std::string_view() : root);
  out += id.row->name;
  for (const auto& [mark, value] : {std::pair{kLayer, id.layer}, std::pair{kExpert, id.expert}}) {
    const std::size_t at = out.find(mark);
    if (at != std::string::npos) out.replace(at, mark.size(), std::to_string(value));
  }
  if (id.scales) out += kScales;
  return out;
}

std::vector<std::size_t> tensor_shape(const TensorRow& row, const K3Config& config) {
  std::vector<std::size_t> out(row.rank);
  for (std::size_t i = 0; i < row.rank; ++i) out[i] = dim_value(row.dims[i], config);
  return out;
}

std::vector<std::size_t> tensor_shape(const TensorId& id, const K3Config& config) {
  std::vector<std::size_t> out = tensor_shape(*id.row, config);
  if (id.scales) out[1] /= kQuantGroup;
  return out;
}

bool packs_int8(const TensorRow& row, const K3Config& config) {
  return row.packing == Packing::int8 && dim_value(row.dims[1], config) % kQuantGroup == 0;
}

std::uint64_t parameters_of(const TensorId& id, std::uint64_t elements) {
  if (id.scales || id.row->role == TensorRole::expert_scale) return 0;
  return id.row->role == TensorRole::expert_packed ? 2 * elements : elements;
}

namespace {

std::optional<TensorId> identify_row(const K3Config& config, std::string_view root,
                                     std::string_view name) {
  const std::string_view below = without_root(name, root);
  const bool routed = below.find(".experts.") != std::string_view::npos;
  for (const TensorRow& row : tensor_table()) {
    if (routed != (row.scope == Scope::expert)) continue;
    TensorId id{&row, 0, 0};
    if (!matches(row.name, is_vision(row) ? name : below, id.layer, id.expert)) continue;
    if (!is_vision(row) && below.size() + root.size() != name.size()) continue;
    if (id.layer >= detail::scope_instances(row.scope, config)) continue;
    if (routed && id.expert >= config.num_experts) continue;
    if (row.exists(config, id.layer)) return id;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TensorId> identify(const K3Config& config, std::string_view root,
                                 std::string_view name) {
  std::optional<TensorId> id = identify_row(config, root, name);
  if (id || !name.ends_with(kScales)) return id;
  id = identify_row(config, root, name.substr(0, name.size() - kScales.size()));
  if (!id || !packs_int8(*id->row, config)) return std::nullopt;
  id->scales = true;
  return id;
}

void check_tensor(const K3Config& config, const TensorId& id, const TensorEntry& entry) {
  const TensorRow& row = *id.row;
  if (!dtype_fits(id, entry.dtype)) {
    fail("tensor {}: dtype {}, expected {}; use a checkpoint in the released layout", entry.name,
         dtype_name(entry.dtype), accepted_dtypes(id));
  }
  const std::vector<std::size_t> shape = tensor_shape(id, config);
  const bool fits = row.quirk == Quirk::padded
                        ? entry.shape.size() == 1 && entry.shape[0] >= config.kda_num_heads
                        : std::ranges::equal(shape, entry.shape);
  if (!fits) {
    fail("tensor {}: shape {}, expected {}; config.json and the shards do not belong together",
         entry.name, shape_text(entry.shape), expected_shape_text(id, config));
  }
  if (entry.dtype == DType::I8 && !packs_int8(row, config)) {
    fail(
        "tensor {}: I8 with {} columns; 8-bit codes have a scale for each {} columns, so expected "
        "a multiple of {}; pack the checkpoint again",
        entry.name, shape[1], kQuantGroup, kQuantGroup);
  }
}

namespace {

// An 8-bit matrix and its scales come together.
void check_pair(const Checkpoint& checkpoint, const TensorId& id, const TensorEntry& entry) {
  if (entry.dtype == DType::I8) {
    const std::string scales = std::string(entry.name) + std::string(kScales);
    if (checkpoint.find(scales) == nullptr) {
      fail(
          "tensor {}: holds I8 codes, but there is no tensor {} with their scales; pack the "
          "checkpoint again",
          entry.name, scales);
    }
  }
  if (!id.scales) return;
  const std::string_view codes = entry.name.substr(0, entry.name.size() - kScales.size());
  const TensorEntry* matrix = checkpoint.find(codes);
  if (matrix != nullptr && matrix->dtype != DType::I8) {
    fail("tensor {}: scales of a matrix that is {}; expected {} in I8; pack the checkpoint again",
         entry.name, dtype_name(matrix->dtype), codes);
  }
}

}  // namespace

void check_tensors(const K3Config& config, const Checkpoint& checkpoint) {
  Counts found;
  for (const TensorEntry& entry : checkpoint.tensors()) {
    const std::optional<TensorId> id = identify(config, checkpoint.root(), entry.name);
    if (id) {
      check_tensor(config, *id, entry);
      check_pair(checkpoint, *id, entry);
      if (id->scales) continue;
      ++(is_vision(*id->row) ? found.vision : found.text);
    } else if (!ignorable(config, checkpoint.root(), entry.name)) {
      fail(
          "tensor {}: no part of this model has that name; config.json and the shards do not "
          "belong together, or this is another architecture",
          entry.name);
    }
  }
  const Counts expected = count_expected(config);
  if (found.text != expected.text) report_missing(config, checkpoint, {true, false});
  if (found.vision != 0 && found.vision != expected.vision) {
    report_missing(config, checkpoint, {false, true});
  }
}

bool has_vision_tensors(const K3Config& config, const Checkpoint& checkpoint) {
  bool found = false;
  for (const TensorRow& row : tensor_table()) {
    if (is_vision(row) && row.exists(config, 0)) {
      found = found || checkpoint.find(tensor_name({&row, 0, 0}, "")) != nullptr;
    }
  }
  return found;
}

}  // namespace triax
