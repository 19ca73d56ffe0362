// What may come next, token by token: the side of a grammar that a sampler sees.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace triax {

// One sequence's place in a grammar. An engine calls it from one thread at a time, not always the
// same one, and between passes: it should be quick and must not wait for anything.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // bits [ceil(vocab / 64)], token t is bit t % 64 of word t / 64: set for every token that may
  // come next, clear for all others. A place where the text may end allows the ids that end a turn.
  // At least one bit is set.
  virtual void fill_mask(std::span<std::uint64_t> bits) = 0;

  // The token was chosen. False when it may not stand here; the place is then as before.
  virtual bool accept(std::int32_t id) = 0;

  // A second sequence that goes on from the same place.
  virtual std::unique_ptr<TokenConstraint> fork() const = 0;
};

// Words of a mask over `vocab` tokens.
constexpr std::size_t mask_words(std::size_t vocab) {
  return (vocab + 63) / 64;
}
inline bool mask_allows(std::span<const std::uint64_t> bits, std::size_t id) {
  return (bits[id / 64] >> (id % 64) & 1) != 0;
}

}  // namespace triax
