// Writes tokenizer folders: a vocabulary of one's own in K3's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace triax {

// The 256 single bytes in K3's order of ranks: printable Latin-1 first, then the rest.
std::vector<std::string> single_byte_tokens();

// A made-up vocabulary: the single bytes, then `merges` tokens of lower-case letters, some after a
// space, each an earlier token and one letter more. Always the same for the same `merges`.
std::vector<std::string> byte_tokens(std::size_t merges);

// tokenizer_config.json with K3's 16 named special tokens after `rank_count` ranks.
std::string tokenizer_config_text(std::int32_t rank_count);

// Writes `tiktoken.model` (rank = position in `tokens`) and `tokenizer_config.json` into `folder`,
// which is made when it is not there. Throws Error when the tokens are no valid rank file.
void write_tokenizer_folder(const std::filesystem::path& folder,
                            std::span<const std::string> tokens);

// write_tokenizer_folder() of byte_tokens(merges).
void write_byte_tokenizer(const std::filesystem::path& folder, std::size_t merges);

}  // namespace triax
