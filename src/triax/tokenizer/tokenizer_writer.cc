// Writer of tokenizer folders and the made-up vocabulary.
#include "triax/tokenizer/tokenizer_writer.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "triax/core/error.h"
#include "triax/tokenizer/rank_file.h"
#include "triax/tokenizer/special_tokens.h"

namespace triax {
namespace {

// By frequency in English, roughly, so that the first merges are of use.
constexpr std::string_view kLetters = "etaoinshrdlucmfwygpbvkxqjz";

}  // namespace

std::vector<std::string> single_byte_tokens() {
  const auto printable = [](unsigned b) {
    return (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
  };
  std::vector<std::string> tokens;
  for (const bool wanted : {true, false}) {
    for (unsigned b = 0; b < 256; ++b) {
      if (printable(b) == wanted) tokens.emplace_back(1, static_cast<char>(b));
    }
  }
  return tokens;
}

std::vector<std::string> byte_tokens(std::size_t merges) {
  std::vector<std::string> tokens = single_byte_tokens();
  std::vector<std::string> stems = {" "};  // tokens that letters are put after, in this order
  for (const char c : kLetters) stems.emplace_back(1, c);
  for (std::size_t stem = 0; tokens.size() < 256 + merges; ++stem) {
    for (const char c : kLetters) {
      if (tokens.size() == 256 + merges) break;
      tokens.push_back(stems[stem] + c);
      stems.push_back(tokens.back());
    }
  }
  return tokens;
}

std::string tokenizer_config_text(std::int32_t rank_count) {
  const SpecialTokens specials = SpecialTokens::standard(rank_count);
  nlohmann::ordered_json added = nlohmann::ordered_json::object();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kSpecialTokens); ++i) {
    for (const K3Special& k3 : kK3Specials) {
      if (k3.offset != i) continue;
      added[std::to_string(rank_count + i)] = {{"content", k3.name},   {"lstrip", false},
                                               {"normalized", false},  {"rstrip", false},
                                               {"single_word", false}, {"special", k3.special}};
    }
  }
  nlohmann::ordered_json config;
  config["added_tokens_decoder"] = std::move(added);
  config["bos_token"] = specials.name(*specials.id_of(Role::Bos));
  config["clean_up_tokenization_spaces"] = false;
  config["eos_token"] = specials.name(*specials.id_of(Role::Eos));
  config["pad_token"] = specials.name(*specials.id_of(Role::Pad));
  config["tokenizer_class"] = "TikTokenTokenizer";
  config["unk_token"] = specials.name(*specials.id_of(Role::Unk));
  return config.dump(2) + "\n";
}

void write_tokenizer_folder(const std::filesystem::path& folder,
                            std::span<const std::string> tokens) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("{}: cannot be made: {}", folder.string(), error.message());
  write_rank_file(folder / "tiktoken.model", tokens);
  write_text_file(folder / "tokenizer_config.json",
                  tokenizer_config_text(static_cast<std::int32_t>(tokens.size())));
}

void write_byte_tokenizer(const std::filesystem::path& folder, std::size_t merges) {
  write_tokenizer_folder(folder, byte_tokens(merges));
}

}  // namespace triax
