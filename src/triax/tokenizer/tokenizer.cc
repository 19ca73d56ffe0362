// Encoding, decoding and streaming with a rank table and special tokens.
#include "triax/tokenizer/tokenizer.h"

#include <limits>
#include <utility>

#include "triax/core/error.h"
#include "triax/tokenizer/bpe.h"
#include "triax/tokenizer/split.h"
#include "triax/tokenizer/utf8.h"

namespace triax {
namespace {

// The number of ranks as the first special id.
std::int32_t first_special(const RankTable& ranks, std::string_view source) {
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max() - kSpecialTokens;
  if (ranks.size() > kMost) {
    fail("{}: {} tokens, more than the {} that ids of 32 bits allow", source, ranks.size(), kMost);
  }
  return static_cast<std::int32_t>(ranks.size());
}

void encode_segment(std::string_view text, BpeMerger& merger, std::vector<std::int32_t>& ids) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = next_piece(text, at);
    merger.encode(text.substr(at, end - at), ids);
    at = end;
  }
}

}  // namespace

Tokenizer::Tokenizer(RankTable ranks, SpecialTokens specials)
    : ranks_(std::move(ranks)), specials_(std::move(specials)) {
  TRIAX_CHECK(ranks_.size() == static_cast<std::size_t>(specials_.first_id()),
              "special ids must follow the ranks");
}

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  const std::filesystem::path model = folder / "tiktoken.model";
  const std::filesystem::path config = folder / "tokenizer_config.json";
  RankTable ranks = RankTable::load(model);
  const std::int32_t first = first_special(ranks, model.string());
  SpecialTokens specials =
      std::filesystem::exists(config)
          ? SpecialTokens::from_config(read_text_file(config), first, config.string())
          : SpecialTokens::standard(first);
  return {std::move(ranks), std::move(specials)};
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  return encode_text(text, /*names=*/false);
}

std::vector<std::int32_t> Tokenizer::encode_control(std::string_view text) const {
  return encode_text(text, /*names=*/true);
}

std::vector<std::int32_t> Tokenizer::encode_text(std::string_view text, bool names) const {
  std::string repaired;
  if (!utf8_valid(text)) {
    repaired = utf8_repair(text);
    text = repaired;
  }
  std::vector<std::int32_t> ids;
  ids.reserve(text.size() / 4 + 1);
  BpeMerger merger(ranks_);
  for (const std::string_view slice : slices(text)) {
    std::size_t done = 0;
    for (std::size_t at = 0; names && at < slice.size();) {
      const auto id = specials_.match(slice, at);
      if (!id) {
        ++at;
        continue;
      }
      encode_segment(slice.substr(done, at - done), merger, ids);
      ids.push_back(*id);
      at += specials_.name(*id).size();
      done = at;
    }
    encode_segment(slice.substr(done), merger, ids);
  }
  return ids;
}

std::vector<std::string_view> Tokenizer::pieces(std::string_view text) const {
  if (!utf8_valid(text)) fail("pieces of text that is not UTF-8; repair it first");
  std::vector<std::string_view> out;
  for (const std::string_view slice : slices(text)) {
    for (std::size_t at = 0; at < slice.size();) {
      const std::size_t end = next_piece(slice, at);
      out.push_back(slice.substr(at, end - at));
      at = end;
    }
  }
  return out;
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  if (id >= 0 && id < rank_count()) return ranks_.bytes(id);
  if (!specials_.contains(id)) {
    fail("token id {} is outside the vocabulary, 0..{}", id, vocab_size() - 1);
  }
  return specials_.name(id);
}

std::string Tokenizer::decode_bytes(std::span<const std::int32_t> ids) const {
  std::string bytes;
  for (const std::int32_t id : ids) bytes += token_bytes(id);
  return bytes;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string bytes = decode_bytes(ids);
  return utf8_valid(bytes) ? bytes : utf8_repair(bytes);
}

std::int32_t Tokenizer::required_id(Role role) const {
  const auto id = id_of(role);
  if (!id) {
    fail("the tokenizer has no {} token; use the tokenizer_config.json of a K3 model",
         kK3Specials[static_cast<std::size_t>(role)].name);
  }
  return *id;
}

std::vector<std::int32_t> Tokenizer::stop_ids() const {
  std::vector<std::int32_t> ids;
  for (const Role role : {Role::Eos, Role::EndOfMsg, Role::Eot}) {
    if (const auto id = id_of(role)) ids.push_back(*id);
  }
  return ids;
}

std::string StreamDecoder::push(std::int32_t id) {
  held_ += tokenizer_->token_bytes(id);
  std::string out;
  std::size_t at = 0;
  while (at < held_.size()) {
    const Utf8Step step = utf8_step(held_, at);
    if (step.kind == Utf8Kind::kIncomplete) break;
    if (step.kind == Utf8Kind::kCodePoint) {
      out.append(held_, at, step.length);
    } else {
      out += kReplacementUtf8;
    }
    at += step.length;
  }
  held_.erase(0, at);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out(held_.empty() ? std::string_view{} : kReplacementUtf8);
  held_.clear();
  return out;
}

}  // namespace triax
