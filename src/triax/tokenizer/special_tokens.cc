// Special tokens from tokenizer_config.json or K3's standard names.
#include "triax/tokenizer/special_tokens.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "triax/core/error.h"

namespace triax {

const std::array<K3Special, kRoles> kK3Specials = {{
    {Role::Bos, 0, "[BOS]", true},
    {Role::Eos, 1, "[EOS]", true},
    {Role::Pad, 255, "[PAD]", true},
    {Role::Unk, 254, "[UNK]", true},
    {Role::EndOfMsg, 2, "<|end_of_msg|>", true},
    {Role::Open, 3, "<|open|>", false},
    {Role::Close, 4, "<|close|>", false},
    {Role::Sep, 5, "<|sep|>", false},
    {Role::StartHeader, 6, "[start_header_id]", true},
    {Role::EndHeader, 7, "[end_header_id]", true},
    {Role::Eot, 9, "[EOT]", true},
    {Role::MediaBegin, 18, "<|media_begin|>", true},
    {Role::MediaContent, 19, "<|media_content|>", true},
    {Role::MediaEnd, 20, "<|media_end|>", true},
    {Role::MediaPad, 21, "<|media_pad|>", true},
    {Role::OsAgentMode, 65, "<osagent_mode>", true},
}};

namespace {

using Json = nlohmann::json;

// The id that a key of `added_tokens_decoder` stands for.
std::int32_t parse_id(const std::string& key, std::int32_t first_id, std::string_view source) {
  std::int32_t id = 0;
  const char* end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data(), end, id);
  if (key.empty() || error != std::errc{} || stop != end) {
    fail("{}: added_tokens_decoder: key {} is not a token id", source, Json(key).dump());
  }
  const std::int32_t last = first_id + static_cast<std::int32_t>(kSpecialTokens) - 1;
  if (id < first_id || id > last) {
    fail(
        "{}: added_tokens_decoder: id {} lies outside {}..{}, the {} ids after the {} ranks of the "
        "rank file; take both files from the same model",
        source, id, first_id, last, kSpecialTokens, first_id);
  }
  return id;
}

// The string of `bos_token` and its like: a string, or an object with `content`; null when absent.
std::optional<std::string> token_field(const Json& config, const char* field,
                                       std::string_view source) {
  const auto found = config.find(field);
  if (found == config.end() || found->is_null()) return std::nullopt;
  const Json* value = &*found;
  if (value->is_object() && value->contains("content")) value = &(*value)["content"];
  if (!value->is_string())
    fail("{}: {} is neither a string nor an object with content", source, field);
  return value->get<std::string>();
}

}  // namespace

SpecialTokens::SpecialTokens(std::int32_t first_id) : first_id_(first_id), tokens_(kSpecialTokens) {
  for (std::size_t i = 0; i < kSpecialTokens; ++i) {
    tokens_[i].name = fmt::format("<|reserved_token_{}|>", first_id + static_cast<std::int32_t>(i));
  }
}

SpecialTokens SpecialTokens::standard(std::int32_t first_id) {
  SpecialTokens out(first_id);
  for (const K3Special& k3 : kK3Specials) {
    out.tokens_[static_cast<std::size_t>(k3.offset)] = {std::string(k3.name), k3.special};
  }
  out.index("standard names");
  out.find_roles();
  return out;
}

SpecialTokens SpecialTokens::from_config(std::string_view json, std::int32_t first_id,
                                         std::string_view source) {
  const Json config = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) fail("{}: not a JSON object", source);
  SpecialTokens out(first_id);
  const auto added = config.find("added_tokens_decoder");
  if (added == config.end()) {
    out = standard(first_id);
  } else {
    if (!added->is_object()) fail("{}: added_tokens_decoder is not an object", source);
    for (const auto& [key, value] : added->items()) {
      const std::int32_t id = parse_id(key, first_id, source);
      const auto content = value.is_object() ? value.find("content") : value.end();
      if (content == value.end() || !content->is_string() ||
          content->get_ref<const std::string&>().empty()) {
        fail("{}: added_tokens_decoder: id {} has no `content`, or an empty one", source, id);
      }
      const auto flag = value.find("special");
      out.tokens_[static_cast<std::size_t>(id - first_id)] = {
          content->get<std::string>(),
          flag == value.end() || (flag->is_boolean() && flag->get<bool>())};
    }
    out.index(source);
    out.find_roles();
  }
  constexpr std::pair<const char*, Role> kFields[] = {{"bos_token", Role::Bos},
                                                      {"eos_token", Role::Eos},
                                                      {"pad_token", Role::Pad},
                                                      {"unk_token", Role::Unk}};
  for (const auto& [field, role] : kFields) {
    const auto content = token_field(config, field, source);
    if (!content) continue;
    const auto id = out.find(*content);
    if (!id) {
      fail("{}: {} is {}, which is none of the special tokens", source, field,
           Json(*content).dump());
    }
    out.roles_[static_cast<std::size_t>(role)] = id;
  }
  return out;
}

void SpecialTokens::index(std::string_view source) {
  by_name_.clear();
  for (std::size_t i = 0; i < kSpecialTokens; ++i) {
    by_name_.push_back(first_id_ + static_cast<std::int32_t>(i));
    starts_[static_cast<unsigned char>(tokens_[i].name[0])] = true;
  }
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::int32_t a, std::int32_t b) { return name(a) < name(b); });
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    if (name(by_name_[i - 1]) == name(by_name_[i])) {
      fail("{}: ids {} and {} have the same name; each special token needs its own", source,
           std::min(by_name_[i - 1], by_name_[i]), std::max(by_name_[i - 1], by_name_[i]));
    }
  }
}

void SpecialTokens::find_roles() {
  for (const K3Special& k3 : kK3Specials) roles_[static_cast<std::size_t>(k3.role)] = find(k3.name);
}

std::optional<std::int32_t> SpecialTokens::find(std::string_view wanted) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), wanted,
                       [&](std::int32_t id, std::string_view n) { return name(id) < n; });
  if (found == by_name_.end() || name(*found) != wanted) return std::nullopt;
  return *found;
}

std::optional<std::int32_t> SpecialTokens::match(std::string_view text, std::size_t at) const {
  std::optional<std::int32_t> longest;
  if (at >= text.size() || !starts_[static_cast<unsigned char>(text[at])]) return longest;
  // Narrows the sorted names to those that start with the first `depth` bytes at text[at].
  auto first = by_name_.begin();
  auto last = by_name_.end();
  for (std::size_t depth = 0; at + depth < text.size(); ++depth) {
    const auto byte_of = [&](std::int32_t id) {  // -1 (sorts first) at the name's end
      const std::string_view n = name(id);
      return depth < n.size() ? int{static_cast<unsigned char>(n[depth])} : -1;
    };
    const int byte = static_cast<unsigned char>(text[at + depth]);
    first = std::partition_point(first, last, [&](std::int32_t id) { return byte_of(id) < byte; });
    last = std::partition_point(first, last, [&](std::int32_t id) { return byte_of(id) == byte; });
    if (first == last) break;
    if (name(*first).size() == depth + 1) longest = *first;
  }
  return longest;
}

}  // namespace triax
