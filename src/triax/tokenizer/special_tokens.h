// The 256 special tokens that follow the ranks: names, roles, and finding names in text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triax {

inline constexpr std::size_t kSpecialTokens = 256;

// What a special token is for. Code asks for ids by role; the numbers depend on the vocabulary.
enum class Role : std::uint8_t {
  Bos,
  Eos,
  Pad,
  Unk,
  EndOfMsg,
  Open,
  Close,
  Sep,
  StartHeader,
  EndHeader,
  Eot,
  MediaBegin,
  MediaContent,
  MediaEnd,
  MediaPad,
  OsAgentMode,
};
inline constexpr std::size_t kRoles = 16;

// A special token that K3 gives a name; the rest are `<|reserved_token_ID|>`.
struct K3Special {
  Role role;
  std::int32_t offset;  // id - number of ranks
  std::string_view name;
  bool special;  // the released `special` flag: left out of plain text
};
extern const std::array<K3Special, kRoles> kK3Specials;  // in the order of Role

class SpecialTokens {
 public:
  // K3's names by offset from `first_id`, the number of ranks.
  static SpecialTokens standard(std::int32_t first_id);

  // From the text of a tokenizer_config.json: the names of its `added_tokens_decoder` (K3's where
  // it has none), the begin, end, padding and unknown tokens by its `bos_token`, `eos_token`,
  // `pad_token` and `unk_token`, the other roles by K3's names. Throws Error, naming `name`, for
  // what is no such file or does not fit `first_id`.
  static SpecialTokens from_config(std::string_view json, std::int32_t first_id,
                                   std::string_view name);

  std::int32_t first_id() const { return first_id_; }
  bool contains(std::int32_t id) const {
    return id >= first_id_ && id - first_id_ < static_cast<std::int32_t>(kSpecialTokens);
  }
  std::string_view name(std::int32_t id) const { return at(id).name; }  // contains(id)
  // True for tokens a plain-text view leaves out; false for structure such as `<|open|>`.
  bool special(std::int32_t id) const { return at(id).special; }

  std::optional<std::int32_t> find(std::string_view name) const;
  std::optional<std::int32_t> id_of(Role role) const {
    return roles_[static_cast<std::size_t>(role)];
  }

  // The longest name that stands at text[at], if any.
  std::optional<std::int32_t> match(std::string_view text, std::size_t at) const;

 private:
  struct Token {
    std::string name;
    bool special = false;
  };

  explicit SpecialTokens(std::int32_t first_id);
  const Token& at(std::int32_t id) const {
    return tokens_[static_cast<std::size_t>(id - first_id_)];
  }
  void index(std::string_view source);
  void find_roles();

  std::int32_t first_id_;
  std::vector<Token> tokens_;                                // [kSpecialTokens], by id
  std::vector<std::int32_t> by_name_;                        // ids, sorted by name
  std::array<bool, 256> starts_{};                           // bytes that some name starts with
  std::array<std::optional<std::int32_t>, kRoles> roles_{};  // by Role
};

}  // namespace triax
